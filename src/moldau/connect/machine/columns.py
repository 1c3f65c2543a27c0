"""Columns of Spark for Connect's records: their types as DDL, and their values.

Columns come from the schema of records, or where there is none from the values themselves. All are
nullable, as a record of another version may lack the field. Times of day have no type in Spark and
are texts.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

from moldau.data import logical
from moldau.data.errors import DataError
from moldau.data.schema import Schema, Type
from moldau.data.struct import Struct

__all__ = ["columns_of", "ddl", "row_of"]

_PRECISION_MAX: Final = 38
_PLAIN: Final = {
    Type.BOOLEAN: "BOOLEAN",
    Type.INT8: "TINYINT",
    Type.INT16: "SMALLINT",
    Type.INT32: "INT",
    Type.INT64: "BIGINT",
    Type.FLOAT32: "FLOAT",
    Type.FLOAT64: "DOUBLE",
    Type.STRING: "STRING",
    Type.BYTES: "BINARY",
}
_LOGICAL: Final = {
    logical.DATE_NAME: "DATE",
    logical.TIME_NAME: "STRING",
    logical.TIMESTAMP_NAME: "TIMESTAMP",
}


def columns_of(values: Iterable[tuple[Schema | None, Any]]) -> dict[str, str]:
    """The columns that hold all of these values: name and type, in the order they appear."""
    found: dict[str, str] = {}
    for schema, value in values:
        for name, kind in _columns(schema, value).items():
            known = found.setdefault(name, kind)
            if known != kind:
                found[name] = _wider(name, known, kind)
    return found


def ddl(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{_quoted(name)} {kind}" for name, kind in columns.items())


def row_of(value: Any) -> dict[str, Any]:
    """The fields of a record's value, by column."""
    if isinstance(value, Struct):
        return {field.name: _plain(each) for field, each in value.items()}
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    raise _not_a_row(value)


def _columns(schema: Schema | None, value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if schema is not None and schema.type is Type.STRUCT:
        return {each.name: _type_of(each.schema) for each in schema.fields}
    if isinstance(value, Mapping):
        kinds = {str(name): _type_of_value(each) for name, each in value.items()}
        return {name: kind for name, kind in kinds.items() if kind is not None}
    raise _not_a_row(value)


def _not_a_row(value: Any) -> DataError:
    return DataError(
        f"A row needs a struct or a map as the record's value, not {type(value).__name__}. "
        "HoistField$Value makes a struct of a single value"
    )


def _type_of(schema: Schema) -> str:
    if schema.name == logical.DECIMAL_NAME:
        text = schema.parameters.get(logical.PRECISION_PARAMETER, "")
        precision = int(text) if text.isdigit() else _PRECISION_MAX
        return f"DECIMAL({min(precision, _PRECISION_MAX)},{logical.scale_of(schema)})"
    if schema.name in _LOGICAL:
        return _LOGICAL[schema.name or ""]
    match schema.type:
        case Type.ARRAY:
            return f"ARRAY<{_type_of(schema.items)}>"
        case Type.MAP:
            return f"MAP<{_type_of(schema.keys)}, {_type_of(schema.items)}>"
        case Type.STRUCT:
            return _struct({each.name: _type_of(each.schema) for each in schema.fields})
        case _:
            return _PLAIN[schema.type]


def _type_of_value(value: Any) -> str | None:
    """Of a value without a schema; None where it says nothing."""
    match value:
        case None:
            return None
        case bool():
            return "BOOLEAN"
        case int():
            return "BIGINT"
        case float():
            return "DOUBLE"
        case Decimal():
            return f"DECIMAL({_PRECISION_MAX},18)"
        case bytes() | bytearray() | memoryview():
            return "BINARY"
        case list() | tuple():
            kinds = [kind for each in value if (kind := _type_of_value(each)) is not None]
            return f"ARRAY<{kinds[0]}>" if kinds else None
        case Mapping():
            fields = {str(name): _type_of_value(each) for name, each in value.items()}
            known = {name: kind for name, kind in fields.items() if kind is not None}
            return _struct(known) if known else None
        case _:
            return "STRING"


def _struct(fields: Mapping[str, str]) -> str:
    return f"STRUCT<{', '.join(f'{_quoted(name)}: {kind}' for name, kind in fields.items())}>"


def _wider(name: str, one: str, other: str) -> str:
    order = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE")
    if one in order and other in order:
        return max(one, other, key=order.index)
    raise DataError(
        f"Records have the field {name} as {one} and as {other}. Say with columns which it is"
    )


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _plain(value: Any) -> Any:
    match value:
        case Struct():
            return {field.name: _plain(each) for field, each in value.items()}
        case Mapping():
            return {name: _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case datetime.time():
            return value.isoformat()
        case bytearray() | memoryview():
            return bytes(value)
        case _:
            return value
