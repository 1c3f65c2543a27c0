"""Concatenated JSON, in whatever pieces it arrives."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.http.machine.errors import HttpError
from moldau.http.machine.json_text import load_all_json
from moldau.services.rest.machine.json_stream import InvalidStream, JsonStream

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
OBJECTS = st.lists(st.dictionaries(st.text(), VALUES), max_size=5)


def read(pieces: list[bytes]) -> list[Any]:
    stream = JsonStream(bytes_max=1_000_000)
    found = [json.loads(each) for piece in pieces for each in stream.feed(piece)]
    assert stream.is_complete
    return found


@given(OBJECTS, st.sampled_from(["", " ", "\n", "\r\n\t"]), st.integers(1, 7), st.booleans())
def test_any_objects_in_any_pieces(
    objects: list[Any], space: str, size: int, ascii_only: bool
) -> None:
    text = space.join(json.dumps(each, ensure_ascii=ascii_only) for each in objects) + space
    data = text.encode()
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    assert read(pieces) == objects
    assert load_all_json(data) == objects


@given(OBJECTS)
def test_an_array_is_as_good(objects: list[Any]) -> None:
    data = json.dumps(objects).encode()
    assert read([data[:3], data[3:]]) == objects
    assert load_all_json(data) == objects


@pytest.mark.parametrize("data", [b"1", b'"a"', b"{}x", b"{}]", b"[1]", b"null", b"}"])
def test_what_is_no_object_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidStream, match="an object is expected"):
        JsonStream(bytes_max=100).feed(data)


@pytest.mark.parametrize("data", [b"{", b'{"a":"', b'{"a":"\\', b"[{}", b'{"a":[1}'])
def test_what_has_not_ended_is_not_complete(data: bytes) -> None:
    stream = JsonStream(bytes_max=100)
    assert stream.feed(data) in ([], [b"{}"])
    assert not stream.is_complete


def test_one_object_is_bounded_and_many_are_not() -> None:
    stream = JsonStream(bytes_max=100)
    for _ in range(1000):
        assert stream.feed(b'{"a": 1}') == [b'{"a": 1}']
    with pytest.raises(InvalidStream, match="more than 100 bytes"):
        stream.feed(b'{"a": "' + b"x" * 200)


@pytest.mark.parametrize("data", [b"{}{", b"{} x", b"\xff", b'{"a": NaN}'])
def test_a_whole_body_that_is_not_json_is_a_bad_request(data: bytes) -> None:
    with pytest.raises(HttpError) as caught:
        load_all_json(data)
    assert caught.value.status == 400
