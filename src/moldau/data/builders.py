"""Schemas made: constants for the plain types, functions for the others.

    struct(
        {"id": INT64, "tags": array(STRING), "born": DATE.as_optional()},
        name="com.acme.User",
        version=1,
    )

A default must fit its schema, or SchemaBuilderError is raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moldau.data.errors import DataError, SchemaBuilderError
from moldau.data.schema import Field, Schema, Type
from moldau.data.struct import validate_value

INT8 = Schema(type=Type.INT8)
INT16 = Schema(type=Type.INT16)
INT32 = Schema(type=Type.INT32)
INT64 = Schema(type=Type.INT64)
FLOAT32 = Schema(type=Type.FLOAT32)
FLOAT64 = Schema(type=Type.FLOAT64)
BOOLEAN = Schema(type=Type.BOOLEAN)
STRING = Schema(type=Type.STRING)
BYTES = Schema(type=Type.BYTES)

OPTIONAL_INT8 = INT8.as_optional()
OPTIONAL_INT16 = INT16.as_optional()
OPTIONAL_INT32 = INT32.as_optional()
OPTIONAL_INT64 = INT64.as_optional()
OPTIONAL_FLOAT32 = FLOAT32.as_optional()
OPTIONAL_FLOAT64 = FLOAT64.as_optional()
OPTIONAL_BOOLEAN = BOOLEAN.as_optional()
OPTIONAL_STRING = STRING.as_optional()
OPTIONAL_BYTES = BYTES.as_optional()


def schema(type_: Type, /, **attributes: Any) -> Schema:
    """A schema of a type, with the attributes that `Schema` has."""
    return checked(Schema(type=type_, **attributes))


def array(items: Schema, /, **attributes: Any) -> Schema:
    """Lists of values of one schema."""
    return checked(Schema(type=Type.ARRAY, value_schema=items, **attributes))


def map_of(keys: Schema, values: Schema, /, **attributes: Any) -> Schema:
    """Maps, as dicts."""
    return checked(Schema(type=Type.MAP, key_schema=keys, value_schema=values, **attributes))


def struct(
    fields: Mapping[str, Schema] | Iterable[tuple[str, Schema]], /, **attributes: Any
) -> Schema:
    """Structs whose fields are in the order given."""
    pairs = fields.items() if isinstance(fields, Mapping) else fields
    listed = tuple(Field(name, index, each) for index, (name, each) in enumerate(pairs))
    return checked(Schema(type=Type.STRUCT, fields=listed, **attributes))


def with_default(schema: Schema, value: Any, /) -> Schema:
    """The schema with a default, which must fit."""
    return checked(schema.replace(default=value))


def checked(schema: Schema, /) -> Schema:
    """The schema, if its default fits it."""
    if schema.default is not None:
        try:
            validate_value(schema, schema.default)
        except DataError as error:
            raise SchemaBuilderError(f"Invalid default value: {error}") from error
    return schema
