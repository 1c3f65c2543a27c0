"""Arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moldau.sql.functions.declarations import (
    ArgumentTypes,
    Evaluate,
    overload,
    scalar,
)
from moldau.sql.functions.errors import FunctionError
from moldau.sql.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    STRING,
    ArrayType,
    DecimalType,
    SqlType,
)
from moldau.sql.values.casts import wrap_int
from moldau.sql.values.texts import nested_text_of, nullable

_SERIES_MAX = 10_000_000
_JOINED = frozenset({BOOLEAN, INTEGER, BIGINT, DOUBLE, STRING})


def distinct(items: Iterable[Any]) -> list[Any]:
    """Each value once, in the order of first appearance; values may be lists and dicts."""
    given = list(items)
    try:
        return list(dict.fromkeys(given))
    except TypeError:
        found: list[Any] = []
        for each in given:
            if each not in found:
                found.append(each)
        return found


def _concat(left: list[Any] | None, right: list[Any] | None) -> list[Any] | None:
    if left is None and right is None:
        return None
    return [*(left or ()), *(right or ())]


def _except(left: list[Any], right: list[Any]) -> list[Any]:
    return [each for each in distinct(left) if each not in right]


def _intersect(left: list[Any], right: list[Any]) -> list[Any]:
    return [each for each in distinct(left) if each in right]


def _bind_join(arguments: ArgumentTypes, result: SqlType) -> Evaluate:
    array = arguments[0]
    item = array.item if isinstance(array, ArrayType) else STRING
    if item not in _JOINED and not isinstance(item, DecimalType):

        def refuse(values: list[Any] | None, delimiter: str | None = ",") -> str | None:
            if values is None:
                return None
            if any(each is not None for each in values):
                raise FunctionError(
                    f"error: hit element of type {item} which is currently not supported"
                )
            return (delimiter or "").join("null" for _ in values)

        return refuse
    show = nullable(nested_text_of(item))

    def join(values: list[Any] | None, delimiter: str | None = ",") -> str | None:
        return None if values is None else (delimiter or "").join(map(show, values))

    return join


def _sorted(values: list[Any], direction: str = "ASC") -> list[Any] | None:
    wanted = direction.upper()
    if wanted not in ("ASC", "ASCENDING", "DESC", "DESCENDING"):
        return None
    known = sorted((each for each in values if each is not None), reverse=wanted.startswith("DESC"))
    return [*known, *([None] * (len(values) - len(known)))]


def _max(values: list[Any]) -> Any:
    return max((each for each in values if each is not None), default=None)


def _min(values: list[Any]) -> Any:
    return min((each for each in values if each is not None), default=None)


def _entries(values: dict[str, Any], in_order: bool) -> list[tuple[str, Any]]:
    return sorted(values.items(), key=lambda each: each[0]) if in_order else list(values.items())


def _series(start: int, end: int, step: int | None = None) -> list[int]:
    distance = end - start
    if step is None:
        step = 1 if distance > 0 else -1
    if step == 0:
        raise FunctionError("GENERATE_SERIES step cannot be zero")
    if (distance > 0 and step < 0) or (distance < 0 and step > 0):
        raise FunctionError("GENERATE_SERIES step has wrong sign")
    size = 1 + abs(distance) // abs(step)
    if size > _SERIES_MAX:
        raise FunctionError(f"GENERATE_SERIES gives at most {_SERIES_MAX} values, not {size}")
    return [start + index * step for index in range(size)]


def _slice(values: list[Any] | None, start: int | None, end: int | None) -> list[Any] | None:
    if values is None:
        return None
    first = 0 if start is None else wrap_int(start - 1)
    last = len(values) if end is None else end
    if first < 0 or last > len(values):
        return None
    if first > last:
        raise FunctionError(f"fromIndex({first}) > toIndex({last})")
    return values[first:last]


def _contains(values: list[Any] | None, value: Any) -> bool:
    return values is not None and value in values


_KIND = "ARRAY"

FUNCTIONS = [
    scalar(
        "array_concat",
        _KIND,
        "The elements of one array followed by those of another.",
        "ARRAY_CONCAT(ARRAY[1], ARRAY[2]) -> [1, 2]",
        overload("(ARRAY<T> left, ARRAY<T> right) -> ARRAY<T>", _concat, nulls=True),
    ),
    scalar(
        "array_distinct",
        _KIND,
        "Each value of an array once, in the order of first appearance.",
        "ARRAY_DISTINCT(ARRAY[1, 2, 1]) -> [1, 2]",
        overload("(ARRAY<T> input) -> ARRAY<T>", distinct),
    ),
    scalar(
        "array_except",
        _KIND,
        "The distinct values of an array that another array has not got.",
        "ARRAY_EXCEPT(ARRAY[1, 2], ARRAY[2]) -> [1]",
        overload("(ARRAY<T> left, ARRAY<T> right) -> ARRAY<T>", _except),
    ),
    scalar(
        "array_intersect",
        _KIND,
        "The distinct values that two arrays share.",
        "ARRAY_INTERSECT(ARRAY[1, 2], ARRAY[2]) -> [2]",
        overload("(ARRAY<T> left, ARRAY<T> right) -> ARRAY<T>", _intersect),
    ),
    scalar(
        "ARRAY_JOIN",
        _KIND,
        "The elements of an array as one text, with a delimiter (a comma by default) between them.",
        "ARRAY_JOIN(ARRAY[1, 2], ';') -> '1;2'",
        overload("(ARRAY<T> array) -> STRING", bind=_bind_join, nulls=True),
        overload("(ARRAY<T> array, STRING delimiter) -> STRING", bind=_bind_join, nulls=True),
    ),
    scalar(
        "ARRAY_LENGTH",
        _KIND,
        "The number of elements of an array.",
        "ARRAY_LENGTH(ARRAY[1, 2]) -> 2",
        overload("(ARRAY<T> array) -> INT", len),
    ),
    scalar(
        "array_max",
        _KIND,
        "The greatest element of an array that is not NULL.",
        "ARRAY_MAX(ARRAY[1, 2]) -> 2",
        overload("(ARRAY<T> input) -> T", _max),
    ),
    scalar(
        "array_min",
        _KIND,
        "The least element of an array that is not NULL.",
        "ARRAY_MIN(ARRAY[1, 2]) -> 1",
        overload("(ARRAY<T> input) -> T", _min),
    ),
    scalar(
        "array_remove",
        _KIND,
        "An array without the elements that equal a value.",
        "ARRAY_REMOVE(ARRAY[1, 2, 1], 1) -> [2]",
        overload(
            "(ARRAY<T> array, T victim) -> ARRAY<T>",
            lambda values, victim: (
                None if values is None else [each for each in values if each != victim]
            ),
            nulls=True,
        ),
    ),
    scalar(
        "array_sort",
        _KIND,
        "The elements in order, ascending or descending; NULLs come last.",
        "ARRAY_SORT(ARRAY[2, 1], 'DESC') -> [2, 1]",
        overload("(ARRAY<T> input) -> ARRAY<T>", _sorted),
        overload("(ARRAY<T> input, STRING direction) -> ARRAY<T>", _sorted),
    ),
    scalar(
        "array_union",
        _KIND,
        "The distinct values of two arrays.",
        "ARRAY_UNION(ARRAY[1], ARRAY[1, 2]) -> [1, 2]",
        overload(
            "(ARRAY<T> left, ARRAY<T> right) -> ARRAY<T>",
            lambda left, right: distinct([*left, *right]),
        ),
    ),
    scalar(
        "ENTRIES",
        _KIND,
        "The entries of a map as an array of structs, in the order of the keys if wanted.",
        "ENTRIES(m, true)",
        *(
            overload(
                f"(MAP<STRING, {each}> map, BOOLEAN sorted) -> ARRAY<STRUCT<K STRING, V {each}>>",
                _entries,
            )
            for each in ("INT", "BIGINT", "DOUBLE", "BOOLEAN", "STRING")
        ),
    ),
    scalar(
        "GENERATE_SERIES",
        _KIND,
        "The numbers from a first to a last one, by a step.",
        "GENERATE_SERIES(1, 5, 2) -> [1, 3, 5]",
        overload("(INT start, INT end) -> ARRAY<INT>", _series),
        overload("(INT start, INT end, INT step) -> ARRAY<INT>", _series),
        overload("(BIGINT start, BIGINT end) -> ARRAY<BIGINT>", _series),
        overload("(BIGINT start, BIGINT end, INT step) -> ARRAY<BIGINT>", _series),
    ),
    scalar(
        "ARRAY_CONTAINS",
        _KIND,
        "Whether an array has an element.",
        "ARRAY_CONTAINS(ARRAY[1, 2], 2) -> true",
        overload("(ARRAY<T> array, T val) -> BOOLEAN", _contains, nulls=True),
    ),
    scalar(
        "slice",
        _KIND,
        "The elements from one position to another, both counted from 1 and included.",
        "SLICE(ARRAY[1, 2, 3], 2, 3) -> [2, 3]",
        overload("(ARRAY<T> in, INT from, INT to) -> ARRAY<T>", _slice, nulls=True),
    ),
]
