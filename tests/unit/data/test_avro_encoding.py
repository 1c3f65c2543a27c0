"""Avro's encoding: bytes as the specification has them, evolution, and data made to do harm."""

from __future__ import annotations

import contextlib
import datetime
import json
import time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.data.avro.encoding import AvroDecoder, AvroEncoder
from moldau.data.avro.limits import DEPTH_MAX, EMPTY_ITEMS_MAX
from moldau.data.avro.model import AvroType
from moldau.data.avro.parser import Parser
from moldau.data.errors import DataError


def avro(node: Any) -> AvroType:
    return Parser().parse(json.dumps(node))


def record(*fields: tuple[Any, ...]) -> AvroType:
    listed = [dict(zip(("name", "type", "default"), each, strict=False)) for each in fields]
    return avro({"type": "record", "name": "R", "fields": listed})


@pytest.mark.parametrize(
    ("node", "value", "data"),
    [
        ("null", None, ""),
        ("boolean", True, "01"),
        ("int", -64, "7f"),
        ("long", 64, "8001"),
        ("float", 1.0, "0000803f"),
        ("double", 1.0, "000000000000f03f"),
        ("string", "foo", "06666f6f"),
        ("bytes", b"\xff", "02ff"),
        ({"type": "array", "items": "long"}, [3, 27], "04063600"),
        ({"type": "map", "values": "int"}, {"a": 1}, "0202610200"),
        (["null", "string"], "a", "020261"),
        (["null", "string"], None, "00"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "02"),
        ({"type": "fixed", "name": "F", "size": 2}, b"ab", "6162"),
        ({"type": "int", "logicalType": "date"}, datetime.date(1970, 1, 3), "04"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            Decimal("-1.28"),
            "04ff80",
        ),
        # A logical type that does not fit is none.
        ({"type": "string", "logicalType": "date"}, "x", "0278"),
        ({"type": "bytes", "logicalType": "decimal"}, b"x", "0278"),
    ],
)
def test_a_value_has_the_bytes_of_the_specification(node: Any, value: Any, data: str) -> None:
    schema = avro(node)
    assert AvroEncoder(schema).encode(value).hex() == data
    assert AvroDecoder(schema).decode(bytes.fromhex(data)) == value


def test_without_logical_types_values_are_the_numbers_underneath() -> None:
    schema = avro({"type": "int", "logicalType": "date"})
    assert AvroEncoder(schema, logical_types=False).encode(2) == b"\x04"
    assert AvroDecoder(schema, logical_types=False).decode(b"\x04") == 2


def test_older_data_is_read_with_a_newer_schema() -> None:
    writer = record(("a", "int"), ("gone", "string"))
    inner = {
        "type": "record",
        "name": "I",
        "fields": [
            {"name": "x", "type": "float", "default": "1.5"},
            {"name": "day", "type": {"type": "int", "logicalType": "date"}, "default": 1},
        ],
    }
    reader = record(
        ("a", "double"),
        ("bytes", "bytes", "\u00ff"),
        ("inner", inner, {"x": 2.5}),
        ("maybe", ["null", "I"], None),
        ("list", {"type": "array", "items": "int"}, [1]),
    )
    data = AvroEncoder(writer).encode({"a": 1, "gone": "x"})
    assert AvroDecoder(writer, reader).decode(data) == {
        "a": 1.0,
        "bytes": b"\xff",
        "inner": {"x": 2.5, "day": datetime.date(1970, 1, 2)},
        "maybe": None,
        "list": [1],
    }


def test_a_field_that_is_missing_is_written_with_its_default() -> None:
    schema = record(("a", "bytes", "\u00ff"), ("b", "int"))
    assert AvroEncoder(schema).encode({"b": 1}) == b"\x02\xff\x02"


def test_a_recursive_schema_is_encoded() -> None:
    schema = record(("next", ["null", "R"], None), ("x", "int", 7))
    value = {"next": {"next": None, "x": 1}, "x": 2}
    assert AvroDecoder(schema).decode(AvroEncoder(schema).encode(value)) == value


def test_types_with_and_without_namespace_are_mixed() -> None:
    enum = {"type": "enum", "name": "E", "namespace": "", "symbols": ["A"]}
    fields = [{"name": "a", "type": enum}, {"name": "b", "type": "E"}]
    schema = avro({"type": "record", "name": "x.R", "fields": fields})
    value = {"a": "A", "b": "A"}
    assert AvroDecoder(schema).decode(AvroEncoder(schema).encode(value)) == value


def test_branches_of_a_union_can_be_named() -> None:
    schema = avro(["null", {"type": "fixed", "name": "n.F", "size": 1}, "bytes"])
    data = AvroEncoder(schema).encode(("n.F", b"x"))
    assert AvroDecoder(schema, named_branches=True).decode(data) == ("n.F", b"x")
    assert AvroDecoder(schema).decode(data) == b"x"


@pytest.mark.parametrize("value", [{}, {"a": "x"}, {"a": None}, None, 5])
def test_a_value_that_does_not_fit_is_refused(value: Any) -> None:
    with pytest.raises(DataError, match="does not fit the Avro schema"):
        AvroEncoder(record(("a", "int"))).encode(value)


@given(st.binary(max_size=40))
def test_any_bytes_are_a_value_or_an_error(data: bytes) -> None:
    schema = record(
        ("n", ["null", "R"], None),
        ("m", {"type": "map", "values": {"type": "array", "items": ["null", "string"]}}),
        ("e", {"type": "enum", "name": "E", "symbols": ["A"]}),
        ("d", {"type": "long", "logicalType": "timestamp-millis"}),
        ("x", {"type": "bytes", "logicalType": "decimal", "precision": 4}),
    )
    with contextlib.suppress(DataError):
        AvroDecoder(schema).decode(data)


def test_data_that_nests_without_end_does_not_exhaust_the_stack() -> None:
    decoder = AvroDecoder(record(("next", ["null", "R"], None)))
    assert decoder.decode(b"\x02" * 200 + b"\x00")
    with pytest.raises(DataError, match=f"nested more than {DEPTH_MAX} levels"):
        decoder.decode(b"\x02" * 100_000)


def test_long_data_of_a_recursive_schema_is_read() -> None:
    children = {"type": "array", "items": "R"}
    schema = record(
        ("text", "string"), ("children", children), ("by", {"type": "map", "values": "R"})
    )
    leaf = {"text": "x" * 100, "children": [], "by": {}}
    value = {"text": "", "children": [leaf] * 50, "by": {"a": leaf, "b": leaf}}
    assert AvroDecoder(schema).decode(AvroEncoder(schema).encode(value)) == value


@pytest.mark.parametrize(
    "items",
    [
        "null",
        {"type": "record", "name": "Empty", "fields": []},
        {"type": "fixed", "name": "F", "size": 0},
        {"type": "record", "name": "N", "fields": [{"name": "n", "type": "null"}]},
    ],
    ids=str,
)
def test_items_without_bytes_cannot_fill_the_memory(items: Any) -> None:
    decoder = AvroDecoder(avro({"type": "array", "items": items}))
    assert len(decoder.decode(b"\x06\x00")) == 3
    started = time.perf_counter()
    with pytest.raises(DataError, match="announces 1073741823 items"):
        decoder.decode(b"\xfe\xff\xff\xff\x07\x00")
    assert time.perf_counter() - started < 1
    assert EMPTY_ITEMS_MAX < 1_000_000


def test_a_length_beyond_the_data_is_refused_without_memory_for_it() -> None:
    with pytest.raises(DataError, match="Not data of the Avro schema"):
        AvroDecoder(avro("bytes")).decode(b"\xfe\xff\xff\xff\xff\xff\x03ab")


def test_a_default_that_stands_for_too_many_values_is_refused() -> None:
    def chained(number: int) -> dict[str, Any]:
        pairs = [{"name": f"f{each}", "type": f"R{number + 1}", "default": {}} for each in range(2)]
        return {"type": "record", "name": f"R{number}", "fields": pairs}

    last = {"type": "record", "name": "R20", "fields": [{"name": "x", "type": "int", "default": 0}]}
    with pytest.raises(DataError, match="more than 10000 values"):
        AvroDecoder(avro([*map(chained, range(20)), last]))


def test_records_do_not_share_their_defaults() -> None:
    writer = record(("a", "int"))
    inner = {
        "type": "record",
        "name": "I",
        "fields": [{"name": "m", "type": {"type": "map", "values": "int"}}],
    }
    reader = record(
        ("a", "int"),
        ("list", {"type": "array", "items": "int"}, [1]),
        ("inner", inner, {"m": {"x": 1}}),
    )
    decoder = AvroDecoder(writer, reader)
    first = decoder.decode(b"\x02")
    first["list"].append(2)
    first["inner"]["m"]["y"] = 2
    assert decoder.decode(b"\x02") == {"a": 1, "list": [1], "inner": {"m": {"x": 1}}}


def test_a_default_that_does_not_fit_does_not_hinder_reading() -> None:
    fields = [
        {"name": "a", "type": "int", "default": "x"},
        {"name": "b", "type": "bytes", "default": 5},
    ]
    schema = Parser(strict=False).parse(
        json.dumps({"type": "record", "name": "R", "fields": fields})
    )
    assert AvroDecoder(schema, schema).decode(b"\x02\x00") == {"a": 1, "b": b""}


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("int", 2**31),
        ("int", -(2**31) - 1),
        ({"type": "array", "items": "int"}, [1, 2**31]),
        ({"type": "map", "values": "int"}, {"a": 2**31}),
        ({"type": "record", "name": "I", "fields": [{"name": "i", "type": "int"}]}, {"i": 2**40}),
        (["null", "int"], 2**31),
    ],
    ids=str,
)
def test_an_int_of_more_than_32_bits_is_refused(type_: Any, value: Any) -> None:
    with pytest.raises(DataError, match=r"32 bits|does not fit"):
        AvroEncoder(record(("x", type_))).encode({"x": value})


def test_ints_at_the_bounds_are_written() -> None:
    schema = record(("x", "int"), ("y", "long"))
    for number in (2**31 - 1, -(2**31)):
        value = {"x": number, "y": 2**40}
        assert AvroDecoder(schema).decode(AvroEncoder(schema).encode(value)) == value


def test_an_int_deep_inside_a_recursive_value_is_refused() -> None:
    schema = record(("x", "int"), ("children", {"type": "array", "items": "R"}))
    value = {"x": 1, "children": [{"x": 1, "children": [{"x": 2**31, "children": []}]}]}
    with pytest.raises(DataError, match="32 bits"):
        AvroEncoder(schema).encode(value)
