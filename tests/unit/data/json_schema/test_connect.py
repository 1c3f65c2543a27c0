"""Between Connect's schemas and values and JSON Schema."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.data.builders import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    OPTIONAL_INT32,
    OPTIONAL_STRING,
    STRING,
    array,
    map_of,
    struct,
    with_default,
)
from moldau.data.errors import DataError
from moldau.data.json_schema import JsonSchemaLanguage, JsonSchemaValidator
from moldau.data.json_schema.connect import (
    JsonSchemaDataConfig,
    schema_from_connect,
    schema_to_connect,
    value_from_connect,
    value_to_connect,
)
from moldau.data.logical import DATE, TIME, TIMESTAMP, decimal
from moldau.data.schema import Schema, Type
from moldau.data.struct import Struct
from support.examples import examples

ONE_OF = "io.confluent.connect.json.OneOf"
ENUM = "io.confluent.connect.json.Enum"


def to_connect(document: Any, **settings: Any) -> Schema:
    parsed = JsonSchemaLanguage().parse(json.dumps(document))
    return schema_to_connect(parsed, JsonSchemaDataConfig(**settings))


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (INT8, '{"type":"integer","connect.type":"int8"}'),
        (FLOAT32, '{"type":"number","connect.type":"float32"}'),
        (BOOLEAN, '{"type":"boolean"}'),
        (STRING, '{"type":"string"}'),
        (BYTES, '{"type":"string","connect.type":"bytes"}'),
        (
            decimal(2),
            '{"type":"string","title":"org.apache.kafka.connect.data.Decimal","connect.version":1,'
            '"connect.type":"bytes","connect.parameters":{"scale":"2"}}',
        ),
        (
            DATE,
            '{"type":"integer","title":"org.apache.kafka.connect.data.Date","connect.version":1,'
            '"connect.type":"int32"}',
        ),
        (OPTIONAL_STRING, '{"oneOf":[{"type":"null"},{"type":"string"}]}'),
        (array(INT64), '{"type":"array","items":{"type":"integer","connect.type":"int64"}}'),
        (
            map_of(STRING, INT16),
            '{"type":"object","connect.type":"map","additionalProperties":{"type":"integer",'
            '"connect.type":"int16"}}',
        ),
        (
            map_of(INT32, STRING),
            '{"type":"array","connect.type":"map","items":{"type":"object","properties":{'
            '"value":{"type":"string","connect.index":1},'
            '"key":{"type":"integer","connect.index":0,"connect.type":"int32"}}}}',
        ),
        (
            struct({"a": with_default(INT32, 5), "b": OPTIONAL_STRING}, name="Row", doc="A row"),
            '{"type":"object","title":"Row","description":"A row","properties":{'
            '"a":{"type":"integer","default":5,"connect.index":0,"connect.type":"int32"},'
            '"b":{"connect.index":1,"oneOf":[{"type":"null"},{"type":"string"}]}}}',
        ),
    ],
)
def test_schemas_are_written_as_confluents_converter_writes_them(schema: Schema, text: str) -> None:
    written = schema_from_connect(schema)
    assert json.loads(written.canonical_text) == json.loads(text)
    assert schema_to_connect(written) == schema


def test_the_text_of_a_decimal_is_that_of_confluents_converter() -> None:
    # As in a test of Confluent's registry.
    assert schema_from_connect(decimal(2)).canonical_text == (
        '{"type":"string","title":"org.apache.kafka.connect.data.Decimal","connect.version":1,'
        '"connect.type":"bytes","connect.parameters":{"scale":"2"}}'
    )


@pytest.mark.parametrize(
    ("document", "schema"),
    [
        ({"type": "integer"}, INT64),
        ({"type": "number"}, FLOAT64),
        ({"type": ["string", "null"]}, OPTIONAL_STRING),
        ({"oneOf": [{"type": "null"}, {"type": "string"}]}, OPTIONAL_STRING),
        ({"oneOf": [{"type": "string"}]}, STRING),
        ({"type": "integer", "format": "int32"}, INT64),
        ({"type": "integer", "const": 123}, INT64),
        ({"type": "string", "const": "money"}, STRING),
        (
            {"enum": ["a", "b"]},
            Schema(type=Type.STRING, parameters={ENUM: "", f"{ENUM}.a": "a", f"{ENUM}.b": "b"}),
        ),
        (
            {"type": "string", "enum": ["a"]},
            Schema(type=Type.STRING, parameters={ENUM: "", f"{ENUM}.a": "a"}),
        ),
        (
            {"title": "Row", "description": "A row", "properties": {"b": {"type": "boolean"}}},
            struct({"b": BOOLEAN}, name="Row", doc="A row"),
        ),
        (
            {
                "properties": {
                    "b": {"type": "string", "connect.index": 1},
                    "a": {"type": "string", "connect.index": 0},
                }
            },
            struct({"a": STRING, "b": STRING}),
        ),
        (
            {
                "allOf": [
                    {"properties": {"a": {"type": "string"}}},
                    {"$ref": "#/definitions/more"},
                ],
                "definitions": {"more": {"properties": {"b": {"type": "boolean"}}}},
            },
            struct({"a": STRING, "b": BOOLEAN}),
        ),
        (
            {"oneOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
            struct(
                {f"{ONE_OF}.field.0": OPTIONAL_STRING, f"{ONE_OF}.field.1": INT64.as_optional()},
                name=ONE_OF,
                optional=True,
            ),
        ),
        (
            {
                "properties": {"a": {"$ref": "#/definitions/t"}},
                "definitions": {"t": {"type": "string"}},
            },
            struct({"a": STRING}),
        ),
        ({"type": "string", "default": "x"}, with_default(STRING, "x")),
    ],
)
def test_schemas_are_read(document: Any, schema: Schema) -> None:
    assert to_connect(document) == schema


def test_a_union_has_the_general_names_if_asked_for() -> None:
    schema = to_connect(
        {"oneOf": [{"type": "string"}, {"enum": ["x"]}]}, generalized_sum_type_support=True
    )
    assert schema.name == "connect_union_0"
    assert schema.parameters == {"org.apache.kafka.connect.data.Union": "connect_union_0"}
    assert [field.name for field in schema.fields] == [
        "connect_union_field_0",
        "connect_union_field_1",
    ]
    assert schema.fields[1].schema.parameters["org.apache.kafka.connect.data.Enum.x"] == "0"


def test_properties_that_are_not_required_are_optional_if_asked_for() -> None:
    document = {"properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a"]}
    expected = struct({"a": STRING, "b": OPTIONAL_STRING})
    assert to_connect(document, use_optional_for_nonrequired=True) == expected


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"type": "array"}, "did not specify the items type"),
        ({"type": "null"}, "Unsupported schema type"),
        ({"not": {}}, "Unsupported schema type"),
        ({"type": "integer", "connect.type": "int128"}, "Unsupported type int128"),
        ({"title": "Node", "properties": {"next": {"$ref": "#"}}}, "Node is inside itself"),
        ({"type": "object", "connect.type": "map"}, "additionalProperties"),
        ({"type": "integer", "connect.type": [1]}, "Unsupported type"),
        ({"type": "string", "connect.parameters": {"a": [1]}}, "must be an object of strings"),
        ({"type": "string", "connect.parameters": 5}, "must be an object of strings"),
    ],
)
def test_what_connect_has_no_schema_for_is_an_error(document: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        to_connect(document)


def test_definitions_that_are_used_very_often_are_read_once() -> None:
    definitions: dict[str, Any] = {"d40": {"type": "string"}}
    for level in range(40):
        below = {"$ref": f"#/definitions/d{level + 1}"}
        definitions[f"d{level}"] = {"properties": {"a": below, "b": below}}
    document = {"$ref": "#/definitions/d0", "definitions": definitions}
    assert to_connect(document).type is Type.STRUCT
    with pytest.raises(DataError, match="more than 20000 parts"):
        to_connect(document, generalized_sum_type_support=True)


@pytest.mark.parametrize(
    ("schema", "value", "written"),
    [
        (INT64, 5, 5),
        (BYTES, b"\x00\xff", "AP8="),
        (decimal(2), Decimal("1.56"), "AJw="),
        (DATE, datetime.date(1970, 1, 11), 10),
        (TIME, datetime.time(0, 0, 1), 1000),
        (TIMESTAMP, datetime.datetime(1970, 1, 1, 0, 0, 2, tzinfo=datetime.UTC), 2000),
        (array(OPTIONAL_INT32), [1, None], [1, None]),
        (map_of(STRING, INT32), {"a": 1}, {"a": 1}),
        (map_of(INT32, STRING), {1: "a"}, [{"key": 1, "value": "a"}]),
        (OPTIONAL_STRING, None, None),
    ],
)
def test_values_go_both_ways(schema: Schema, value: Any, written: Any) -> None:
    assert value_from_connect(schema, value) == written
    assert value_to_connect(schema, written) == value


def test_a_decimal_may_be_a_number() -> None:
    config = JsonSchemaDataConfig(decimal_format="NUMERIC")
    assert value_from_connect(decimal(2), Decimal("1.56"), config) == Decimal("1.56")
    assert value_to_connect(decimal(2), Decimal("1.56")) == Decimal("1.56")
    assert json.loads(schema_from_connect(decimal(2), config).canonical_text)["type"] == "number"


def test_a_struct_leaves_out_what_is_missing_and_takes_defaults() -> None:
    schema = struct({"a": with_default(INT32, 5), "b": OPTIONAL_STRING, "c": STRING})
    value = Struct(schema, {"c": "x"})
    assert value_from_connect(schema, value) == {"a": 5, "b": None, "c": "x"}
    read = value_to_connect(schema, {"c": "x"})
    assert (read["a"], read["b"], read["c"]) == (5, None, "x")


def test_the_fields_of_a_union_are_told_apart() -> None:
    schema = to_connect(
        {
            "oneOf": [
                {"type": "string"},
                {"properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
                {"properties": {"a": {"type": "string"}, "c": {"type": "string"}}},
            ]
        }
    )
    text = value_to_connect(schema, "x")
    assert text[f"{ONE_OF}.field.0"] == "x"
    assert value_from_connect(schema, text) == "x"
    chosen = value_to_connect(schema, {"a": "1", "c": "2"})
    assert chosen[f"{ONE_OF}.field.2"].as_dict() == {"a": "1", "c": "2"}
    assert value_from_connect(schema, chosen) == {"a": "1", "c": "2"}
    with pytest.raises(DataError, match="Did not find matching oneof field"):
        value_to_connect(schema, 5)


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        (INT8, 128, "does not fit INT8"),
        (INT32, "1", "Invalid value for INT32: str"),
        (INT32, True, "Invalid value for INT32: bool"),
        (INT32, None, "Invalid null value for required INT32"),
        (STRING, 1, "Invalid value for STRING"),
        (BYTES, "?", "Invalid bytes field"),
        (array(STRING), {}, "Invalid value for ARRAY"),
        (map_of(STRING, STRING), [], "encoded as JSON objects"),
        (map_of(INT32, STRING), {}, "JSON array of objects"),
        (map_of(INT32, STRING), [{"key": 1}], "invalid map entry"),
        (struct({"a": STRING}), [], "Structs should be encoded as JSON objects"),
    ],
)
def test_values_that_do_not_fit_are_errors(schema: Schema, value: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        value_to_connect(schema, value)


def test_a_value_that_contains_itself_is_an_error() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(DataError, match="contains itself"):
        value_from_connect(None, value)


SCHEMAS = st.recursive(
    st.sampled_from([INT8, INT32, INT64, FLOAT64, BOOLEAN, STRING, BYTES, DATE, TIME, decimal(3)]),
    lambda inner: st.one_of(
        inner.map(Schema.as_optional),
        inner.map(array),
        inner.map(lambda values: map_of(STRING, values)),
        inner.map(lambda values: map_of(INT32, values)),
        st.dictionaries(st.sampled_from("abcdef"), inner, min_size=1, max_size=4).map(
            lambda fields: struct(fields, name="Row", version=2)
        ),
    ),
    max_leaves=8,
)
_LEAVES: dict[str, st.SearchStrategy[Any]] = {
    "int8": st.integers(-128, 127),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False, allow_infinity=False),
    "boolean": st.booleans(),
    "string": st.text(max_size=5),
    "bytes": st.binary(max_size=5),
}


def values_of(schema: Schema) -> st.SearchStrategy[Any]:
    """Values of a schema, as Connect has them."""
    values = required_values_of(schema)
    return st.none() | values if schema.optional else values


def required_values_of(schema: Schema) -> st.SearchStrategy[Any]:
    if schema.name == DATE.name:
        return st.dates()
    if schema.name == TIME.name:
        return st.times().map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000, fold=0))
    if schema.name == decimal(3).name:
        return st.integers(-(10**20), 10**20).map(lambda n: Decimal(n).scaleb(-3))
    match schema.type:
        case Type.ARRAY:
            return st.lists(values_of(schema.items), max_size=3)
        case Type.MAP:
            return st.dictionaries(values_of(schema.keys), values_of(schema.items), max_size=3)
        case Type.STRUCT:
            fields = {field.name: values_of(field.schema) for field in schema.fields}
            return st.fixed_dictionaries(fields).map(lambda values: Struct(schema, values))
        case _:
            return _LEAVES[schema.type.value]


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_schemas_and_values_come_back_as_they_were(data: st.DataObject) -> None:
    schema = data.draw(SCHEMAS)
    value = data.draw(values_of(schema))
    document = schema_from_connect(schema)
    written = value_from_connect(schema, value)

    assert schema_to_connect(document) == schema
    assert JsonSchemaValidator(document).problems(written) == []
    assert value_to_connect(schema, json.loads(json.dumps(written))) == value
