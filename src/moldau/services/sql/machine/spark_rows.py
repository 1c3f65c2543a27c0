"""Columns and values of Spark's tables as those of SQL. Schemas come as Spark's JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

from moldau.sql.errors import KsqlException
from moldau.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    MapType,
    SqlType,
    StructType,
)
from moldau.sql.values.decimals import rescale

__all__ = ["row_reader", "sql_columns"]

_PLAIN: Final[Mapping[str, SqlType]] = {
    "boolean": BOOLEAN,
    "byte": INTEGER,
    "short": INTEGER,
    "integer": INTEGER,
    "long": BIGINT,
    "float": DOUBLE,
    "double": DOUBLE,
    "string": STRING,
    "binary": BYTES,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP,
}
_EPOCH: Final = date(1970, 1, 1).toordinal()
_Read = Callable[[Any], Any]


def sql_columns(schema: Mapping[str, Any]) -> list[tuple[str, SqlType]]:
    """The columns of a DataFrame; names become those that statements have without quotes."""
    found: dict[str, SqlType] = {}
    for field in schema["fields"]:
        name = str(field["name"]).upper()
        if name in found:
            raise KsqlException(
                f"Two columns are named {name} in SQL, where capitals do not count: rename one "
                "of them with AS"
            )
        try:
            found[name] = _sql_type(field["type"])
        except KsqlException as error:
            raise KsqlException(f"Column {field['name']}: {error}") from None
    return list(found.items())


def _sql_type(kind: Any) -> SqlType:
    match kind:
        case str() if kind in _PLAIN:
            return _PLAIN[kind]
        case str() if kind.startswith(("varchar(", "char(")):
            return STRING
        case str() if kind.startswith("decimal("):
            precision, _, scale = kind[8:-1].partition(",")
            return DecimalType(int(precision), int(scale))
        case {"type": "array", "elementType": item}:
            return ArrayType(_sql_type(item))
        case {"type": "map", "keyType": "string", "valueType": value}:
            return MapType(STRING, _sql_type(value))
        case {"type": "struct", "fields": fields}:
            parts = tuple((str(each["name"]).upper(), _sql_type(each["type"])) for each in fields)
            return StructType(parts)
    raise KsqlException(f"{kind} has no type in SQL: convert it with CAST in the query")


def row_reader(schema: Mapping[str, Any]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Rows of the DataFrame to rows of SQL."""
    readers = [_nullable(_reader(field["type"])) for field in schema["fields"]]
    return lambda row: tuple([read(each) for read, each in zip(readers, row, strict=True)])


def _nullable(read: _Read) -> _Read:
    return lambda value: None if value is None else read(value)


def _reader(kind: Any) -> _Read:
    match kind:
        case "date":
            return lambda value: value.toordinal() - _EPOCH
        case "timestamp":
            # Spark gives the time of this process's zone, without saying so.
            return lambda value: _milliseconds(value.astimezone(UTC))
        case "timestamp_ntz":
            return lambda value: _milliseconds(value.replace(tzinfo=UTC))
        case "binary":
            return bytes
        case str() if kind.startswith("decimal("):
            scale = int(kind[8:-1].partition(",")[2])
            return lambda value: rescale(Decimal(value), scale)
        case {"type": "array", "elementType": item}:
            inner = _nullable(_reader(item))
            return lambda value: [inner(each) for each in value]
        case {"type": "map", "valueType": item}:
            inner = _nullable(_reader(item))
            return lambda value: {name: inner(each) for name, each in value.items()}
        case {"type": "struct"}:
            return row_reader(kind)
    return lambda value: value


def _milliseconds(moment: datetime) -> int:
    whole = moment.replace(microsecond=0)
    return round(whole.timestamp()) * 1000 + moment.microsecond // 1000
