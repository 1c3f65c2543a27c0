"""The bytes of lists, and of nothing."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.streams import ListSerde, StreamsError
from moldau.streams.serdes import UUID, serde


@pytest.mark.parametrize(
    ("inner", "values", "expected"),
    [
        ("string", ["a", None, ""], "01 00000003 00000001 61 ffffffff 00000000"),
        ("short", [1, None], "00 00000001 00000001 00000002 0001"),
        ("boolean", [True], "01 00000001 00000001 01"),
        ("long", [], "00 00000000 00000000"),
    ],
)
def test_lists_have_the_bytes_of_kafkas(inner: str, values: list[object], expected: str) -> None:
    lists: ListSerde[object] = ListSerde(inner)
    data = lists.serialize("t", values)
    assert data == bytes.fromhex(expected)
    assert lists.deserialize("t", data) == values


@given(st.lists(st.none() | st.uuids()))
def test_lists_of_values_of_one_size_come_back(values: list[uuid.UUID | None]) -> None:
    lists = ListSerde(UUID)
    assert lists.deserialize("t", lists.serialize("t", values)) == values


def test_lists_may_be_null_and_must_be_whole() -> None:
    lists: ListSerde[object] = ListSerde("string")
    assert (lists.serialize("t", None), lists.deserialize("t", None)) == (None, None)
    data = lists.serialize("t", ["abc"])
    assert data is not None
    for size in range(len(data)):
        with pytest.raises(StreamsError):
            lists.deserialize("t", data[:size])
    with pytest.raises(StreamsError, match="values of equal size"):
        lists.deserialize("t", ListSerde("long").serialize("t", [1]))


def test_void_is_null_only() -> None:
    void = serde("void")
    assert void is not None
    assert (void.serialize("t", 5), void.deserialize("t", None)) == (None, None)
    with pytest.raises(StreamsError, match="Data should be null for a VoidDeserializer"):
        void.deserialize("t", b"")
