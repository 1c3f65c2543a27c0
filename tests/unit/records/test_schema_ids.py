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


Headers = tuple[tuple[str, bytes | None], ...]
KEY, VALUE = "__key_schema_id", "__value_schema_id"
GUID = bytes(range(16))


def section(*records: tuple[bytes | None, bytes | None]) -> bytes:
    return with_headers(*((key, value, ()) for key, value in records))


def with_headers(*records: tuple[bytes | None, bytes | None, Headers]) -> bytes:
    made = [Record(at, 0, *each) for at, each in enumerate(records)]
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
def test_headers_name_schemas_in_place_of_the_first_bytes(form: ModuleType) -> None:
    one = b"\x01" + GUID
    other = b"\x01" + GUID[::-1]
    data = with_headers(
        (b"k", b"plain", ((VALUE, one),)),
        # The last of several counts, and what follows the guid says which message it is.
        (b"k", b"", (("h", b"1"), (VALUE, one), ("x", None), (VALUE, other + b"\x00"))),
        (framed(1), framed(2), ((VALUE, b"\x00\x00\x00\x00\x09"), ("h", b""))),
        (framed(1), framed(2), ((KEY, one), (VALUE, b""))),
        (b"k", b"no", ((VALUE[:-1], one), (VALUE + "x", one))),
        (b"k", framed(2), ((VALUE, one[:-1]),)),
        (None, None, ((VALUE, one), (KEY, one))),
    )
    assert found(form, data, 7, True, True) == (
        {1: 2, GUID: 3},
        {GUID: 0, GUID[::-1]: 1, 9: 2, 2: 3},
        [0, 1, 4, 5],
        [4, 5],
        True,
    )


@FORMS
@given(cut=st.integers(0, 80), count=st.integers(0, 9), noise=st.binary(max_size=40))
def test_headers_are_never_read_beyond_their_record(
    form: ModuleType, cut: int, count: int, noise: bytes
) -> None:
    headers = ((VALUE, b"\x01" + GUID), (KEY, None))
    data = with_headers((b"k", b"v", headers), (None, b"v", headers))[:cut] + noise
    found(form, data, count, True, True)


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
            st.lists(
                st.tuples(
                    st.sampled_from([KEY, VALUE, "h"]),
                    st.none() | st.binary(max_size=20) | st.just(b"\x01" + GUID),
                ),
                max_size=3,
            ).map(tuple),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_both_forms_agree(records: list[tuple[bytes | None, bytes | None, Headers]]) -> None:
    data = with_headers(*records)
    assert found(_schema_ids, data, len(records), True, True) == found(
        PLAIN, data, len(records), True, True
    )


@FORMS
def test_how_many_are_told_apart_is_bounded(form: ModuleType) -> None:
    many = 1500
    data = section(*((b"k", framed(each)) for each in range(many)))
    key_ids, value_ids, bad_keys, _, sound = found(form, data, many, True, True)
    assert (len(key_ids), len(value_ids), len(bad_keys), sound) == (0, 1000, 1000, True)
