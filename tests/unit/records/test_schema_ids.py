"""The ids of schemas in a batch, by the compiled and the plain form."""

from __future__ import annotations

import struct
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import moldau.wire
from moldau.wire import _schema_ids
from moldau.wire._record_codec import Record, encode_records
from support.plain import load_plain

PLAIN = load_plain(moldau.wire, "_schema_ids")
FORMS = pytest.mark.parametrize("form", [_schema_ids, PLAIN], ids=["installed", "plain"])


def section(*records: tuple[bytes | None, bytes | None]) -> bytes:
    made = [Record(at, 0, key, value, ()) for at, (key, value) in enumerate(records)]
    return bytes(encode_records(made, 0, 0, 0)[0])


def framed(schema_id: int, payload: bytes = b"x") -> bytes:
    return struct.pack(">bI", 0, schema_id) + payload


def found(form: ModuleType, data: bytes, count: int, keys: bool, values: bool) -> Any:
    ids = form.schema_ids(data, 0, len(data), count, keys, values)
    return ids.key_ids, ids.value_ids, ids.bad_keys, ids.bad_values, ids.sound


@FORMS
def test_ids_are_collected_once_with_their_first_record(form: ModuleType) -> None:
    data = section(
        (framed(7), framed(1)),
        (None, framed(1)),
        (b"plain", framed(2**31)),
        (framed(7), None),
        (framed(8), b"\x00\x00\x00\x01"),
        (framed(8), b""),
        (framed(8), b"\x01\x00\x00\x00\x01x"),
    )
    assert found(form, data, 7, True, True) == (
        {7: 0, 8: 4},
        {1: 0, 2**31: 2},
        [2],
        [4, 5, 6],
        True,
    )
    assert found(form, data, 7, False, True)[0] == {}
    assert found(form, data, 7, True, False)[1:4] == ({}, [2], [])


@FORMS
@given(cut=st.integers(0, 60), count=st.integers(0, 9), noise=st.binary(max_size=40))
def test_what_is_not_sound_is_never_read_beyond_its_end(
    form: ModuleType, cut: int, count: int, noise: bytes
) -> None:
    data = section((framed(1), framed(2)), (framed(3), framed(4)))[:cut] + noise
    found(form, data, count, True, True)


@given(
    records=st.lists(
        st.tuples(
            st.none() | st.binary(max_size=8) | st.builds(framed, st.integers(0, 3)),
            st.none() | st.binary(max_size=8) | st.builds(framed, st.integers(0, 3)),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_both_forms_agree(records: list[tuple[bytes | None, bytes | None]]) -> None:
    data = section(*records)
    assert found(_schema_ids, data, len(records), True, True) == found(
        PLAIN, data, len(records), True, True
    )


@FORMS
def test_how_many_are_told_apart_is_bounded(form: ModuleType) -> None:
    many = 1500
    data = section(*((b"k", framed(each)) for each in range(many)))
    key_ids, value_ids, bad_keys, _, sound = found(form, data, many, True, True)
    assert (len(key_ids), len(value_ids), len(bad_keys), sound) == (0, 1000, 1000, True)
