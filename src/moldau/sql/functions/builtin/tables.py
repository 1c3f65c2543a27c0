"""Table functions: one row for each value of an array."""

from __future__ import annotations

from typing import Any

from moldau.sql.errors import KsqlException
from moldau.sql.functions.declarations import ArgumentTypes, overload, table
from moldau.sql.functions.errors import FunctionError
from moldau.sql.types import ArrayType, SqlType

_CUBE_COLUMNS_MAX = 20


def _explode(values: list[Any] | None) -> list[Any]:
    return [] if values is None else values


def _cube(columns: list[Any] | None) -> list[list[Any]]:
    if columns is None:
        return []
    count = len(columns)
    if count > _CUBE_COLUMNS_MAX:
        raise FunctionError(f"cube_explode: too many columns ({count}); max is {_CUBE_COLUMNS_MAX}")
    # A column that is NULL is the same with and without it: only one of the two is kept.
    known = sum(1 << (count - 1 - i) for i, each in enumerate(columns) if each is not None)
    return [
        [each if mask >> (count - 1 - i) & 1 else None for i, each in enumerate(columns)]
        for mask in range(1 << count)
        if mask & known == mask
    ]


def _array_itself(arguments: ArgumentTypes) -> SqlType:
    given = arguments[0]
    if not isinstance(given, ArrayType):
        raise KsqlException("explode should be provided with an ARRAY")
    return given


FUNCTIONS = [
    table(
        "cube_explode",
        "A row for each combination of the elements with NULL.",
        "CUBE_EXPLODE(ARRAY[a, b])",
        overload("(ARRAY<T> columns) -> ARRAY<ARRAY<T>>", _cube, nulls=True),
    ),
    table(
        "explode",
        "A row for each element of an array.",
        "EXPLODE(a)",
        overload(
            "(ARRAY<DECIMAL> input) -> ARRAY<DECIMAL>",
            _explode,
            nulls=True,
            result_of=_array_itself,
        ),
        overload("(ARRAY<T> list) -> ARRAY<T>", _explode, nulls=True),
    ),
]
