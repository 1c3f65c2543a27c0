"""What generated encoders write is what fastavro writes; what they do not write is left to it."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.data.avro.encoding import AvroEncoder
from moldau.data.avro.generated import generated_encoder
from moldau.data.avro.language import AvroLanguage
from moldau.data.avro.model import Record
from moldau.data.errors import DataError
from support.examples import examples

PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False) | st.integers(-1000, 1000),
    "double": st.floats(allow_nan=False) | st.integers(-(2**60), 2**60),
    "string": st.text(),
    "bytes": st.binary(),
}
#: A schema, and values of it.
Pair = tuple[Any, st.SearchStrategy[Any]]
NUMBERS = itertools.count()


def record_of(fields: list[Pair]) -> Pair:
    names = [f"f{place}" for place in range(len(fields))]
    schema = {
        "type": "record",
        "name": f"R{next(NUMBERS)}",
        "fields": [
            {"name": name, "type": each[0]} for name, each in zip(names, fields, strict=True)
        ],
    }
    values = {name: each[1] for name, each in zip(names, fields, strict=True)}
    return schema, st.fixed_dictionaries(values)


@st.composite
def pairs(draw: st.DrawFn, depth: int = 0) -> Pair:
    kind = draw(st.sampled_from(["primitive", "array", "map", "optional", "record"]))
    if kind == "primitive" or depth > 2:
        return draw(st.sampled_from(sorted(PRIMITIVES.items(), key=lambda each: each[0])))
    if kind == "record":
        return record_of([draw(pairs(depth + 1)) for _ in range(draw(st.integers(0, 4)))])
    schema, values = draw(pairs(depth + 1))
    if kind == "array":
        return {"type": "array", "items": schema}, st.lists(values, max_size=4)
    if kind == "map":
        return {"type": "map", "values": schema}, st.dictionaries(st.text(), values, max_size=4)
    if schema == "null" or isinstance(schema, list):
        return schema, values
    branches = draw(st.permutations(["null", schema]))
    return list(branches), st.none() | values


def by_fastavro(schema: Any, value: Any) -> bytes:
    buffer = BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(schema), value)
    return buffer.getvalue()


@settings(deadline=None, max_examples=examples(300))
@given(pairs(), st.data())
def test_generated_code_writes_what_fastavro_writes(pair: Pair, data: st.DataObject) -> None:
    schema, values = pair
    encode = generated_encoder(AvroLanguage().parse(json.dumps(schema)).root)
    assert encode is not None
    value = data.draw(values)
    assert encode(value) == by_fastavro(schema, value)


ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 2}},
        {"name": "next", "type": ["null", "Order"], "default": None},
    ],
}
VALUE: dict[str, Any] = {"id": 1, "at": 1000, "kind": "B", "hash": b"12", "next": None}
#: With a union that is left to fastavro, and so the whole schema.
WIDE = {
    **ORDER,
    "fields": [*ORDER["fields"], {"name": "any", "type": ["string", "long", "null"]}],  # type: ignore[misc]
}


@pytest.mark.parametrize(
    "changes", [{}, {"next": VALUE}, {"at": datetime(2026, 1, 2, tzinfo=UTC)}, {"id": 2**63 - 1}]
)
@pytest.mark.parametrize("any_value", [None, "x", 5, ("string", "x")])
def test_values_of_many_types(changes: dict[str, Any], any_value: Any) -> None:
    value = VALUE | changes
    encoder = AvroEncoder(AvroLanguage().parse(json.dumps(ORDER)).root)
    assert encoder.encode(value) == by_fastavro(ORDER, value)
    shorter = {name: each for name, each in value.items() if name != "next"}
    assert encoder.encode(shorter) == by_fastavro(ORDER, shorter)
    wide = AvroEncoder(AvroLanguage().parse(json.dumps(WIDE)).root)
    value = VALUE | changes | {"any": any_value}
    if changes.get("next") is None:
        assert wide.encode(value) == by_fastavro(WIDE, value)


@pytest.mark.parametrize(
    "changes",
    [{"id": "1"}, {"kind": "C"}, {"hash": b"1"}, {"next": {"id": 1}}, {"id": None}, {"at": "now"}],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any]) -> None:
    encoder = AvroEncoder(AvroLanguage().parse(json.dumps(ORDER)).root)
    with pytest.raises(DataError, match="does not fit"):
        encoder.encode(VALUE | changes)


def test_names_are_never_code() -> None:
    name = "x']; raise SystemExit #"
    text = '{"type": "record", "name": "R", "fields": [{"name": "x", "type": "int"}]}'
    parsed = AvroLanguage().parse(text).root
    assert isinstance(parsed, Record)
    # No parser lets such a name through; the generator does not rely on it.
    parsed.fields[0].name = name
    encode = generated_encoder(parsed)
    assert encode is not None
    assert encode({name: 1}) == b"\x02"
