"""Connect's schemas in Avro look as Confluent's converter writes them."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import pytest

from moldau.data import builders, logical
from moldau.data.avro.connect_data import AvroData
from moldau.data.avro.connect_names import AvroDataOptions
from moldau.data.avro.language import AvroLanguage
from moldau.data.avro.parser import NESTING_MAX
from moldau.data.builders import INT32, INT64, STRING, array, map_of, struct, with_default
from moldau.data.errors import DataError, OptionError
from moldau.data.schema import Schema, Type
from moldau.data.struct import Struct

PREFIX = "io.confluent.connect.avro"


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (INT32, '"int"'),
        (builders.OPTIONAL_INT64, '["null","long"]'),
        (builders.INT8, '{"type":"int","connect.type":"int8"}'),
        (builders.OPTIONAL_INT16, '["null",{"type":"int","connect.type":"int16"}]'),
        (
            logical.DATE,
            '{"type":"int","connect.version":1,'
            '"connect.name":"org.apache.kafka.connect.data.Date","logicalType":"date"}',
        ),
        (
            logical.decimal(2),
            '{"type":"bytes","scale":2,"precision":64,"connect.version":1,'
            '"connect.parameters":{"scale":"2"},'
            '"connect.name":"org.apache.kafka.connect.data.Decimal","logicalType":"decimal"}',
        ),
        (
            with_default(builders.OPTIONAL_STRING, "x"),
            '[{"type":"string","connect.default":"x"},"null"]',
        ),
        (
            struct({"a": builders.OPTIONAL_INT32, "b": with_default(STRING, "x")}, name="n.R"),
            '{"type":"record","name":"R","namespace":"n","fields":['
            '{"name":"a","type":["null","int"],"default":null},'
            '{"name":"b","type":{"type":"string","connect.default":"x"},"default":"x"}'
            '],"connect.name":"n.R"}',
        ),
        (
            array(INT32, doc="d", version=3, parameters={"k": "v"}),
            '{"type":"array","items":"int","connect.doc":"d","connect.version":3,'
            '"connect.parameters":{"k":"v"}}',
        ),
        (
            map_of(INT32, STRING),
            '{"type":"array","items":{"type":"record","name":"MapEntry",'
            f'"namespace":"{PREFIX}","fields":['
            '{"name":"key","type":"int"},{"name":"value","type":"string"}]}}',
        ),
        (
            struct({"s": struct({}), "t": struct({"x": INT32})}),
            f'{{"type":"record","name":"ConnectDefault","namespace":"{PREFIX}","fields":['
            '{"name":"s","type":{"type":"record","name":"ConnectDefault2","fields":[]}},'
            '{"name":"t","type":{"type":"record","name":"ConnectDefault3","fields":['
            '{"name":"x","type":"int"}]}}]}',
        ),
    ],
)
def test_a_schema_is_written_as_confluent_writes_it(schema: Schema, text: str) -> None:
    data = AvroData()
    assert data.avro_schema(schema).canonical_text == text
    assert data.connect_schema(data.avro_schema(schema)) == schema


def test_without_meta_data_only_the_types_are_written() -> None:
    data = AvroData(AvroDataOptions(connect_meta_data=False))
    schema = struct({"a": builders.INT8.replace(doc="d")}, name="R", version=2)
    assert data.avro_schema(schema).canonical_text == (
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
    )


def connect(node: Any, **options: bool) -> Schema:
    data = AvroData(AvroDataOptions(**options))
    schema = data.connect_schema(AvroLanguage().parse(json.dumps(node)))
    assert schema is not None
    return schema


def test_an_enum_is_a_string_that_knows_its_symbols() -> None:
    node = {"type": "enum", "name": "a.E", "symbols": ["X", "Y"], "doc": "d", "default": "Y"}
    schema = connect(node)
    assert (schema.type, schema.name) == (Type.STRING, "a.E")
    assert schema.parameters == {
        f"{PREFIX}.enum.doc.E": "d",
        f"{PREFIX}.enum.default.E": "Y",
        f"{PREFIX}.Enum": "a.E",
        f"{PREFIX}.Enum.X": "X",
        f"{PREFIX}.Enum.Y": "Y",
    }
    enhanced = AvroData(AvroDataOptions(enhanced_avro_schema_support=True))
    written = enhanced.avro_schema(schema)
    assert json.loads(written.canonical_text)["type"] == "enum"
    assert enhanced.connect_schema(written) == schema
    assert enhanced.from_avro(written, enhanced.to_avro(schema, "Y")).value == "Y"


def test_docs_and_defaults_of_fields_come_back() -> None:
    field = {"name": "a", "type": "int", "default": 7, "doc": "a field"}
    node = {"type": "record", "name": "R", "doc": "a record", "fields": [field]}
    schema = connect(node)
    assert schema.fields[0].schema.default == 7
    assert schema.fields[0].schema.parameters == {f"{PREFIX}.field.default": "true"}
    assert schema.parameters == {
        f"{PREFIX}.record.doc": "a record",
        f"{PREFIX}.field.doc.a": "a field",
    }
    written = json.loads(AvroData().avro_schema(schema).canonical_text)
    assert written["doc"] == "a record"
    assert written["fields"] == [field]


def test_a_union_is_a_struct_with_one_field_set() -> None:
    record = {"type": "record", "name": "n.R", "fields": [{"name": "x", "type": "int"}]}
    other = {"type": "record", "name": "n.S", "fields": [{"name": "x", "type": "int"}]}
    avro = AvroLanguage().parse(json.dumps(["null", "int", "string", record, other]))
    data = AvroData()
    schema = data.connect_schema(avro)
    assert schema is not None
    assert schema.name == f"{PREFIX}.Union"
    assert schema.optional
    assert [each.name for each in schema.fields] == ["int", "string", "R", "S"]
    for name, value in {"int": 5, "string": "s", "S": {"x": 1}}.items():
        field = schema.field(name)
        assert field is not None
        held = Struct(field.schema, value) if isinstance(value, dict) else value
        given = Struct(schema, {name: held})
        found = data.from_avro(avro, data.to_avro(schema, given))
        assert found.value == given
    assert data.from_avro(avro, data.to_avro(schema, None)).value is None


def test_a_map_with_other_keys_is_an_array_of_entries() -> None:
    data = AvroData()
    schema = map_of(INT64, builders.OPTIONAL_STRING, name="n.Entries")
    avro = data.avro_schema(schema)
    assert json.loads(avro.canonical_text)["items"]["connect.internal.type"] == "MapEntry"
    value = {1: "a", 2: None}
    found = data.from_avro(avro, data.to_avro(schema, value))
    assert (found.schema, found.value) == (schema, value)


def test_logical_values_come_back() -> None:
    schema = struct(
        {
            "d": logical.DATE,
            "t": logical.TIME,
            "ts": logical.TIMESTAMP.as_optional(),
            "n": logical.decimal(3, precision=9),
        },
        name="R",
    )
    value = Struct(
        schema,
        {
            "d": datetime.date(1969, 12, 31),
            "t": datetime.time(1, 2, 3, 4000),
            "ts": datetime.datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=datetime.UTC),
            "n": Decimal("-1.500"),
        },
    )
    data = AvroData()
    assert data.from_avro(data.avro_schema(schema), data.to_avro(schema, value)).value == value


def test_a_decimal_in_fixed_bytes_is_padded() -> None:
    fixed = {"type": "fixed", "name": "F", "size": 4, "logicalType": "decimal"}
    avro = AvroLanguage().parse(json.dumps(fixed | {"precision": 9, "scale": 2}))
    data = AvroData()
    schema = data.connect_schema(avro)
    assert data.to_avro(schema, Decimal("-1.28")) == b"\xff\xff\xff\x80"
    assert data.from_avro(avro, b"\x00\x00\x00\x80").value == Decimal("1.28")
    with pytest.raises(DataError, match="more than the 4"):
        data.to_avro(schema, Decimal("1000000000.00"))


@pytest.mark.parametrize("value", [None, True, 5, 2.5, "x", b"y", [1, [None]], {"a": {1: "b"}}])
def test_values_without_schema_are_written_as_anything(value: Any) -> None:
    data = AvroData()
    avro = data.avro_schema(None)
    assert avro.name == f"{PREFIX}.Anything"
    found = data.from_avro(avro, data.to_avro(None, value))
    assert (found.schema, found.value) == (None, value)


def test_the_version_of_the_subject_is_taken_if_the_schema_has_none() -> None:
    avro = AvroLanguage().parse('{"type":"record","name":"R","fields":[]}')
    schema = AvroData().connect_schema(avro, 4)
    assert schema is not None
    assert schema.version == 4


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ("null", "Standalone null"),
        ({"type": "int", "connect.type": "int4"}, "int8 or int16, not int4"),
        ({"type": "int", "connect.version": "x"}, "Invalid Connect version"),
        ({"type": "int", "connect.name": 5}, "Invalid schema name"),
        ({"type": "int", "connect.parameters": {"a": 1}}, "to be strings"),
        ({"type": "int", "logicalType": "date", "connect.name": "x"}, "Mismatched names"),
        ({"type": "record", "name": "R", "fields": [{"name": "r", "type": "R"}]}, "holds itself"),
    ],
)
def test_what_connect_has_no_schema_for_is_refused(node: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        connect(node)


def test_two_structs_of_one_name_must_be_the_same() -> None:
    schema = struct({"a": struct({"x": INT32}, name="S"), "b": struct({"x": INT64}, name="S")})
    with pytest.raises(DataError, match="Two different schemas are called S"):
        AvroData().avro_schema(schema)


def test_a_name_that_avro_does_not_allow_is_refused() -> None:
    with pytest.raises(DataError, match="Illegal character in: my-name"):
        AvroData().avro_schema(struct({}, name="my-name"))


def test_names_are_scrubbed_on_demand() -> None:
    options = AvroDataOptions.from_config({"scrub.invalid.names": "true", "other": "x"})
    data = AvroData(options)
    schema = struct({"a b": INT32, "1": INT32, "ü~": INT32, "ok": INT32}, name="my-ns.my-name")
    avro = data.avro_schema(schema)
    assert avro.name == "my_ns.my_name"
    fields = [each["name"] for each in json.loads(avro.canonical_text)["fields"]]
    assert fields == ["a_b", "x1", "_C3_BC_7E", "ok"]
    value = Struct(schema, {each.name: 1 for each in schema.fields})
    found = data.from_avro(avro, data.to_avro(schema, value))
    assert found.schema is not None
    assert found.schema.name == "my-ns.my-name"
    assert found.value.values == (1, 1, 1, 1)


def test_an_option_that_is_neither_true_nor_false_is_refused() -> None:
    with pytest.raises(OptionError, match=r"connect\.meta\.data is true or false, not yes"):
        AvroDataOptions.from_config({"connect.meta.data": "yes"})


def test_a_value_that_does_not_fit_is_refused() -> None:
    with pytest.raises(DataError, match=r"\$\.a"):
        AvroData().to_avro(struct({"a": INT32}), Struct(struct({"a": INT32})))


def test_a_schema_as_deep_as_allowed_is_converted_and_a_deeper_one_refused() -> None:
    def nested(levels: int) -> Schema:
        schema = INT32
        for number in range(levels):
            schema = struct({"f": schema}, name=f"R{number}")
        return schema

    def value(schema: Schema) -> Any:
        if schema.type is Type.INT32:
            return 5
        inner = schema.fields[0].schema
        return Struct.unchecked(schema, [value(inner)])

    data = AvroData()
    deep = nested(NESTING_MAX - 1)
    avro = data.avro_schema(deep)
    assert data.connect_schema(avro) == deep
    assert data.from_avro(avro, data.to_avro(deep, value(deep))).value == value(deep)
    for levels in (NESTING_MAX + 1, 900):
        with pytest.raises(DataError, match=r"nested (too|more)"):
            data.avro_schema(nested(levels))
