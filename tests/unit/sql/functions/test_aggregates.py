"""Aggregate functions: adding, undoing, merging, and the aggregates in between."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest

from moldau.sql.errors import KsqlException
from moldau.sql.functions.declarations import Aggregation
from moldau.sql.functions.registry import built_in
from moldau.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    ArrayType,
    DecimalType,
    SqlType,
)

FUNCTIONS = built_in()
N, L, D, S = INTEGER, BIGINT, DOUBLE, STRING


def bound(name: str, types: list[SqlType], init: list[Any] | None = None) -> Aggregation:
    return FUNCTIONS.aggregate(name, types, init or [])


def result_of(function: Aggregation, values: list[Any]) -> Any:
    aggregate = function.initialize()
    for value in values:
        aggregate = function.add(value, aggregate)
    return function.map_result(aggregate)


CASES: list[tuple[str, list[SqlType], list[Any], list[Any], Any]] = [
    ("COUNT", [S], [], ["a", None, "b"], 2),
    ("SUM", [N], [], [1, None, 2], 3),
    ("SUM", [N], [], [2**31 - 1, 1], -(2**31)),
    ("SUM", [D], [], [1.5, 2.5], 4.0),
    ("SUM", [DecimalType(4, 2)], [], [Decimal("1.10"), Decimal("2.20")], Decimal("3.30")),
    ("SUM_LIST", [ArrayType(N)], [], [[1, None, 2], None, [3]], 6),
    ("AVG", [N], [], [1, 2, None], 1.5),
    ("AVG", [L], [], [], 0.0),
    ("MIN", [S], [], ["b", None, "a"], "a"),
    ("MAX", [DATE], [], [3, 9, 5], 9),
    ("MAX", [BYTES], [], [b"a", b"b"], b"b"),
    ("STDDEV_SAMP", [N], [], [1, 2, 3, 4], 5 / 3),
    ("STDDEV_SAMPLE", [D], [], [1.0, 3.0], 2**0.5),
    ("STDDEV_SAMPLE", [D], [], [1.0], 0.0),
    ("CORRELATION", [N, N], [], [(1, 2), (2, 4), (None, 1), (3, 6)], 1.0),
    ("COLLECT_LIST", [S], [], ["a", None, "a"], ["a", None, "a"]),
    ("COLLECT_SET", [S], [], ["a", None, "a"], ["a", None]),
    ("HISTOGRAM", [S], [], ["a", "b", "a"], {"a": 2, "b": 1}),
    ("ATTR", [S], [], ["a", "a"], "a"),
    ("ATTR", [S], [], ["a", "b"], None),
    ("EARLIEST_BY_OFFSET", [N], [], [None, 1, 2], 1),
    ("EARLIEST_BY_OFFSET", [N, BOOLEAN], [False], [None, 1], None),
    ("EARLIEST_BY_OFFSET", [N, N], [2], [None, 1, 2, 3], [1, 2]),
    ("EARLIEST_BY_OFFSET", [N, N, BOOLEAN], [2, False], [None, 1, 2], [None, 1]),
    ("LATEST_BY_OFFSET", [N], [], [1, 2, None], 2),
    ("LATEST_BY_OFFSET", [N, BOOLEAN], [False], [1, None], None),
    ("LATEST_BY_OFFSET", [N, N], [2], [1, 2, None, 3], [2, 3]),
    ("TOPK", [N, N], [2], [1, 5, None, 3, 5], [5, 5]),
    ("TOPK", [N, S, N], [2], [(1, "a"), (5, "b"), (3, "c")], [(5, "b"), (3, "c")]),
    ("TOPKDISTINCT", [S, N], [2], ["a", "c", "c", "b"], ["c", "b"]),
    ("COUNT_DISTINCT", [S], [], ["a", "b", None, "a"], 2),
]


@pytest.mark.parametrize(("name", "types", "init", "values", "expected"), CASES)
def test_an_aggregate_of_values(
    name: str, types: list[SqlType], init: list[Any], values: list[Any], expected: Any
) -> None:
    found = result_of(bound(name, types, init), values)
    assert found == (pytest.approx(expected) if isinstance(expected, float) else expected)


@pytest.mark.parametrize(
    ("name", "types", "values"),
    [
        ("COUNT", [S], ["a", None, "b"]),
        ("SUM", [L], [3, None, 4]),
        ("AVG", [N], [3, 4, 8]),
        ("STDDEV_SAMPLE", [D], [1.0, 4.0, 9.0]),
        ("CORRELATION", [D, D], [(1.0, 2.0), (2.0, 1.0), (5.0, 3.0)]),
        ("COLLECT_LIST", [S], ["a", "b", "c"]),
        ("HISTOGRAM", [S], ["a", "b", "a"]),
        ("ATTR", [S], ["a", "a", "b"]),
        ("SUM_LIST", [ArrayType(D)], [[1.0], [2.0, 3.0]]),
    ],
)
def test_what_is_undone_was_never_there(name: str, types: list[SqlType], values: list[Any]) -> None:
    function = bound(name, types)
    assert function.undo is not None
    aggregate = function.initialize()
    for value in [*values, values[-1]]:
        aggregate = function.add(value, aggregate)
    aggregate = function.undo(values[-1], aggregate)
    expected = result_of(function, values)
    found = function.map_result(aggregate)
    assert found == (pytest.approx(expected) if isinstance(expected, float) else expected)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{len(case[1])}")
def test_merged_parts_are_the_whole(case: tuple[Any, ...]) -> None:
    name, types, init, values, expected = case
    if name == "LATEST_BY_OFFSET" and init and isinstance(init[0], int) and len(values) > init[0]:
        # ksqlDB keeps the first ones of both here; that is kept, and not what the name says.
        return
    function = bound(name, types, init)
    parts = []
    for chunk in (values[:2], values[2:]):
        aggregate = function.initialize()
        for value in chunk:
            aggregate = function.add(value, aggregate)
        parts.append(aggregate)
    found = function.map_result(function.merge(*parts))
    assert found == (pytest.approx(expected) if isinstance(expected, float) else expected)


def test_aggregates_are_not_changed_in_place() -> None:
    for name, types, init, values, _ in CASES:
        function = bound(name, types, init)
        before = function.initialize()
        kept = repr(before)
        for value in values:
            function.add(value, before)
        assert repr(before) == kept, name


def test_the_types_in_between_are_those_of_ksqldb() -> None:
    shown = {
        "AVG": "STRUCT<`SUM` INTEGER, `COUNT` BIGINT>",
        "LATEST_BY_OFFSET": "STRUCT<`SEQ` BIGINT, `VAL` INTEGER>",
        "ATTR": "ARRAY<STRUCT<`VALUE` INTEGER, `COUNT` INTEGER>>",
        "COUNT_DISTINCT": "ARRAY<INTEGER>",
        "STDDEV_SAMP": "STRUCT<`SUM` INTEGER, `COUNT` BIGINT, `M2` DOUBLE>",
    }
    for name, expected in shown.items():
        assert str(bound(name, [INTEGER]).aggregate_type) == expected


def test_initial_arguments_are_counted() -> None:
    assert FUNCTIONS.init_argument_count("COUNT", [INTEGER]) == 0
    assert FUNCTIONS.init_argument_count("TOPK", [INTEGER, STRING, INTEGER]) == 1
    assert FUNCTIONS.init_argument_count("LATEST_BY_OFFSET", [S, INTEGER, BOOLEAN]) == 2


def test_distinct_values_are_counted_within_a_percent() -> None:
    function = bound("COUNT_DISTINCT", [BIGINT])
    seeded = random.Random(7)
    values = [seeded.getrandbits(60) for _ in range(3_000)]
    assert result_of(function, values) == pytest.approx(3_000, rel=0.02)


def test_limits_come_from_the_settings() -> None:
    limited = FUNCTIONS.with_settings({"ksql.functions.collect_list.limit": "2"})
    assert result_of(limited.aggregate("COLLECT_LIST", [N], []), [1, 2, 3]) == [1, 2]


def test_a_sum_that_overflows_its_decimal_is_an_error() -> None:
    function = bound("SUM", [DecimalType(2, 1)])
    with pytest.raises(KsqlException, match="Numeric field overflow"):
        result_of(function, [Decimal("9.9"), Decimal("0.2")])
