"""Texts of values: what CAST(x AS STRING) gives, Java's toString for what is nested."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from moldau.data.java_time import civil
from moldau.data.json_text import decimal_text
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
from moldau.sql.values import times
from moldau.sql.values.decimals import plain
from moldau.sql.values.doubles import double_text

_ToText = Callable[[Any], str]


def boolean_text(value: bool) -> str:
    return "true" if value else "false"


def _identity(value: str) -> str:
    return value


_BASE: dict[SqlType, _ToText] = {
    BOOLEAN: boolean_text,
    INTEGER: str,
    BIGINT: str,
    DOUBLE: double_text,
    STRING: _identity,
    DATE: times.date_text,
    TIME: times.time_text,
    TIMESTAMP: times.timestamp_text,
}


def _seconds_of_day(ms: int) -> str:
    minutes, second = divmod(ms // 1000, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour:02d}:{minute:02d}:{second:02d}"


def _sql_timestamp(ms: int) -> str:
    """java.sql.Timestamp.toString, in UTC."""
    days, rest = divmod(ms, civil.DAY_MS)
    fraction = f"{rest % 1000:03d}".rstrip("0") or "0"
    return f"{civil.date_text(days)} {_seconds_of_day(rest)}.{fraction}"


def _buffer_text(value: bytes) -> str:
    return f"java.nio.HeapByteBuffer[pos=0 lim={len(value)} cap={len(value)}]"


#: Inside of arrays, maps and structs, values show as Java's own classes do.
_NESTED: dict[SqlType, _ToText] = {
    **_BASE,
    TIME: _seconds_of_day,
    TIMESTAMP: _sql_timestamp,
    BYTES: _buffer_text,
}


def text_of(sql_type: SqlType) -> _ToText:
    """How a value that is not NULL is cast to STRING."""
    if isinstance(sql_type, DecimalType):
        return plain
    found = _BASE.get(sql_type)
    return nested_text_of(sql_type) if found is None else found


def nested_text_of(sql_type: SqlType) -> _ToText:
    """Java's toString of a value that is not NULL."""
    match sql_type:
        case DecimalType():
            return _decimal
        case ArrayType():
            return _array(nullable(nested_text_of(sql_type.item)))
        case MapType():
            key = nullable(nested_text_of(sql_type.key))
            return _map(key, nullable(nested_text_of(sql_type.value)))
        case StructType():
            return _struct([(name, nested_text_of(each)) for name, each in sql_type.fields])
        case _:
            return _NESTED[sql_type]


def _decimal(value: Decimal) -> str:
    return decimal_text(value)


def nullable(show: _ToText) -> _ToText:
    return lambda value: "null" if value is None else show(value)


def _array(item: _ToText) -> _ToText:
    return lambda value: f"[{', '.join(map(item, value))}]"


def _map(key: _ToText, item: _ToText) -> _ToText:
    return lambda value: "{" + ", ".join(f"{key(each)}={item(value[each])}" for each in value) + "}"


def _struct(fields: list[tuple[str, _ToText]]) -> _ToText:
    def show(value: tuple[Any, ...]) -> str:
        shown = [
            f"{name}={text(each)}"
            for (name, text), each in zip(fields, value, strict=True)
            if each is not None
        ]
        return f"Struct{{{','.join(shown)}}}"

    return show
