"""Values of rows as JSON, as ksqlDB's queries show them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from moldau.sql.formats.json_reading import by_rules, parse
from moldau.sql.formats.json_writing import value_writer
from moldau.sql.types import (
    DATE,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    MapType,
    SqlType,
    StructType,
)
from moldau.sql.values import times

__all__ = ["exact_row_writer", "row_reader", "row_writer"]

Convert = Callable[[Any], Any]


def row_writer(types: Sequence[SqlType]) -> Callable[[Sequence[Any]], str]:
    """The columns of a row as a JSON array."""
    writers = [_writer(each) for each in types]
    return lambda row: (
        f"[{','.join([write(value) for write, value in zip(writers, row, strict=True)])}]"
    )


def exact_row_writer(types: Sequence[SqlType]) -> Callable[[Sequence[Any]], str]:
    """As `row_writer`, times as numbers: `row_reader` reads it."""
    writers = [value_writer(each) for each in types]
    return lambda row: (
        f"[{','.join([write(value) for write, value in zip(writers, row, strict=True)])}]"
    )


def row_reader(types: Sequence[SqlType]) -> Callable[[str], tuple[Any, ...]]:
    readers = [by_rules(each) for each in types]
    return lambda text: tuple(
        read(value) for read, value in zip(readers, parse(text.encode()), strict=True)
    )


def _writer(sql_type: SqlType) -> Callable[[Any], str]:
    """JSON of a value, times as texts."""
    if not _has_time(sql_type):
        return value_writer(sql_type)
    shown = _shown(sql_type)
    write = value_writer(_as_text(sql_type))
    return lambda value: write(None if value is None else shown(value))


_TEXTS: dict[SqlType, Convert] = {
    DATE: times.date_text,
    TIME: times.time_text,
    TIMESTAMP: times.timestamp_text,
}


def _has_time(sql_type: SqlType) -> bool:
    match sql_type:
        case ArrayType():
            return _has_time(sql_type.item)
        case MapType():
            return _has_time(sql_type.key) or _has_time(sql_type.value)
        case StructType():
            return any(_has_time(each) for _, each in sql_type.fields)
        case _:
            return sql_type in _TEXTS


def _as_text(sql_type: SqlType) -> SqlType:
    match sql_type:
        case ArrayType():
            return ArrayType(_as_text(sql_type.item))
        case MapType():
            return MapType(STRING, _as_text(sql_type.value))
        case StructType():
            return StructType(tuple((name, _as_text(each)) for name, each in sql_type.fields))
        case _:
            return STRING if sql_type in _TEXTS else sql_type


def _shown(sql_type: SqlType) -> Convert:
    match sql_type:
        case ArrayType():
            item = _nullable(_shown(sql_type.item))
            return lambda value: [item(each) for each in value]
        case MapType():
            entry = _nullable(_shown(sql_type.value))
            return lambda value: {str(key): entry(each) for key, each in value.items()}
        case StructType():
            fields = [_nullable(_shown(each)) for _, each in sql_type.fields]
            return lambda value: tuple(
                [show(each) for show, each in zip(fields, value, strict=True)]
            )
        case _:
            return _TEXTS.get(sql_type, _same)


def _same(value: Any) -> Any:
    return value


def _nullable(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)
