"""CAST: which types convert into which, and how."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from moldau.data.java_time.civil import DAY_MS
from moldau.sql.errors import KsqlException
from moldau.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    MapType,
    SqlType,
    StructType,
)
from moldau.sql.values import decimals, texts, times

Cast = Callable[[Any], Any]

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
_INTEGER = re.compile(r"[+-]?\d+")
_DOUBLE = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[dDfF]?", re.ASCII)


class UnsupportedCast(KsqlException):
    def __init__(self, source: SqlType, target: SqlType) -> None:
        super().__init__(f"Cast of {source} to {target} is not supported")


def wrap_int(value: int) -> int:
    """Java's narrowing to 32 bits."""
    return value if INT_MIN <= value <= INT_MAX else (value + 2**31) % 2**32 - 2**31


def wrap_long(value: int) -> int:
    """Java's narrowing to 64 bits."""
    return value if LONG_MIN <= value <= LONG_MAX else (value + 2**63) % 2**64 - 2**63


def double_to_int(value: float) -> int:
    """Java's (int): towards zero, within bounds, 0 for NaN."""
    return _bounded(value, INT_MIN, INT_MAX)


def double_to_long(value: float) -> int:
    return _bounded(value, LONG_MIN, LONG_MAX)


def _bounded(value: float, low: int, high: int) -> int:
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return high if value > 0 else low
    return min(max(int(value), low), high)


def parse_boolean(text: str) -> bool:
    """True for true and yes, and for what they begin with; False for everything else."""
    low = text.strip().lower()
    return bool(low) and ("true".startswith(low) or "yes".startswith(low))


def parse_boolean_exactly(text: str) -> bool:
    low = text.strip().lower()
    if parse_boolean(text):
        return True
    if low and ("false".startswith(low) or "no".startswith(low)):
        return False
    raise KsqlException(f"{text!r} is not a boolean")


def _integer_parser(low: int, high: int) -> Cast:
    def parse(text: str) -> int:
        trimmed = text.strip()
        if _INTEGER.fullmatch(trimmed) is not None and len(trimmed) < 4000:
            value = int(trimmed)
            if low <= value <= high:
                return value
        raise KsqlException(f'For input string: "{trimmed}"')

    return parse


parse_int = _integer_parser(INT_MIN, INT_MAX)
parse_long = _integer_parser(LONG_MIN, LONG_MAX)


def parse_double(text: str) -> float:
    trimmed = text.strip()
    if _DOUBLE.fullmatch(trimmed) is None:
        raise KsqlException(f'For input string: "{trimmed}"')
    value = float(trimmed.rstrip("dDfF"))
    if math.isinf(value):
        raise KsqlException(f"Invalid double value: {trimmed}")
    return value


def parse_bytes(text: str) -> bytes:
    try:
        # Java's decoder wants no padding, but what is there must be right.
        trimmed = text.strip()
        padded = trimmed if "=" in trimmed else trimmed + "=" * (-len(trimmed) % 4)
        return base64.b64decode(padded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise KsqlException(f"{text!r} is not base64: {error}") from None


def _decimal_to_long(value: Decimal) -> int:
    return wrap_long(int(value))


def _decimal_to_int(value: Decimal) -> int:
    return wrap_int(int(value))


def _trimmed(parse: Callable[[str], Any]) -> Cast:
    return lambda text: parse(text.strip())


_CASTS: dict[tuple[SqlType, SqlType], Cast] = {
    (INTEGER, BIGINT): int,
    (INTEGER, DOUBLE): float,
    (BIGINT, INTEGER): wrap_int,
    (BIGINT, DOUBLE): float,
    (DOUBLE, INTEGER): double_to_int,
    (DOUBLE, BIGINT): double_to_long,
    (STRING, BOOLEAN): parse_boolean,
    (STRING, INTEGER): parse_int,
    (STRING, BIGINT): parse_long,
    (STRING, DOUBLE): parse_double,
    (STRING, TIMESTAMP): _trimmed(times.parse_timestamp),
    (STRING, TIME): _trimmed(times.parse_time),
    (STRING, DATE): _trimmed(times.parse_date),
    (STRING, BYTES): parse_bytes,
    (TIMESTAMP, TIME): lambda ms: ms % DAY_MS,
    (TIMESTAMP, DATE): lambda ms: ms // DAY_MS,
    (DATE, TIMESTAMP): lambda days: days * DAY_MS,
}
_TO_STRING = frozenset({BOOLEAN, INTEGER, BIGINT, DOUBLE, TIMESTAMP, TIME, DATE})
_FROM_DECIMAL: dict[SqlType, Cast] = {
    INTEGER: _decimal_to_int,
    BIGINT: _decimal_to_long,
    DOUBLE: float,
    STRING: decimals.plain,
}
_TO_DECIMAL: dict[SqlType, Callable[[Any, DecimalType], Decimal]] = {
    INTEGER: decimals.cast_integer,
    BIGINT: decimals.cast_integer,
    DOUBLE: decimals.cast_double,
    STRING: decimals.cast_text,
}


def cast(source: SqlType | None, target: SqlType) -> Cast:
    """How a value becomes one of another type; NULL stays NULL.

    `UnsupportedCast` if there is no way. The cast itself raises for values without an equivalent.
    """
    if source is None or source == target:
        return lambda value: value
    return null_safe(cast_not_null(source, target))


def null_safe(convert: Cast) -> Cast:
    return lambda value: None if value is None else convert(value)


def cast_not_null(source: SqlType, target: SqlType) -> Cast:
    """`cast` for values that are not NULL."""
    if source == target:
        return lambda value: value
    found = _CASTS.get((source, target))
    if found is not None:
        return found
    if target is STRING:
        if source in _TO_STRING or not isinstance(source, type(BYTES)):
            return texts.text_of(source)
        raise UnsupportedCast(source, target)
    match source, target:
        case DecimalType(), DecimalType():
            return lambda value: decimals.cast_decimal(value, target)
        case DecimalType(), _ if target in _FROM_DECIMAL:
            return _FROM_DECIMAL[target]
        case _, DecimalType() if source in _TO_DECIMAL:
            convert = _TO_DECIMAL[source]
            return lambda value: convert(value, target)
        case _:
            return _cast_nested(source, target)


def _cast_nested(source: SqlType, target: SqlType) -> Cast:
    try:
        match source, target:
            case ArrayType(), ArrayType():
                item = cast(source.item, target.item)
                return lambda value: [item(each) for each in value]
            case MapType(), MapType():
                key, item = cast(source.key, target.key), cast(source.value, target.value)
                return lambda value: {key(name): item(each) for name, each in value.items()}
            case StructType(), StructType():
                return _cast_struct(source, target)
    except UnsupportedCast as error:
        raise UnsupportedCast(source, target) from error
    raise UnsupportedCast(source, target)


def _cast_struct(source: StructType, target: StructType) -> Cast:
    """Fields by name; those that the source has not got are NULL."""
    places = {name: (index, each) for index, (name, each) in enumerate(source.fields)}
    steps: list[tuple[int, Cast] | None] = []
    for name, wanted in target.fields:
        place = places.get(name)
        steps.append(None if place is None else (place[0], cast(place[1], wanted)))
    return lambda value: tuple(
        [None if step is None else step[1](value[step[0]]) for step in steps]
    )
