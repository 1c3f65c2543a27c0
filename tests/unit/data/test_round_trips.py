"""What is converted and converted back is the same, for any schema and value."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from moldau.data.avro.connect_data import AvroData
from moldau.data.avro.connect_names import AvroDataOptions
from moldau.data.connect_json import DecimalFormat, JsonConverter, JsonOptions
from moldau.data.schema import Schema, SchemaAndValue, Type
from moldau.data.struct import Struct, as_plain, validate_value
from support.connect_strategies import replaced_nulls, schemas, schemas_and_values


@given(schemas_and_values())
def test_what_the_strategy_makes_is_valid(case: tuple[Schema, Any]) -> None:
    validate_value(*case)


@given(schemas_and_values())
def test_json_gives_schema_and_value_back(case: tuple[Schema, Any]) -> None:
    options = JsonOptions(replace_null_with_default=False, decimal_format=DecimalFormat.NUMERIC)
    for converter in (
        JsonConverter(options),
        JsonConverter(JsonOptions(replace_null_with_default=False)),
    ):
        assert converter.from_json(converter.to_json(*case)) == SchemaAndValue(*case)


@given(schemas_and_values())
def test_json_puts_defaults_in_place_of_nulls(case: tuple[Schema, Any]) -> None:
    schema, value = case
    converter = JsonConverter()
    found = converter.from_json(converter.to_json(schema, value))
    assert found.schema == schema
    assert as_plain(found.value) == as_plain(replaced_nulls(schema, value))


@given(schemas())
def test_avro_gives_the_schema_back(schema: Schema) -> None:
    data = AvroData()
    assert data.connect_schema(data.avro_schema(schema)) == schema


@given(schemas_and_values())
def test_avro_gives_the_value_back(case: tuple[Schema, Any]) -> None:
    schema, value = case
    data = AvroData(AvroDataOptions(enhanced_avro_schema_support=True))
    found = data.from_avro(data.avro_schema(schema), data.to_avro(schema, value))
    assert found.schema == schema
    assert as_plain(found.value) == as_plain(fields_filled(schema, value))


def fields_filled(schema: Schema | None, value: Any) -> Any:
    """The value with defaults in fields that were not set, as Confluent's converter writes it."""
    if schema is None or value is None:
        return value
    match schema.type:
        case Type.ARRAY:
            return [fields_filled(schema.value_schema, each) for each in value]
        case Type.MAP:
            return {key: fields_filled(schema.value_schema, each) for key, each in value.items()}
        case Type.STRUCT:
            held = [fields_filled(each.schema, value.get(each.name)) for each in schema.fields]
            return Struct.unchecked(schema, held)
        case _:
            return value
