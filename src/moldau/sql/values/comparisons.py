"""=, <>, <, <=, >, >=, IS [NOT] DISTINCT FROM: what may be compared, and how."""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from moldau.sql.errors import KsqlException
from moldau.sql.types import (
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    MapType,
    SqlType,
    StructType,
    is_numeric,
)
from moldau.sql.values import times
from moldau.sql.values.arithmetic import base_name
from moldau.sql.values.casts import cast_not_null

Compare = Callable[[Any, Any], bool]

_EQUALITY = frozenset({"=", "<>", "!=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"})
_TIMES = frozenset({TIME, DATE, TIMESTAMP})
_OPERATORS: dict[str, Compare] = {
    "=": operator.eq,
    "<>": operator.ne,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "IS DISTINCT FROM": operator.ne,
    "IS NOT DISTINCT FROM": operator.eq,
}
_PARSERS: dict[SqlType, Callable[[str], int]] = {
    TIME: times.parse_time,
    DATE: times.parse_date,
    TIMESTAMP: times.parse_timestamp,
}


def is_valid(left: SqlType | None, symbol: str, right: SqlType | None) -> bool:
    """Whether ksqlDB compares the types in this way; an error for a bare NULL."""
    if left is None or right is None:
        names = ["NULL" if each is None else base_name(each) for each in (left, right)]
        raise KsqlException(
            f"Comparison with NULL not supported: {names[0]} {symbol} {names[1]}\n"
            "Use 'IS NULL' or 'IS NOT NULL' instead."
        )
    if is_numeric(left):
        return is_numeric(right)
    if left is STRING:
        return right is STRING or right in _TIMES
    if left in (DATE, TIMESTAMP):
        return right in (DATE, TIMESTAMP, STRING)
    if left is TIME:
        return right in (TIME, STRING)
    if left is BYTES:
        return right is BYTES
    if symbol not in _EQUALITY:
        return False
    if left is BOOLEAN:
        return right is BOOLEAN
    return any(
        isinstance(left, kind) and isinstance(right, kind)
        for kind in (ArrayType, MapType, StructType)
    )


def compare(left: SqlType | None, symbol: str, right: SqlType | None) -> Compare:
    """The comparison of values that may be NULL; its result never is.

    NULL makes every comparison false, but for IS [NOT] DISTINCT FROM, which take it as a value.
    """
    if left is None or right is None or not is_valid(left, symbol, right):
        raise KsqlException(
            f"Operator {symbol} cannot be used to compare "
            f"{base_name(left) if left else 'NULL'} and {base_name(right) if right else 'NULL'}"
        )
    plain = _on_values(left, symbol, right)
    if symbol == "IS DISTINCT FROM":
        return lambda one, other: (
            (one is None) != (other is None) if one is None or other is None else plain(one, other)
        )
    if symbol == "IS NOT DISTINCT FROM":
        return lambda one, other: (
            one is other if one is None or other is None else plain(one, other)
        )
    return lambda one, other: one is not None and other is not None and plain(one, other)


def _on_values(left: SqlType, symbol: str, right: SqlType) -> Compare:
    plain = _OPERATORS[symbol]
    if left in _TIMES or right in _TIMES:
        return _times(plain, left, right)
    mixed = {DOUBLE, DecimalType}
    if {_kind(left), _kind(right)} == mixed:
        # BigDecimal.valueOf(double): by the double's shortest text, not its exact value.
        one, other = _shortest(left), _shortest(right)
        return lambda first, second: plain(one(first), other(second))
    return plain


def _kind(sql_type: SqlType) -> object:
    return DecimalType if isinstance(sql_type, DecimalType) else sql_type


def _shortest(sql_type: SqlType) -> Callable[[Any], Any]:
    if sql_type is DOUBLE:
        return lambda value: Decimal(repr(value))
    return lambda value: value


def _times(plain: Compare, left: SqlType, right: SqlType) -> Compare:
    common: SqlType = DATE
    for each in (TIME, TIMESTAMP):
        if left is each or right is each:
            common = each
            break
    one, other = _to_time(left, common), _to_time(right, common)
    return lambda first, second: plain(one(first), other(second))


def _to_time(source: SqlType, target: SqlType) -> Callable[[Any], Any]:
    if source is STRING:
        return _PARSERS[target]
    return cast_not_null(source, target)
