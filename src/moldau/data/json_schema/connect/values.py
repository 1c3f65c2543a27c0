"""Values between Connect and JSON.

A JSON value is what Python's json module reads and writes; a Decimal is a number that is written as
it is. Bytes are base64.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from moldau.data.errors import DataError
from moldau.data.json_schema.connect.settings import (
    DEFAULT_CONFIG,
    JsonSchemaDataConfig,
    is_union,
)
from moldau.data.json_schema.model import ABSENT
from moldau.data.json_text import to_float32
from moldau.data.logical import DECIMAL_NAME, from_base, is_logical, to_base
from moldau.data.schema import INTEGER_BITS, Schema, Type
from moldau.data.struct import Struct, validate_value

KEY_FIELD, VALUE_FIELD = "key", "value"


def value_from_connect(
    schema: Schema | None, value: Any, config: JsonSchemaDataConfig = DEFAULT_CONFIG
) -> Any:
    """The JSON value of a Connect value; DataError if it does not fit its schema."""
    try:
        if schema is not None and value is not None:
            validate_value(schema, value)
        written = _write(schema, value, config)
    except RecursionError:
        raise DataError("The value is nested too deeply, or contains itself") from None
    return None if written is ABSENT else written


def _write(schema: Schema | None, value: Any, config: JsonSchemaDataConfig) -> Any:
    """ABSENT for a required value that is missing: a struct leaves it out then."""
    if value is None:
        if schema is None:
            return None
        if schema.default is not None and not config.ignore_default_for_nullables:
            return _write(schema, schema.default, config)
        return None if schema.optional else ABSENT
    if schema is None:
        return _write_plain(value, config)
    if is_logical(schema):
        return _write_logical(schema, value, config)
    match schema.type:
        case Type.BYTES:
            return base64.b64encode(bytes(value)).decode("ascii")
        case Type.ARRAY:
            return [_plain(_write(schema.value_schema, each, config)) for each in value]
        case Type.MAP:
            return _write_map(schema, value, config)
        case Type.STRUCT:
            return _write_struct(schema, value, config)
        case _:
            return value


def _write_plain(value: Any, config: JsonSchemaDataConfig) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode("ascii")
    if isinstance(value, Struct):
        return _write_struct(value.schema, value, config)
    if isinstance(value, list | tuple):
        return [_write_plain(each, config) for each in value]
    if isinstance(value, dict):
        pairs = [(_write_plain(k, config), _write_plain(v, config)) for k, v in value.items()]
        if all(isinstance(key, str) for key in value):
            return dict(pairs)
        return [{KEY_FIELD: key, VALUE_FIELD: each} for key, each in pairs]
    if value is None or isinstance(value, bool | int | float | str | Decimal):
        return value
    raise DataError(f"{type(value).__name__} does not have corresponding schema type.")


def _write_logical(schema: Schema, value: Any, config: JsonSchemaDataConfig) -> Any:
    if schema.name == DECIMAL_NAME:
        if config.decimal_format == "NUMERIC":
            return value
        return base64.b64encode(to_base(schema, value)).decode("ascii")
    return to_base(schema, value)


def _write_map(schema: Schema, value: dict[Any, Any], config: JsonSchemaDataConfig) -> Any:
    pairs = [
        (_write(schema.key_schema, key, config), _plain(_write(schema.value_schema, each, config)))
        for key, each in value.items()
    ]
    if has_names_for_keys(schema):
        return dict(pairs)
    return [{KEY_FIELD: _plain(key), VALUE_FIELD: each} for key, each in pairs]


def _write_struct(schema: Schema, value: Struct, config: JsonSchemaDataConfig) -> Any:
    get = value.get_without_default if config.ignore_default_for_nullables else value.get
    if is_union(schema):
        for field in schema.fields:
            chosen = get(field.name)
            if chosen is not None:
                return _write(field.schema, chosen, config)
        return _write(schema, None, config)
    written = {field.name: _write(field.schema, get(field.name), config) for field in schema.fields}
    return {name: each for name, each in written.items() if each is not ABSENT}


def _plain(value: Any) -> Any:
    return None if value is ABSENT else value


def has_names_for_keys(schema: Schema) -> bool:
    """Whether a map is an object in JSON; else it is an array of entries."""
    key = schema.key_schema
    return key is not None and key.type is Type.STRING and not key.optional


def value_to_connect(schema: Schema | None, value: Any) -> Any:
    """The Connect value of a JSON value; DataError if it does not fit the schema."""
    if schema is None:
        return value
    if value is None:
        return _read_null(schema)
    if is_logical(schema):
        return _read_logical(schema, value)
    match schema.type:
        case Type.STRUCT:
            return _read_union(schema, value) if is_union(schema) else _read_struct(schema, value)
        case Type.ARRAY:
            if not isinstance(value, list):
                raise _wrong(schema, value)
            return [value_to_connect(schema.value_schema, each) for each in value]
        case Type.MAP:
            return _read_map(schema, value)
        case _:
            return _SCALARS[schema.type](schema, value)


def _read_null(schema: Schema) -> Any:
    if schema.default is not None:
        return schema.default
    if schema.optional:
        return None
    raise DataError(f"Invalid null value for required {schema.type.name} field")


def _read_integer(schema: Schema, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise _wrong(schema, value)
    number = int(value)
    limit = 1 << INTEGER_BITS[schema.type] - 1
    if number != value or not -limit <= number < limit:
        raise DataError(f"{value} does not fit {schema.type.name}")
    return number


def _read_float(schema: Schema, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise _wrong(schema, value)
    return to_float32(float(value)) if schema.type is Type.FLOAT32 else float(value)


def _read_boolean(schema: Schema, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong(schema, value)
    return value


def _read_string(schema: Schema, value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(schema, value)
    return value


def _read_bytes(schema: Schema, value: Any) -> bytes:
    try:
        return base64.b64decode(_read_string(schema, value), validate=True)
    except (binascii.Error, ValueError) as error:
        raise DataError(f"Invalid bytes field: {error}") from None


_SCALARS: dict[Type, Callable[[Schema, Any], Any]] = {
    **dict.fromkeys(INTEGER_BITS, _read_integer),
    Type.FLOAT32: _read_float,
    Type.FLOAT64: _read_float,
    Type.BOOLEAN: _read_boolean,
    Type.STRING: _read_string,
    Type.BYTES: _read_bytes,
}


def _read_logical(schema: Schema, value: Any) -> Any:
    if schema.name != DECIMAL_NAME:
        return from_base(schema, _read_integer(schema, value))
    if isinstance(value, str):
        return from_base(schema, _read_bytes(schema, value))
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return value if isinstance(value, Decimal) else Decimal(str(value))
    raise _wrong(schema, value)


def _read_map(schema: Schema, value: Any) -> dict[Any, Any]:
    if has_names_for_keys(schema):
        if not isinstance(value, dict):
            raise DataError(
                "Maps with string fields should be encoded as JSON objects, but found "
                f"{type(value).__name__}"
            )
        return {key: value_to_connect(schema.value_schema, each) for key, each in value.items()}
    if not isinstance(value, list):
        raise DataError(
            "Maps with non-string fields should be encoded as JSON array of objects, but found "
            f"{type(value).__name__}"
        )
    entries: dict[Any, Any] = {}
    for entry in value:
        if not isinstance(entry, dict) or len(entry) != 2:
            raise DataError(f"Found invalid map entry, expected key and value: {entry!r:.100}")
        key = value_to_connect(schema.key_schema, entry.get(KEY_FIELD))
        entries[key] = value_to_connect(schema.value_schema, entry.get(VALUE_FIELD))
    return entries


def _read_struct(schema: Schema, value: Any) -> Struct:
    if not isinstance(value, dict):
        raise DataError(
            f"Structs should be encoded as JSON objects, but found {type(value).__name__}"
        )
    values: list[Any] = []
    for field in schema.fields:
        # A field that is left out is no null: a required one is found missing by validation.
        given = field.name in value
        default = field.schema.default
        values.append(value_to_connect(field.schema, value[field.name]) if given else default)
    return Struct.unchecked(schema, values)


def _read_union(schema: Schema, value: Any) -> Struct:
    best, best_match = None, 0
    for field in schema.fields:
        if _is_of(field.schema, value):
            best = field
            break
        matching = _match(field.schema, value)
        if matching > best_match:
            best, best_match = field, matching
    if best is None:
        raise DataError("Did not find matching oneof field for data")
    values: list[Any] = [None] * len(schema.fields)
    values[best.index] = value_to_connect(best.schema, value)
    return Struct.unchecked(schema, values)


def _is_of(schema: Schema, value: Any) -> bool:
    """Whether a value is of a simple type; structs are told apart by their fields."""
    match schema.type:
        case Type.STRUCT:
            return False
        case Type.BOOLEAN:
            return isinstance(value, bool)
        case Type.STRING:
            return isinstance(value, str)
        case Type.BYTES:
            return isinstance(value, Decimal | bytes)
        case Type.ARRAY:
            return isinstance(value, list)
        case Type.MAP:
            return isinstance(value, dict | list)
        case Type.FLOAT32 | Type.FLOAT64:
            return isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        case _:
            return isinstance(value, int) and not isinstance(value, bool)


def _match(schema: Schema, value: Any) -> int:
    """How many fields, at all depths, a struct and an object have in common."""
    if schema.type is not Type.STRUCT or not isinstance(value, dict):
        return 0
    common = [field for field in schema.fields if field.name in value]
    return len(common) + sum(_match(field.schema, value[field.name]) for field in common)


def _wrong(schema: Schema, value: Any) -> DataError:
    what = schema.name or schema.type.name
    return DataError(f"Invalid value for {what}: {type(value).__name__}")
