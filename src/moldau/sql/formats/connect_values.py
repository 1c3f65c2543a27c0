"""Between SQL's values and Connect's: the way into Avro, Protobuf and JSON Schema.

Functions are made once for a pair of types. Reading takes data of any schema that fits: fields by
name, small integers and floats widened, primitives as texts where a STRING is wanted.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from moldau.data import logical
from moldau.data.json_text import float_text
from moldau.data.schema import Schema, Type
from moldau.data.struct import Struct
from moldau.sql.formats.errors import SerdeError
from moldau.sql.types import (
    BYTES,
    DATE,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    MapType,
    SqlType,
    StructType,
    connect_schema,
)
from moldau.sql.values import decimals
from moldau.sql.values.doubles import double_text
from moldau.sql.values.texts import boolean_text

Convert = Callable[[Any], Any]
_SEPARATOR = "->"


def _same(value: Any) -> Any:
    return value


def _nullable(convert: Convert) -> Convert:
    if convert is _same:
        return _same
    return lambda value: None if value is None else convert(value)


# To Connect.


def to_connect(sql_type: SqlType, schema: Schema) -> Convert:
    """A value that may be NULL as one of the schema, whose fields are in the type's order."""
    return _nullable(_to(sql_type, schema))


def _to(sql_type: SqlType, schema: Schema) -> Convert:
    match sql_type:
        case DecimalType():
            return lambda value: decimals.ensure_fit(value, sql_type)
        case ArrayType():
            item = to_connect(sql_type.item, schema.items)
            return lambda value: [item(each) for each in value]
        case MapType():
            key = to_connect(sql_type.key, schema.keys)
            entry = to_connect(sql_type.value, schema.items)
            return lambda value: {key(name): entry(each) for name, each in value.items()}
        case StructType():
            return _to_struct(sql_type, schema)
    if sql_type is DATE:
        return logical.date_from_days
    if sql_type is TIME:
        return logical.time_from_ms
    if sql_type is TIMESTAMP:
        return logical.timestamp_from_ms
    return _same


def _to_struct(sql_type: StructType, schema: Schema) -> Convert:
    fields = [
        to_connect(each, field.schema)
        for (_, each), field in zip(sql_type.fields, schema.fields, strict=True)
    ]
    return lambda value: Struct.unchecked(
        schema, [convert(each) for convert, each in zip(fields, value, strict=True)]
    )


def to_registered(sql_type: SqlType, schema: Schema, what: str) -> Convert:
    """A value as one of a registered schema: fields by name, defaults filled in."""
    return _nullable(_to_registered(sql_type, schema, what))


def _to_registered(sql_type: SqlType, schema: Schema, what: str) -> Convert:
    match sql_type:
        case StructType() if schema.type is Type.STRUCT:
            return _to_registered_struct(sql_type, schema, what)
        case ArrayType() if schema.type is Type.ARRAY:
            item = to_registered(sql_type.item, schema.items, what)
            return lambda value: [item(each) for each in value]
        case MapType() if schema.type is Type.MAP:
            entry = to_registered(sql_type.value, schema.items, what)
            return lambda value: {name: entry(each) for name, each in value.items()}
        case DecimalType() if schema.name == logical.DECIMAL_NAME:
            scale = logical.scale_of(schema)
            return lambda value: decimals.rescale_exactly(value, scale)
        case _:
            return _to(sql_type, schema)


def _to_registered_struct(sql_type: StructType, schema: Schema, what: str) -> Convert:
    names = {field.name for field in schema.fields}
    places = {name: index for index, (name, _) in enumerate(sql_type.fields)}
    for name in places:
        if name not in names:
            return _failing(f"Schema from Schema Registry misses field with name: {name}")
    types = dict(sql_type.fields)
    steps: list[tuple[int, Convert] | None] = []
    defaults: list[Any] = []
    for field in schema.fields:
        defaults.append(field.schema.default)
        if field.name in places:
            convert = to_registered(types[field.name], field.schema, what)
            steps.append((places[field.name], convert))
            continue
        if field.schema.default is None and not field.schema.optional:
            return _failing(
                f"Missing default value for required {what} field: [{field.name}]. "
                f"This field appears in {what} schema in Schema Registry"
            )
        steps.append(None)

    def fill(value: tuple[Any, ...]) -> Struct:
        return Struct.unchecked(
            schema,
            [
                default if step is None else step[1](value[step[0]])
                for step, default in zip(steps, defaults, strict=True)
            ],
        )

    return fill


def _failing(reason: str) -> Convert:
    """ksqlDB finds such schemas when the first row is written, and lets statements pass."""

    def fail(value: Any) -> Any:
        raise SerdeError(reason)

    return fail


# From Connect.

_ACCEPTED = {
    Type.INT64: frozenset({Type.INT64, Type.INT32, Type.INT16, Type.INT8}),
    Type.INT32: frozenset({Type.INT32, Type.INT16, Type.INT8}),
    Type.FLOAT64: frozenset({Type.FLOAT32, Type.FLOAT64}),
    Type.STRING: frozenset(
        {Type.INT8, Type.INT16, Type.INT32, Type.INT64}
        | {Type.FLOAT32, Type.FLOAT64, Type.BOOLEAN, Type.STRING}
    ),
}
_LOGICAL: dict[str, Convert] = {
    logical.DATE_NAME: logical.date_to_days,
    logical.TIME_NAME: logical.time_to_ms,
    logical.TIMESTAMP_NAME: logical.timestamp_to_ms,
}


def from_connect(sql_type: SqlType, schema: Schema | None, path: str = "") -> Convert:
    """A value of a schema as one of the type; an error now if the types do not fit."""
    if schema is None:
        return lambda value: None
    wanted = connect_schema(sql_type)
    if schema.type not in _ACCEPTED.get(wanted.type, frozenset({wanted.type})):
        raise SerdeError(
            f"Cannot deserialize type {schema.type.value} as type {wanted.type.value} "
            f"for path: {path}"
        )
    return _nullable(_from(sql_type, schema, path))


def _from(sql_type: SqlType, schema: Schema, path: str) -> Convert:
    match sql_type:
        case DecimalType():
            return lambda value: _decimal(value, sql_type)
        case ArrayType():
            item = from_connect(sql_type.item, schema.items, f"{path}{_SEPARATOR}ARRAY")
            return lambda value: [item(each) for each in value]
        case MapType():
            key = from_connect(sql_type.key, schema.keys, f"{path}{_SEPARATOR}MAP_KEY")
            entry = from_connect(sql_type.value, schema.items, f"{path}{_SEPARATOR}MAP_VAL")
            return lambda value: {key(name): entry(each) for name, each in value.items()}
        case StructType():
            return _from_struct(sql_type, schema, path)
    base = _LOGICAL.get(schema.name or "", _same)
    if sql_type is STRING:
        return _string(schema, base)
    if sql_type is BYTES:
        return _bytes
    if connect_schema(sql_type).type is Type.FLOAT64:
        return float
    return base


def _decimal(value: Any, wanted: DecimalType) -> Decimal:
    if not isinstance(value, Decimal):
        raise SerdeError(f"Cannot deserialize bytes as {wanted}")
    return decimals.ensure_fit(value, wanted)


def _bytes(value: Any) -> Any:
    return value if isinstance(value, Decimal) else bytes(value)


def _string(schema: Schema, base: Convert) -> Convert:
    match schema.type:
        case Type.STRING:
            return _same
        case Type.BOOLEAN:
            return boolean_text
        case Type.FLOAT64:
            return double_text
        case Type.FLOAT32:
            return float_text
        case _:
            return lambda value: str(base(value))


def _from_struct(sql_type: StructType, schema: Schema, path: str) -> Convert:
    places = {name: index for index, (name, _) in enumerate(sql_type.fields)}
    types = dict(sql_type.fields)
    steps: list[tuple[int, str, Convert]] = []
    for field in schema.fields:
        name = field.name if field.name in places else field.name.upper()
        if name not in places:
            continue
        convert = from_connect(types[name], field.schema, f"{path}{_SEPARATOR}{name}")
        steps.append((places[name], field.name, convert))
    count = len(places)

    def read(value: Struct) -> tuple[Any, ...]:
        row: list[Any] = [None] * count
        for place, name, convert in steps:
            row[place] = convert(value.get(name))
        return tuple(row)

    return read
