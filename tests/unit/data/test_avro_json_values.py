"""Avro's JSON encoding: what Apache Avro's JsonDecoder reads and its JsonEncoder writes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moldau.data.avro.encoding import AvroDecoder, AvroEncoder
from moldau.data.avro.json_values import from_json, to_json
from moldau.data.avro.language import AvroLanguage
from moldau.data.avro.model import AvroType
from moldau.data.errors import DataError


def parsed(schema: Any) -> AvroType:
    return AvroLanguage().parse(json.dumps(schema)).root


def record(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": "R",
        "namespace": "n",
        "fields": [{"name": name, "type": kind} for name, kind in fields],
    }


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ("string", "é"),
        ("boolean", True),
        ("int", -7),
        ("long", 2**62),
        ("float", 0.1),
        ("double", 1e300),
        ("double", "NaN"),
        ("double", "-Infinity"),
        ("bytes", "\u0000ÿ"),
        ({"type": "fixed", "name": "F", "size": 2}, "ab"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B"),
        ({"type": "array", "items": ["null", "int"]}, [None, {"int": 1}]),
        ({"type": "map", "values": "string"}, {"a": "b"}),
        (record(("a", ["null", "string"])), {"a": {"string": "x"}}),
        (record(("a", ["null", "string"])), {"a": None}),
        (record(("a", ["null", "n.R"])), {"a": {"n.R": {"a": None}}}),
        (record(("a", ["null", {"type": "array", "items": "int"}])), {"a": {"array": [1]}}),
        (record(("a", ["null", {"type": "map", "values": "int"}])), {"a": {"map": {"k": 1}}}),
        (record(("a", ["bytes", "string", "boolean"])), {"a": {"bytes": "x"}}),
        (record(("d", {"type": "int", "logicalType": "date"})), {"d": 19000}),
    ],
)
def test_through_bytes_and_back(schema: Any, value: Any) -> None:
    root = parsed(schema)
    data = AvroEncoder(root, logical_types=False).encode(from_json(root)(value))
    decoded = AvroDecoder(root, named_branches=True, logical_types=False).decode(data)
    assert to_json(root)(decoded) == value


def test_a_union_at_the_top_is_shown_as_its_branch_alone() -> None:
    root = parsed(["null", "string"])
    assert to_json(root)("x") == "x"
    assert to_json(root)(None) is None


def test_the_named_branch_is_the_one_that_is_written() -> None:
    root = parsed(["null", "int", "long", "float", "double"])
    encode = AvroEncoder(root, logical_types=False).encode
    assert encode(from_json(root)({"long": 1})) == b"\x04\x02"
    assert encode(from_json(root)({"int": 1})) == b"\x02\x02"
    assert encode(from_json(root)({"float": 1}))[:1] == b"\x06"


@pytest.mark.parametrize(
    ("schema", "value", "reason"),
    [
        (record(("a", "int"), ("b", "int")), {"b": 1}, "Expected field name not found: a"),
        (record(("a", "int")), {"x": 1, "a": 1}, "Unknown fields: [x]"),
        (record(("a", "int")), {"a": "1"}, "a: Expected an int, but got '1'"),
        (record(("a", "int")), {"a": 2**31}, "out of range of int"),
        (record(("a", "int")), {"a": 1.5}, "Expected an int"),
        (record(("a", "int")), {"a": True}, "Expected an int"),
        (record(("a", "int")), [], "Expected a record n.R"),
        (record(("a", ["null", "string"])), {"a": "x"}, 'such as {"string": ...}'),
        (record(("a", ["int", "string"])), {"a": None}, "Expected one of int, string"),
        ("bytes", "Ā", "every character stands for one byte"),
        ({"type": "fixed", "name": "F", "size": 2}, "a", "Expected fixed length 2, but got 1"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "Z", "Unknown symbol in enum E"),
        ({"type": "array", "items": "int"}, [1, "x"], "[1]: Expected an int"),
        ({"type": "map", "values": "int"}, {"k": None}, "k: Expected an int"),
        ("null", 0, "Expected null"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(schema: Any, value: Any, reason: str) -> None:
    with pytest.raises(DataError) as refused:
        from_json(parsed(schema))(value)
    assert reason in str(refused.value)


def test_fields_after_the_last_are_passed_over_as_in_avro() -> None:
    assert from_json(parsed(record(("a", "int"))))({"a": 1, "x": 2}) == {"a": 1}


def test_a_value_may_not_be_deeper_than_the_stack() -> None:
    value: Any = None
    for _ in range(100_000):
        value = {"a": {"n.R": {"a": None} if value is None else value}}
    with pytest.raises(DataError, match="nested too deeply"):
        from_json(parsed(record(("a", ["null", "n.R"]))))(value)
