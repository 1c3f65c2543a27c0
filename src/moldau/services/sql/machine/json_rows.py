"""Rows that clients send as JSON to values of SQL, as strictly as ksqlDB takes them.

A number widens, a text is read as a time, as a decimal or (base64) as bytes. Nothing else becomes
something else: an object or a number is no text, and a text no number.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from moldau.sql.errors import KsqlException
from moldau.sql.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    STRING,
    ArrayType,
    Column,
    DecimalType,
    MapType,
    SqlType,
    StructType,
)
from moldau.sql.values import decimals
from moldau.sql.values.coercion import CannotCoerce, coercer

__all__ = ["column_name", "row_values"]

_INTEGERS = range(-(2**31), 2**31)
_BIGINTS = range(-(2**63), 2**63)


def column_name(text: str) -> str:
    """An identifier as a client writes it: in capitals unless it is quoted."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] in '`"' else text.upper()


def row_values(row: Mapping[str, Any], columns: tuple[Column, ...]) -> tuple[Any, ...]:
    """The value of each column; those that the row does not name are NULL, and names that are no
    columns are passed over. Raises KsqlException."""
    named = _by_name(row)
    return tuple(_column(named.get(each.name), each) for each in columns)


def _column(value: Any, column: Column) -> Any:
    try:
        return _value(value, column.type)
    except CannotCoerce:
        raise KsqlException(
            f"Can't coerce a field of type {_kind(value)} into type {column.type}: "
            f"column {column.name}"
        ) from None


def _by_name(row: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text, value in row.items():
        name = column_name(text)
        if name in found:
            raise KsqlException(f"Found duplicate column / struct field name: {name}")
        found[name] = value
    return found


def _value(value: Any, wanted: SqlType) -> Any:
    if value is None:
        return None
    match wanted:
        case DecimalType() if isinstance(value, float | str):
            return _decimal(value, wanted)
        case ArrayType(item):
            if isinstance(value, list):
                return [_value(each, item) for each in value]
        case MapType(key, inner):
            if isinstance(value, dict):
                return {_value(name, key): _value(each, inner) for name, each in value.items()}
        case StructType(fields):
            if isinstance(value, dict):
                named = _by_name(value)
                return tuple(_value(named.get(name), kind) for name, kind in fields)
    return coercer(_type(value), wanted)(value)


def _decimal(value: float | str, wanted: DecimalType) -> Decimal:
    """Rounded to the scale of the column."""
    try:
        exact = Decimal(str(value).strip())
        if exact.is_finite():
            return decimals.ensure_fit(decimals.rescale(exact, wanted.scale), wanted)
    except (ArithmeticError, KsqlException):
        pass
    raise CannotCoerce("")


def _type(value: Any) -> SqlType:
    """The type of a JSON value without parts."""
    match value:
        case bool():
            return BOOLEAN
        case int() if value in _INTEGERS:
            return INTEGER
        case int() if value in _BIGINTS:
            return BIGINT
        case float():
            return DOUBLE
        case str():
            return STRING
    raise CannotCoerce("")


def _kind(value: Any) -> str:
    match value:
        case dict():
            return "OBJECT"
        case list():
            return "ARRAY"
    try:
        return str(_type(value))
    except CannotCoerce:
        return "NUMBER"
