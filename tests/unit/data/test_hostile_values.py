"""Texts and messages made to do harm end in an error, or in what they say, and quickly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.data.builders import STRING
from moldau.data.connect_json import JsonConverter, JsonOptions
from moldau.data.errors import DataError
from moldau.data.schema import SchemaAndValue
from moldau.data.value_text import parse_string
from moldau.data.values import to_text

MARKS = st.sampled_from(["[", "]", "{", "}", ",", ":", '"', "\\", "1", "null", "1e9", "a", " "])


@given(st.lists(MARKS, max_size=12).map("".join))
def test_every_text_has_a_value_that_can_be_printed(text: str) -> None:
    found = parse_string(text)
    if found.value is not None:
        assert to_text(found.value, found.schema) is not None


@pytest.mark.parametrize(
    "text",
    [
        "[" * 10_000,
        "{" * 10_000,
        '{"a":' * 10_000,
        "1e99999999999999999999",
        "-1e-99999999999999999999",
    ],
    ids=lambda text: text[:10],
)
def test_a_text_without_end_is_a_text(text: str) -> None:
    assert parse_string(text) == SchemaAndValue(STRING, text)


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"1e99999999999999999999",
        b"9" * 100_000,
        b'"\xff"',
        b"\xfe\xff",
        b"NaN",
        b'{"schema":{"type":"int8","default":"x","optional":5},"payload":1} x',
        b'{"schema":' + b'{"type":"array","items":' * 100_000,
    ],
    ids=lambda data: data[:12],
)
def test_a_message_that_is_no_value_is_refused(data: bytes) -> None:
    for enable in (True, False):
        with pytest.raises(DataError):
            JsonConverter(JsonOptions(schemas_enable=enable)).from_json(data)


@given(st.binary(max_size=30))
def test_any_bytes_are_a_message_or_an_error(data: bytes) -> None:
    try:
        found = JsonConverter(JsonOptions(schemas_enable=False)).from_json(data)
    except DataError:
        return
    assert found.schema is None


def test_a_large_exponent_is_cut_and_not_written_out() -> None:
    message = b'{"schema":{"type":"int64"},"payload":1e100000000}'
    assert JsonConverter().from_json(message).value == 0
    message = b'{"schema":{"type":"double"},"payload":1e100000000}'
    assert JsonConverter().from_json(message).value == float("inf")


def test_a_message_that_only_begins_like_the_one_before_is_refused() -> None:
    converter = JsonConverter()
    start = b'{"schema":{"type":"int32"},"payload":'
    assert converter.from_json(start + b"1}").value == 1
    assert converter.from_json(start + b"2}").value == 2
    for rest in (b'1,"x":2}', b"1}}", b"1", b"}", b'1,"schema":{"type":"string"}}', b"1 }x"):
        if rest == b'1,"schema":{"type":"string"}}':
            # The last of two schemas counts.
            assert converter.from_json(start + rest).schema == STRING
            continue
        with pytest.raises(DataError):
            converter.from_json(start + rest)
    assert converter.from_json(b'{"schema":{"type":"string"},"payload":"x"}').value == "x"
