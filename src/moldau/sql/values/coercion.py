"""Implicit conversions: the common type of CASE, IN and arrays, and values of INSERT.

Strictly, only what loses nothing: numbers widen, texts are read as times and bytes. Laxly (IN
lists) texts and other types convert into one another as well.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

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
from moldau.sql.values import casts, decimals, texts, times

_STRICT = frozenset(
    {
        (INTEGER, BIGINT),
        (INTEGER, DOUBLE),
        (BIGINT, DOUBLE),
        (STRING, TIMESTAMP),
        (STRING, TIME),
        (STRING, DATE),
        (STRING, BYTES),
    }
)
_LAX = frozenset(
    {(each, STRING) for each in (BOOLEAN, INTEGER, BIGINT, DOUBLE, TIMESTAMP, TIME, DATE)}
    | {(STRING, each) for each in (BOOLEAN, INTEGER, BIGINT, DOUBLE)}
)


class CannotCoerce(KsqlException):
    """The value has no equivalent in the other type."""


def common_type(source: SqlType, target: SqlType, *, lax: bool = False) -> SqlType | None:
    """The type that values of `source` have once they are those of `target`; None if they cannot.

    It differs from `target` for DECIMALs, which widen, and inside of nested types.
    """
    if source == target:
        return target
    match source, target:
        case DecimalType(), DecimalType():
            return decimals.widen(source, target)
        case DecimalType(), _ if target is DOUBLE:
            return target
        case _, DecimalType() if source in (INTEGER, BIGINT):
            return decimals.widen(source, target)
        case ArrayType(), ArrayType():
            item = common_type(source.item, target.item, lax=lax)
            return None if item is None else ArrayType(item)
        case MapType(), MapType():
            key = common_type(source.key, target.key, lax=lax)
            value = common_type(source.value, target.value, lax=lax)
            return None if key is None or value is None else MapType(key, value)
        case StructType(), StructType():
            return _common_struct(source, target, lax=lax)
    if (source, target) in _STRICT or (lax and (source, target) in _LAX):
        return target
    if lax and isinstance(source, DecimalType) and target is STRING:
        return target
    if lax and source is STRING and isinstance(target, DecimalType):
        return target
    return None


def _common_struct(source: StructType, target: StructType, *, lax: bool) -> StructType | None:
    ours, theirs = dict(source.fields), dict(target.fields)
    fields: list[tuple[str, SqlType]] = []
    for name in dict.fromkeys([*ours, *theirs]):
        if name in ours and name in theirs:
            found = common_type(ours[name], theirs[name], lax=lax)
            if found is None:
                return None
        else:
            found = ours.get(name) or theirs[name]
        fields.append((name, found))
    return StructType(tuple(fields))


def coercer(source: SqlType | None, target: SqlType, *, lax: bool = False) -> Callable[[Any], Any]:
    """How values convert; `CannotCoerce` now if none do, or later if one does not."""
    if source is None or source == target:
        return lambda value: value
    if common_type(source, target, lax=lax) is None:
        raise CannotCoerce(f"Cannot coerce {source} to {target}")
    return casts.null_safe(_guarded(_convert(source, target, lax=lax), source, target))


def _guarded(convert: casts.Cast, source: SqlType, target: SqlType) -> casts.Cast:
    def guarded(value: Any) -> Any:
        try:
            return convert(value)
        except (KsqlException, ArithmeticError, ValueError) as error:
            raise CannotCoerce(f"Cannot coerce {value!r} from {source} to {target}") from error

    return guarded


def _convert(source: SqlType, target: SqlType, *, lax: bool) -> casts.Cast:
    match source, target:
        case _, DecimalType() if source is STRING:
            return lambda value: decimals.ensure_fit(decimals.from_text(value.strip()), target)
        case _, DecimalType():
            return lambda value: decimals.ensure_fit(Decimal(value), target)
        case ArrayType(), ArrayType():
            item = coercer(source.item, target.item, lax=lax)
            return lambda value: [item(each) for each in value]
        case MapType(), MapType():
            key = coercer(source.key, target.key, lax=lax)
            inner = coercer(source.value, target.value, lax=lax)
            return lambda value: {key(name): inner(each) for name, each in value.items()}
        case StructType(), StructType():
            return _struct(source, target, lax=lax)
    if source is STRING and target is BOOLEAN:
        return casts.parse_boolean_exactly
    if target is STRING:
        return texts.text_of(source)
    if source is STRING and target in (TIMESTAMP, DATE, TIME):
        parse = {
            TIMESTAMP: times.parse_timestamp,
            DATE: times.parse_date,
            TIME: times.parse_time,
        }[target]
        return lambda value: parse(value.strip())
    return casts.cast_not_null(source, target)


def _struct(source: StructType, target: StructType, *, lax: bool) -> casts.Cast:
    places = {name: index for index, (name, _) in enumerate(source.fields)}
    ours = dict(source.fields)
    steps = [
        (places[name], coercer(ours[name], wanted, lax=lax)) if name in places else None
        for name, wanted in target.fields
    ]
    return lambda value: tuple(
        [None if step is None else step[1](value[step[0]]) for step in steps]
    )
