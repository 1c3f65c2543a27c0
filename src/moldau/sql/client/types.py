"""Columns of answers: DB-API's type objects, and values of Python for JSON's."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

from moldau.data.sql_types import ArrayType, BaseType, DecimalType, MapType, SqlType, StructType
from moldau.data.sql_types import parse as parse_type
from moldau.sql.client.errors import InterfaceError
from moldau.sql.values import times

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Description",
    "TypeObject",
    "describe",
    "row_reader",
]

#: name, type, display size, internal size, precision, scale, may be NULL
Description = tuple[str, str, None, None, int | None, int | None, bool]
Convert = Callable[[Any], Any]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class TypeObject:
    """Equal to the types that it stands for: `cursor.description[0][1] == NUMBER`."""

    def __init__(self, *names: str) -> None:
        self._names = frozenset(names)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return other.partition("(")[0].partition("<")[0] in self._names
        return self is other

    def __hash__(self) -> int:
        return hash(self._names)


STRING = TypeObject("STRING", "VARCHAR")
BINARY = TypeObject("BYTES")
NUMBER = TypeObject("INTEGER", "BIGINT", "DOUBLE", "DECIMAL")
DATETIME = TypeObject("DATE", "TIME", "TIMESTAMP")
ROWID = TypeObject()


def describe(names: Sequence[str], types: Sequence[str]) -> list[Description]:
    found: list[Description] = []
    for name, shown in zip(names, types, strict=True):
        kind = parse_type(shown)
        precision = kind.precision if isinstance(kind, DecimalType) else None
        scale = kind.scale if isinstance(kind, DecimalType) else None
        found.append((name, shown, None, None, precision, scale, True))
    return found


def row_reader(types: Sequence[str]) -> Callable[[bytes | str], tuple[Any, ...]]:
    """Reads a row from a line of JSON: times, decimals and bytes become Python's."""
    kinds = [parse_type(each) for each in types]
    converts = [_convert(each) for each in kinds]
    # Only DECIMAL needs its digits kept, and Python's floats are faster.
    exact = any("DECIMAL" in each for each in types)

    def read(line: bytes | str) -> tuple[Any, ...]:
        row = json.loads(line, parse_float=Decimal) if exact else json.loads(line)
        if not isinstance(row, list) or len(row) != len(converts):
            raise InterfaceError(f"The server sent a row that does not fit its columns: {row}")
        return tuple(
            None if value is None else value if convert is None else convert(value)
            for convert, value in zip(converts, row, strict=True)
        )

    return read


def _nullable(convert: Convert | None) -> Convert:
    if convert is None:
        return lambda value: value
    return lambda value: None if value is None else convert(value)


def _convert(kind: SqlType) -> Convert | None:
    match kind:
        case DecimalType():
            step = Decimal(1).scaleb(-kind.scale)
            return lambda value: Decimal(str(value)).quantize(step)
        case ArrayType():
            item = _nullable(_convert(kind.item))
            return lambda value: [item(each) for each in value]
        case MapType():
            entry = _nullable(_convert(kind.value))
            return lambda value: {key: entry(each) for key, each in value.items()}
        case StructType():
            fields = {name: _nullable(_convert(each)) for name, each in kind.fields}
            return lambda value: {name: read(value.get(name)) for name, read in fields.items()}
    return _BASE.get(kind)


def _date(text: str) -> date:
    return (_EPOCH + timedelta(days=times.parse_date(text))).date()


def _time(text: str) -> time:
    return (_EPOCH + timedelta(milliseconds=times.parse_time(text))).time()


def _timestamp(text: str) -> datetime:
    return _EPOCH + timedelta(milliseconds=times.parse_timestamp(text))


_BASE: Final[dict[SqlType, Convert]] = {
    BaseType.DOUBLE: float,
    BaseType.BYTES: base64.b64decode,
    BaseType.DATE: _date,
    BaseType.TIME: _time,
    BaseType.TIMESTAMP: _timestamp,
}
