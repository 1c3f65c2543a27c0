"""Connect's schemas and values as Arrow's, for Spark's columns and files.

A type alone loses what Arrow has no word for (names, versions, defaults, parameters), so a field
carries the whole schema in its metadata, and the way back takes it from there as long as it still
fits the type.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from moldau.data import builders, logical
from moldau.data.connect_json import schema_from_json, schema_to_json
from moldau.data.errors import DataError
from moldau.data.schema import Field, Schema, Type
from moldau.data.struct import Struct

_METADATA = b"connect.schema"
#: The most that 128 bits hold, for decimals whose schema does not say how many digits they have.
_PRECISION_MAX = 38

_PLAIN = {
    Type.INT8: pa.int8(),
    Type.INT16: pa.int16(),
    Type.INT32: pa.int32(),
    Type.INT64: pa.int64(),
    Type.FLOAT32: pa.float32(),
    Type.FLOAT64: pa.float64(),
    Type.BOOLEAN: pa.bool_(),
    Type.STRING: pa.string(),
    Type.BYTES: pa.binary(),
}
_LOGICAL = {
    logical.DATE_NAME: pa.date32(),
    logical.TIME_NAME: pa.time32("ms"),
    logical.TIMESTAMP_NAME: pa.timestamp("ms", tz="UTC"),
}
#: Unsigned numbers take the next larger type, which holds all of them.
_FROM_PLAIN = {
    **{each: kind for kind, each in _PLAIN.items()},
    pa.uint8(): Type.INT16,
    pa.uint16(): Type.INT32,
    pa.uint32(): Type.INT64,
    pa.float16(): Type.FLOAT32,
    pa.large_string(): Type.STRING,
    pa.string_view(): Type.STRING,
    pa.large_binary(): Type.BYTES,
    pa.binary_view(): Type.BYTES,
}


def arrow_type(schema: Schema) -> pa.DataType:
    """The Arrow type of a schema's values."""
    if schema.name == logical.DECIMAL_NAME:
        return _decimal_type(schema)
    if schema.name in _LOGICAL:
        return _LOGICAL[schema.name or ""]
    match schema.type:
        case Type.ARRAY:
            return pa.list_(arrow_field("item", schema.items))
        case Type.MAP:
            keys = arrow_field("key", schema.keys)
            if keys.nullable:
                # Arrow's maps have no null among their keys.
                keys = keys.with_nullable(False)
            return pa.map_(keys, arrow_field("value", schema.items))
        case Type.STRUCT:
            return pa.struct([arrow_field(each.name, each.schema) for each in schema.fields])
        case _:
            return _PLAIN[schema.type]


def _decimal_type(schema: Schema) -> pa.DataType:
    scale = logical.scale_of(schema)
    text = schema.parameters.get(logical.PRECISION_PARAMETER)
    precision = int(text) if text is not None and text.isdigit() else _PRECISION_MAX
    if precision > _PRECISION_MAX:
        return pa.decimal256(min(precision, 76), scale)
    return pa.decimal128(precision, scale)


def arrow_field(name: str, schema: Schema) -> pa.Field:
    """A field of the schema's type, with the schema in its metadata where the type loses some."""
    kind = arrow_type(schema)
    metadata = None
    if _derived(kind, nullable=schema.optional) != schema:
        metadata = {_METADATA: schema_to_json(schema)}
    return pa.field(name, kind, nullable=schema.optional, metadata=metadata)


def arrow_schema(schema: Schema) -> pa.Schema:
    """The columns of a struct."""
    if schema.type is not Type.STRUCT:
        raise DataError(f"Only a struct has columns, and this is {schema}")
    fields = [arrow_field(each.name, each.schema) for each in schema.fields]
    return pa.schema(fields, metadata={_METADATA: schema_to_json(schema)})


def connect_schema(arrow: pa.Schema | pa.Field | pa.DataType) -> Schema:
    """The schema of columns, a field or a type."""
    if isinstance(arrow, pa.DataType):
        return _derived(arrow, nullable=False)
    if isinstance(arrow, pa.Schema):
        found = _kept(arrow.metadata, pa.struct(list(arrow)), nullable=False)
        return found or _derived(pa.struct(list(arrow)), nullable=False)
    found = _kept(arrow.metadata, arrow.type, nullable=arrow.nullable)
    return found or _derived(arrow.type, nullable=arrow.nullable)


def _kept(
    metadata: dict[bytes, bytes] | None, kind: pa.DataType, *, nullable: bool
) -> Schema | None:
    """The schema in the metadata, unless somebody has changed the type since."""
    text = (metadata or {}).get(_METADATA)
    if text is None:
        return None
    try:
        schema = schema_from_json(text)
    except ValueError:
        return None
    if schema is None or arrow_type(schema) != kind:
        return None
    return schema.replace(optional=nullable) if schema.optional != nullable else schema


def _derived(kind: pa.DataType, *, nullable: bool) -> Schema:
    schema = _of_type(kind)
    return schema.as_optional() if nullable else schema


def _of_type(kind: pa.DataType) -> Schema:
    plain = _FROM_PLAIN.get(kind)
    if plain is not None:
        return Schema(type=plain)
    if pa.types.is_decimal(kind):
        return logical.decimal(kind.scale, precision=kind.precision)
    if pa.types.is_date(kind):
        return logical.DATE
    if pa.types.is_time(kind):
        return logical.TIME
    if pa.types.is_timestamp(kind):
        return logical.TIMESTAMP
    if pa.types.is_fixed_size_binary(kind):
        return builders.BYTES
    if pa.types.is_dictionary(kind):
        return _of_type(kind.value_type)
    if pa.types.is_map(kind):
        return builders.map_of(connect_schema(kind.key_field), connect_schema(kind.item_field))
    if pa.types.is_struct(kind):
        fields = (Field(each.name, index, connect_schema(each)) for index, each in enumerate(kind))
        return Schema(type=Type.STRUCT, fields=tuple(fields))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return builders.array(connect_schema(kind.value_field))
    raise DataError(f"Connect has no schema for Arrow's type {kind}")


def arrow_array(schema: Schema, values: Iterable[Any]) -> pa.Array:
    """A column of values."""
    try:
        return pa.array([_to_arrow(schema, each) for each in values], type=arrow_type(schema))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise DataError(f"A value of {schema} does not fit Arrow's type: {error}") from None


def connect_values(schema: Schema, column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column, whose type is that of the schema."""
    return [_from_arrow(schema, each) for each in column.to_pylist()]


def _to_arrow(schema: Schema, value: Any) -> Any:
    if value is None or schema.type.is_primitive:
        return _whole(schema, value)
    match schema.type:
        case Type.ARRAY:
            return [_to_arrow(schema.items, each) for each in value]
        case Type.MAP:
            return [
                (_to_arrow(schema.keys, key), _to_arrow(schema.items, each))
                for key, each in value.items()
            ]
        case _:
            return {field.name: _to_arrow(field.schema, each) for field, each in value.items()}


def _whole(schema: Schema, value: Any) -> Any:
    """What Arrow takes for a plain value; it refuses to cut off microseconds, so they go first."""
    if isinstance(value, (datetime.datetime, datetime.time)):
        return logical.from_base(schema, logical.to_base(schema, value))
    return value


def _from_arrow(schema: Schema, value: Any) -> Any:
    if value is None or schema.type.is_primitive:
        return value
    match schema.type:
        case Type.ARRAY:
            return [_from_arrow(schema.items, each) for each in value]
        case Type.MAP:
            return {
                _from_arrow(schema.keys, key): _from_arrow(schema.items, each)
                for key, each in value
            }
        case _:
            held = [_from_arrow(each.schema, value[each.name]) for each in schema.fields]
            return Struct.unchecked(schema, held)
