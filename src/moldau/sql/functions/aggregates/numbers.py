"""Aggregates of numbers: COUNT, SUM, AVG, MIN, MAX, standard deviations, correlation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
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
from moldau.sql.types import BIGINT, DOUBLE, INTEGER, DecimalType, SqlType, StructType
from moldau.sql.values.casts import wrap_int, wrap_long
from moldau.sql.values.decimals import plain


def _same(value: Any) -> Any:
    return value


def _bind_count(types: Sequence[SqlType], init: Sequence[Any], settings: Settings) -> Aggregation:
    return Aggregation(
        BIGINT,
        BIGINT,
        initialize=lambda: 0,
        add=lambda value, total: total if value is None else total + 1,
        merge=lambda one, other: one + other,
        map_result=_same,
        undo=lambda value, total: total if value is None else total - 1,
    )


def _sum(result: SqlType, zero: Any, wrap: Callable[[Any], Any]) -> BindAggregate:
    def bind(types: Sequence[SqlType], init: Sequence[Any], settings: Settings) -> Aggregation:
        return Aggregation(
            result,
            result,
            initialize=lambda: zero,
            add=lambda value, total: total if value is None else wrap(total + value),
            merge=lambda one, other: wrap(one + other),
            map_result=_same,
            undo=lambda value, total: total if value is None else wrap(total - value),
        )

    return bind


def _bind_sum_decimal(
    types: Sequence[SqlType], init: Sequence[Any], settings: Settings
) -> Aggregation:
    given = types[0]
    if not isinstance(given, DecimalType):
        raise FunctionError(f"SUM of {given} is not a DECIMAL")
    context = Context(prec=given.precision, rounding=ROUND_HALF_UP)
    digits = given.precision - given.scale

    def add(value: Decimal | None, total: Decimal) -> Decimal:
        if value is None:
            return total
        found = context.add(total, value)
        if found and found.adjusted() >= digits:
            raise FunctionError(
                f"Numeric field overflow: A field with precision {given.precision} and scale "
                f"{given.scale} must round to an absolute value less than 10^{digits}. "
                f"Got {plain(found)}"
            )
        return found

    return Aggregation(
        given,
        given,
        initialize=lambda: Decimal((0, (0,), -given.scale)),
        add=add,
        merge=context.add,
        map_result=_same,
        undo=lambda value, total: total if value is None else context.subtract(total, value),
    )


def _sum_list(result: SqlType, zero: Any, wrap: Callable[[Any], Any]) -> BindAggregate:
    def total_of(values: list[Any]) -> Any:
        return sum((each for each in values if each is not None), zero)

    def bind(types: Sequence[SqlType], init: Sequence[Any], settings: Settings) -> Aggregation:
        return Aggregation(
            result,
            result,
            initialize=lambda: zero,
            add=lambda values, total: total if values is None else wrap(total + total_of(values)),
            merge=lambda one, other: wrap(one + other),
            map_result=_same,
            undo=lambda values, total: total if values is None else wrap(total - total_of(values)),
        )

    return bind


def _average(kind: SqlType, zero: Any, wrap: Callable[[Any], Any]) -> BindAggregate:
    aggregate_type = StructType((("SUM", kind), ("COUNT", BIGINT)))

    def bind(types: Sequence[SqlType], init: Sequence[Any], settings: Settings) -> Aggregation:
        return Aggregation(
            DOUBLE,
            aggregate_type,
            initialize=lambda: (zero, 0),
            add=lambda value, seen: seen if value is None else (wrap(seen[0] + value), seen[1] + 1),
            merge=lambda one, other: (wrap(one[0] + other[0]), one[1] + other[1]),
            map_result=lambda seen: seen[0] / seen[1] if seen[1] else 0.0,
            undo=lambda value, seen: (
                seen if value is None else (wrap(seen[0] - value), seen[1] - 1)
            ),
        )

    return bind


def _extreme(better: Callable[[Any, Any], bool]) -> BindAggregate:
    def pick(value: Any, best: Any) -> Any:
        if value is None:
            return best
        return value if best is None or better(value, best) else best

    def bind(types: Sequence[SqlType], init: Sequence[Any], settings: Settings) -> Aggregation:
        return Aggregation(
            types[0],
            types[0],
            initialize=lambda: None,
            add=pick,
            merge=pick,
            map_result=_same,
        )

    return bind


_COMPARABLE = ("INT", "BIGINT", "DOUBLE", "DECIMAL", "DATE", "TIME", "TIMESTAMP", "STRING", "BYTES")


def _extremes(better: Callable[[Any, Any], bool]) -> list[AggregateOverload]:
    bind = _extreme(better)
    return [aggregate_overload(f"({each} val1) -> {each}", bind) for each in _COMPARABLE]


def _deviation(
    kind: SqlType,
    zero: Any,
    wrap: Callable[[Any], Any],
    finish: Callable[[float], float],
    *,
    truncate: bool,
) -> BindAggregate:
    """Welford's sums. `truncate`: means are cut to integers when sessions merge, as in ksqlDB."""
    aggregate_type = StructType((("SUM", kind), ("COUNT", BIGINT), ("M2", DOUBLE)))

    def delta(value: Any, seen: tuple[Any, int, float]) -> float:
        return float(value * (seen[1] + 1) - (seen[0] + value))

    def add(value: Any, seen: tuple[Any, int, float]) -> tuple[Any, int, float]:
        if value is None:
            return seen
        count = seen[1] + 1
        more = delta(value, seen) ** 2 / (count * (count - 1)) if count > 1 else 0.0
        return wrap(seen[0] + value), count, seen[2] + more

    def undo(value: Any, seen: tuple[Any, int, float]) -> tuple[Any, int, float]:
        if value is None:
            return seen
        count = seen[1] - 1
        less = delta(value, seen) ** 2 / (count * (count + 1)) if count > 0 else 0.0
        return wrap(seen[0] - value), count, seen[2] - less

    def mean(seen: tuple[Any, int, float]) -> float:
        return float(int(seen[0] / seen[1])) if truncate else seen[0] / seen[1]

    def merge(one: tuple[Any, int, float], other: tuple[Any, int, float]) -> tuple[Any, int, float]:
        count = one[1] + other[1]
        squares = one[2] + other[2]
        if one[1] and other[1]:
            distance = mean(one) - mean(other)
            squares += one[1] * other[1] * distance * distance / count
        return wrap(one[0] + other[0]), count, squares

    def bind(types: Sequence[SqlType], init: Sequence[Any], settings: Settings) -> Aggregation:
        return Aggregation(
            DOUBLE,
            aggregate_type,
            initialize=lambda: (zero, 0, 0.0),
            add=add,
            merge=merge,
            map_result=lambda seen: finish(seen[2] / (seen[1] - 1)) if seen[1] > 1 else 0.0,
            undo=undo,
        )

    return bind


def _bind_correlation(
    types: Sequence[SqlType], init: Sequence[Any], settings: Settings
) -> Aggregation:
    names = ("X_SUM", "Y_SUM", "X_SQUARED_SUM", "Y_SQUARED_SUM", "XY_SUM")
    aggregate_type = StructType((*((name, DOUBLE) for name in names), ("COUNT", BIGINT)))

    def moved(pair: tuple[Any, Any], seen: tuple[Any, ...], sign: int) -> tuple[Any, ...]:
        if pair[0] is None or pair[1] is None:
            return seen
        x, y = float(pair[0]), float(pair[1])
        more = (x, y, x * x, y * y, x * y, 1)
        return tuple([old + sign * new for old, new in zip(seen, more, strict=True)])

    def finish(seen: tuple[Any, ...]) -> float:
        x, y, xx, yy, xy, count = seen
        squares = (count * xx - x * x) * (count * yy - y * y)
        above = count * xy - x * y
        below = math.sqrt(squares) if squares >= 0 else math.nan
        if below:
            return float(above / below)
        return math.copysign(math.inf, above) if above else math.nan

    return Aggregation(
        DOUBLE,
        aggregate_type,
        initialize=lambda: (0.0, 0.0, 0.0, 0.0, 0.0, 0),
        add=lambda pair, seen: moved(pair, seen, 1),
        merge=lambda one, other: tuple([a + b for a, b in zip(one, other, strict=True)]),
        map_result=finish,
        undo=lambda pair, seen: moved(pair, seen, -1),
    )


_KINDS: tuple[tuple[str, SqlType, Any, Callable[[Any], Any]], ...] = (
    ("BIGINT", BIGINT, 0, wrap_long),
    ("INT", INTEGER, 0, wrap_int),
    ("DOUBLE", DOUBLE, 0.0, _same),
)

FUNCTIONS = [
    aggregate(
        "COUNT",
        "The number of rows, or of values that are not NULL.",
        "COUNT(*)",
        aggregate_overload("(T val1) -> BIGINT", _bind_count),
    ),
    aggregate(
        "SUM",
        "The sum of the values that are not NULL.",
        "SUM(amount)",
        aggregate_overload("(DECIMAL val1) -> DECIMAL", _bind_sum_decimal),
        *(
            aggregate_overload(f"({name} val1) -> {name}", _sum(kind, zero, wrap))
            for name, kind, zero, wrap in reversed(_KINDS)
        ),
    ),
    aggregate(
        "sum_list",
        "The sum of all elements of the arrays.",
        "SUM_LIST(amounts)",
        *(
            aggregate_overload(f"(ARRAY<{name}> val1) -> {name}", _sum_list(kind, zero, wrap))
            for name, kind, zero, wrap in _KINDS
        ),
    ),
    aggregate(
        "avg",
        "The average of the values that are not NULL; 0.0 of none.",
        "AVG(amount)",
        *(
            aggregate_overload(f"({name} val1) -> DOUBLE", _average(kind, zero, wrap))
            for name, kind, zero, wrap in _KINDS
        ),
    ),
    aggregate("MAX", "The greatest value.", "MAX(amount)", *_extremes(lambda a, b: a > b)),
    aggregate("MIN", "The least value.", "MIN(amount)", *_extremes(lambda a, b: a < b)),
    aggregate(
        "STDDEV_SAMP",
        "The variance of a sample; the standard deviation is STDDEV_SAMPLE.",
        "STDDEV_SAMP(amount)",
        *(
            aggregate_overload(
                f"({name} val1) -> DOUBLE",
                _deviation(kind, zero, wrap, _same, truncate=kind is not DOUBLE),
            )
            for name, kind, zero, wrap in _KINDS
        ),
    ),
    aggregate(
        "STDDEV_SAMPLE",
        "The standard deviation of a sample.",
        "STDDEV_SAMPLE(amount)",
        *(
            aggregate_overload(
                f"({name} val1) -> DOUBLE",
                _deviation(kind, zero, wrap, math.sqrt, truncate=False),
            )
            for name, kind, zero, wrap in _KINDS
        ),
    ),
    aggregate(
        "correlation",
        "Pearson's coefficient of correlation of two columns.",
        "CORRELATION(x, y)",
        *(
            aggregate_overload(f"({each} val1, {each} val2) -> DOUBLE", _bind_correlation)
            for each in ("DOUBLE", "INT", "BIGINT")
        ),
    ),
]
