"""Aggregates that keep values: lists, sets, the first and last ones, the greatest ones."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from moldau.sql.functions.declarations import (
    AggregateOverload,
    Aggregation,
    BindAggregate,
    Settings,
    aggregate,
    aggregate_overload,
)
from moldau.sql.functions.errors import FunctionError
from moldau.sql.types import BIGINT, INTEGER, STRING, ArrayType, MapType, SqlType, StructType

_HISTOGRAM_MAX = 1000
_NO_LIMIT = 2**31 - 1


def _same(value: Any) -> Any:
    return value


def _limit(settings: Settings, key: str) -> int:
    value = settings.get(key)
    found = _NO_LIMIT if value is None else int(value)
    return _NO_LIMIT if found < 0 else found


def _bind_list(types: Sequence[SqlType], init: Sequence[Any], settings: Settings) -> Aggregation:
    limit = _limit(settings, "ksql.functions.collect_list.limit")

    def undo(value: Any, kept: list[Any]) -> list[Any]:
        for index in range(len(kept) - 1, -1, -1):
            if kept[index] == value:
                return kept[:index] + kept[index + 1 :]
        return kept

    return Aggregation(
        ArrayType(types[0]),
        ArrayType(types[0]),
        initialize=list,
        add=lambda value, kept: [*kept, value] if len(kept) < limit else kept,
        merge=lambda one, other: [*one, *other[: max(limit - len(one), 0)]],
        map_result=_same,
        undo=undo,
    )


def _bind_set(types: Sequence[SqlType], init: Sequence[Any], settings: Settings) -> Aggregation:
    limit = _limit(settings, "ksql.functions.collect_set.limit")

    def merge(one: list[Any], other: list[Any]) -> list[Any]:
        merged = list(one)
        for each in other:
            if len(merged) >= limit:
                break
            if each not in merged:
                merged.append(each)
        return merged

    return Aggregation(
        ArrayType(types[0]),
        ArrayType(types[0]),
        initialize=list,
        add=lambda value, kept: [*kept, value] if len(kept) < limit and value not in kept else kept,
        merge=merge,
        map_result=_same,
    )


def _bind_histogram(
    types: Sequence[SqlType], init: Sequence[Any], settings: Settings
) -> Aggregation:
    def put(kept: dict[Any, int], value: Any, more: int) -> dict[Any, int]:
        if value not in kept and len(kept) >= _HISTOGRAM_MAX:
            return kept
        return {**kept, value: kept.get(value, 0) + more}

    def merge(one: dict[Any, int], other: dict[Any, int]) -> dict[Any, int]:
        for value, times in other.items():
            one = put(one, value, times)
        return one

    def undo(value: Any, kept: dict[Any, int]) -> dict[Any, int]:
        left = dict(kept)
        times = left.pop(value, 0) - 1
        if times > 0:
            left[value] = times
        return left

    return Aggregation(
        MapType(STRING, BIGINT),
        MapType(STRING, BIGINT),
        initialize=dict,
        add=lambda value, kept: put(kept, value, 1),
        merge=merge,
        map_result=_same,
        undo=undo,
    )


def _bind_attr(types: Sequence[SqlType], init: Sequence[Any], settings: Settings) -> Aggregation:
    entry = StructType((("VALUE", types[0]), ("COUNT", INTEGER)))

    def update(kept: list[Any], value: Any, more: int) -> list[Any]:
        for index, (known, times) in enumerate(kept):
            if known == value:
                changed = (known, max(0, times + more))
                return [*kept[:index], changed, *kept[index + 1 :]]
        return [*kept, (value, more)] if more > 0 else kept

    def merge(one: list[Any], other: list[Any]) -> list[Any]:
        for value, times in other:
            one = update(one, value, times)
        return one

    def only(kept: list[Any]) -> Any:
        present = [value for value, times in kept if times > 0]
        return present[0] if len(present) == 1 else None

    return Aggregation(
        types[0],
        ArrayType(entry),
        initialize=list,
        add=lambda value, kept: update(kept, value, 1),
        merge=merge,
        map_result=only,
        undo=lambda value, kept: update(kept, value, -1),
    )


_Entry = tuple[int, Any]


def _order(entry: _Entry) -> tuple[bool, int]:
    # A sequence that has overflowed is later than every one that has not.
    return entry[0] < 0, entry[0]


def _later(one: _Entry, other: _Entry, *, ignore_nulls: bool) -> bool:
    """Whether `one` is not earlier; a NULL is earlier than anything if NULLs are ignored."""
    if ignore_nulls and (one[1] is None or other[1] is None):
        return other[1] is None
    return _order(one) >= _order(other)


def _by_offset(*, latest: bool) -> list[AggregateOverload]:
    sequence = count()
    name = "latestN" if latest else "earliestN"

    def one_value(ignore_nulls: bool) -> BindAggregate:
        def bind(types: Sequence[SqlType], init: Sequence[Any], settings: Settings) -> Aggregation:
            ignore = bool(init[0]) if init else ignore_nulls
            return _one_by_offset(types[0], sequence.__next__, latest=latest, ignore_nulls=ignore)

        return bind

    def many(types: Sequence[SqlType], init: Sequence[Any], settings: Settings) -> Aggregation:
        ignore = bool(init[1]) if len(init) > 1 else True
        if init[0] <= 0:
            raise FunctionError(f"{name} must be 1 or greater")
        return _many_by_offset(
            types[0], init[0], sequence.__next__, latest=latest, ignore_nulls=ignore
        )

    return [
        aggregate_overload("(T val1) -> T", one_value(True)),
        aggregate_overload("(T val1, BOOLEAN ignoreNulls) -> T", one_value(True), init_count=1),
        aggregate_overload(f"(T val1, INT {name}) -> ARRAY<T>", many, init_count=1),
        aggregate_overload(
            f"(T val1, INT {name}, BOOLEAN ignoreNulls) -> ARRAY<T>", many, init_count=2
        ),
    ]


def _one_by_offset(
    kind: SqlType, following: Callable[[], int], *, latest: bool, ignore_nulls: bool
) -> Aggregation:
    aggregate_type = StructType((("SEQ", BIGINT), ("VAL", kind)))

    def add(value: Any, kept: _Entry | None) -> _Entry | None:
        if value is None and ignore_nulls:
            return kept
        if not latest and kept is not None:
            return kept
        return following(), value

    def merge(one: _Entry | None, other: _Entry | None) -> _Entry | None:
        if one is None or other is None:
            return other if one is None else one
        if latest:
            return one if _later(one, other, ignore_nulls=ignore_nulls) else other
        return one if _order(one) < _order(other) else other

    def start() -> _Entry | None:
        return (following(), None) if latest else None

    return Aggregation(
        kind,
        aggregate_type,
        initialize=start,
        add=add,
        merge=merge,
        map_result=lambda kept: None if kept is None else kept[1],
    )


def _many_by_offset(
    kind: SqlType, size: int, following: Callable[[], int], *, latest: bool, ignore_nulls: bool
) -> Aggregation:
    entry = StructType((("SEQ", BIGINT), ("VAL", kind)))

    def add(value: Any, kept: list[_Entry]) -> list[_Entry]:
        if value is None and ignore_nulls:
            return kept
        if latest:
            return [*kept, (following(), value)][-size:]
        return [*kept, (following(), value)] if len(kept) < size else kept

    return Aggregation(
        ArrayType(kind),
        ArrayType(entry),
        initialize=list,
        add=add,
        merge=lambda one, other: sorted([*one, *other], key=_order)[:size],
        map_result=lambda kept: [value for _, value in kept],
    )


def _bind_topk(types: Sequence[SqlType], init: Sequence[Any], settings: Settings) -> Aggregation:
    size = init[0]
    columns = types[:-1]
    single = len(columns) == 1
    item: SqlType = columns[0]
    if not single:
        names = ["sort_col", *(f"col{index}" for index in range(len(columns) - 1))]
        item = StructType(tuple(zip(names, columns, strict=True)))

    def rank(entry: Any) -> Any:
        return entry if single else entry[0]

    def add(value: Any, kept: list[Any]) -> list[Any]:
        entry = value
        if rank(entry) is None:
            return kept
        if len(kept) == size:
            if not kept or rank(entry) <= rank(kept[-1]):
                return kept
            kept = kept[:-1]
        # After the ones that are equal: the sort is stable and descending.
        return sorted([*kept, entry], key=rank, reverse=True)

    def merge(one: list[Any], other: list[Any]) -> list[Any]:
        return sorted([*one, *other], key=rank, reverse=True)[:size]

    return Aggregation(
        ArrayType(item),
        ArrayType(item),
        initialize=list,
        add=add,
        merge=merge,
        map_result=_same,
    )


def _bind_topk_distinct(
    types: Sequence[SqlType], init: Sequence[Any], settings: Settings
) -> Aggregation:
    size = init[0]

    def add(value: Any, kept: list[Any]) -> list[Any]:
        if value is None or value in kept:
            return kept
        if len(kept) == size:
            if not kept or value <= kept[-1]:
                return kept
            kept = kept[:-1]
        changed = kept[::-1]
        bisect.insort(changed, value)
        return changed[::-1]

    return Aggregation(
        ArrayType(types[0]),
        ArrayType(types[0]),
        initialize=list,
        add=add,
        merge=lambda one, other: sorted({*one, *other}, reverse=True)[:size],
        map_result=_same,
    )


_COMPARABLE = ("INT", "BIGINT", "DOUBLE", "STRING", "DECIMAL", "DATE", "TIME", "TIMESTAMP", "BYTES")

FUNCTIONS = [
    aggregate(
        "collect_list",
        "All values, NULLs too, in the order in which they came.",
        "COLLECT_LIST(name)",
        aggregate_overload("(T val1) -> ARRAY<T>", _bind_list),
    ),
    aggregate(
        "collect_set",
        "The distinct values, in the order in which they came first.",
        "COLLECT_SET(name)",
        aggregate_overload("(T val1) -> ARRAY<T>", _bind_set),
    ),
    aggregate(
        "histogram",
        "How often each value occurs, for up to 1000 values.",
        "HISTOGRAM(name)",
        aggregate_overload("(STRING val1) -> MAP<STRING, BIGINT>", _bind_histogram),
    ),
    aggregate(
        "ATTR",
        "The value that all rows share; NULL if there are several.",
        "ATTR(name)",
        aggregate_overload("(T val1) -> T", _bind_attr),
    ),
    aggregate(
        "EARLIEST_BY_OFFSET",
        "The first value by offset, or the first n values.",
        "EARLIEST_BY_OFFSET(name, 2)",
        *_by_offset(latest=False),
    ),
    aggregate(
        "LATEST_BY_OFFSET",
        "The last value by offset, or the last n values.",
        "LATEST_BY_OFFSET(name)",
        *_by_offset(latest=True),
    ),
    aggregate(
        "TOPK",
        "The k greatest values, or structs of them and more columns of their rows.",
        "TOPK(amount, 3)",
        *(
            aggregate_overload(
                f"({each} val1, ANY... val2, INT k) -> ARRAY<S>", _bind_topk, init_count=1
            )
            for each in ("INT", "BIGINT", "DOUBLE", "STRING")
        ),
    ),
    aggregate(
        "TOPKDISTINCT",
        "The k greatest distinct values.",
        "TOPKDISTINCT(amount, 3)",
        *(
            aggregate_overload(
                f"({each} val1, INT k) -> ARRAY<{each}>", _bind_topk_distinct, init_count=1
            )
            for each in _COMPARABLE
        ),
    ),
]
