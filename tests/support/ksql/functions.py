"""The functions that only ksqlDB's cases call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from moldau.sql.functions.declarations import (
    AggregateFunction,
    Aggregation,
    Declaration,
    Function,
    TableFunction,
    aggregate_overload,
    overload,
    scalar,
)
from moldau.sql.types import BIGINT, DOUBLE, INTEGER, ArrayType, DecimalType, SqlType, StructType


def _declared(name: str) -> Declaration:
    return Declaration(name, "TEST", "", "")


def _boom(*_: Any) -> Any:
    raise RuntimeError("boom!")


def _throw_if(flag: bool) -> int:
    if flag:
        raise RuntimeError("You asked me to throw...")
    return 0


def _bad_text() -> Callable[[Any, Any], Callable[[str], str | None]]:
    def bind(arguments: Any, result: Any) -> Callable[[str], str | None]:
        calls = 0

        def evaluate(text: str) -> str | None:
            nonlocal calls
            calls += 1
            return None if calls % 2 == 1 else text

        return evaluate

    return bind


def _run(result: Any, run: bool) -> Any:
    if not run:
        raise RuntimeError("this should not be called")
    return result


def _scalars() -> list[Function]:
    return [
        scalar(
            "test_udf",
            "TEST",
            "",
            "",
            overload(
                "(INT arg1, STRING arg2) -> STRING", lambda *_: "doStuffIntString", nulls=True
            ),
            overload(
                "(BIGINT arg1, STRING arg2) -> STRING", lambda *_: "doStuffLongString", nulls=True
            ),
            overload(
                "(BIGINT arg1, BIGINT arg2, STRING arg3) -> STRING",
                lambda *_: "doStuffLongLongString",
                nulls=True,
            ),
            overload("(BIGINT... arg) -> STRING", lambda *_: "doStuffLongVarargs", nulls=True),
            overload("() -> STRUCT<A VARCHAR>", lambda: ("foo",), nulls=True),
            overload("(STRUCT<A VARCHAR> struct) -> STRING", lambda struct: struct[0]),
        ),
        scalar(
            "bad_udf",
            "TEST",
            "",
            "",
            overload("(INT arg1) -> INT", _boom, nulls=True),
            overload("(BOOLEAN arg) -> INT", _throw_if),
            overload("(STRING arg1) -> STRING", bind=_bad_text(), nulls=True),
        ),
        scalar(
            "WhenCondition",
            "TEST",
            "",
            "",
            overload("(BOOLEAN retValue, BOOLEAN shouldBeEvaluated) -> BOOLEAN", _run),
        ),
        scalar(
            "WhenResult",
            "TEST",
            "",
            "",
            overload("(INT retValue, BOOLEAN shouldBeEvaluated) -> INT", _run),
        ),
        scalar(
            "tostruct",
            "TEST",
            "",
            "",
            overload("(STRING value) -> STRUCT<A VARCHAR>", lambda text: (text,)),
        ),
    ]


_KINDS = ("INT", "BIGINT", "DOUBLE", "BOOLEAN", "STRING", "DECIMAL", "STRUCT<A VARCHAR>")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"Struct{{A={value[0]}}}"
    return str(value)


def _tables() -> list[Function]:
    singles = [
        overload(
            f"({kind} x) -> ARRAY<{kind}>",
            lambda value: [value],
            result_of=lambda types: ArrayType(DecimalType(30, 10)),
        )
        if kind == "DECIMAL"
        else overload(f"({kind} x) -> ARRAY<{kind}>", lambda value: [value])
        for kind in _KINDS
    ]
    plain = ", ".join(f"{kind} a{index}" for index, kind in enumerate(_KINDS))
    lists = ", ".join(f"ARRAY<{kind}> a{index}" for index, kind in enumerate(_KINDS))
    maps = ", ".join(f"MAP<STRING, {kind}> a{index}" for index, kind in enumerate(_KINDS))
    return [
        TableFunction(
            _declared("test_udtf"),
            (
                *singles,
                overload(f"({plain}) -> ARRAY<STRING>", lambda *each: [_text(x) for x in each]),
                overload(f"({lists}) -> ARRAY<STRING>", lambda *each: [_text(x[0]) for x in each]),
                overload(
                    f"({maps}) -> ARRAY<STRING>",
                    lambda *each: [_text(next(iter(x.values()))) for x in each],
                ),
            ),
        ),
        TableFunction(
            _declared("throwing_udtf"),
            (
                overload(
                    "(BOOLEAN shouldThrow) -> ARRAY<BOOLEAN>", lambda flag: [_throw_if(flag) != 0]
                ),
            ),
        ),
    ]


def _sum(
    amount: Callable[[Any], Any],
    *,
    result: SqlType = BIGINT,
    start: Callable[[Sequence[Any]], Any] = lambda init: 0,
    undo: bool = False,
) -> Any:
    def bind(types: Sequence[SqlType], init: Sequence[Any], settings: Any) -> Aggregation:
        kind = result
        first = start(init)
        return Aggregation(
            result=kind,
            aggregate_type=kind,
            initialize=lambda: first,
            add=lambda value, total: total + amount(value),
            merge=lambda one, two: one + two,
            map_result=lambda total: total,
            undo=(lambda value, total: total - amount(value)) if undo else None,
        )

    return bind


def _sum_of_pairs(types: Sequence[SqlType], init: Sequence[Any], settings: Any) -> Aggregation:
    kind = StructType((("A", INTEGER), ("B", INTEGER)))

    def add(one: Any, other: Any) -> Any:
        return (one[0] + other[0], one[1] + other[1])

    return Aggregation(
        result=kind,
        aggregate_type=kind,
        initialize=lambda: (0, 0),
        add=add,
        merge=add,
        map_result=lambda total: total,
    )


def _length(text: str | None) -> int:
    return 0 if text is None else len(text)


def _amounts(values: Any) -> int:
    """Numbers as they are, texts by their length."""
    total = 0
    for each in values if isinstance(values, tuple) else (values,):
        if isinstance(each, list | tuple):
            total += _amounts(tuple(each))
        elif isinstance(each, str):
            total += len(each)
        elif each is not None:
            total += each
    return total


def _init_total(init: Sequence[Any]) -> int:
    return _amounts(tuple(init))


def _firsts(types: Sequence[SqlType], init: Sequence[Any], settings: Any) -> Aggregation:
    kind = ArrayType(types[0])

    def add(values: Any, found: list[Any]) -> list[Any]:
        flat = [*values[:-1], *values[-1]] if isinstance(values[-1], list | tuple) else values
        return found if any(each is None for each in flat) else [*found, values[0]]

    return Aggregation(
        result=kind,
        aggregate_type=kind,
        initialize=list,
        add=add,
        merge=lambda one, two: one + two,
        map_result=lambda found: found,
    )


def _aggregates() -> list[Function]:
    def of(name: str, *overloads: Any) -> Function:
        return AggregateFunction(_declared(name), overloads)

    return [
        of(
            "test_udaf",
            aggregate_overload("(BIGINT val) -> BIGINT", _sum(lambda value: value, undo=True)),
            aggregate_overload("(INT val) -> BIGINT", _sum(lambda value: value)),
            aggregate_overload(
                "(DOUBLE val) -> DOUBLE",
                _sum(lambda value: value, result=DOUBLE, start=lambda init: 0.0),
            ),
            aggregate_overload("(STRUCT<A INT, B INT> val) -> STRUCT<A INT, B INT>", _sum_of_pairs),
            aggregate_overload(
                "(STRING val, STRING init) -> BIGINT",
                _sum(_length, start=lambda init: len(init[0])),
                init_count=1,
            ),
        ),
        of(
            "MULTI_ARG",
            aggregate_overload(
                "(BIGINT a, STRING b, INT initArg, STRING... initStrings) -> BIGINT",
                _sum(_amounts, start=_init_total),
                init_count=2,
            ),
        ),
        of("VAR_ARG", aggregate_overload("(BIGINT a, STRING... b) -> BIGINT", _sum(_amounts))),
        of(
            "FOUR_ARG",
            aggregate_overload(
                "(BIGINT a, STRING b, STRING c, STRING d, INT initArg, STRING... texts) -> BIGINT",
                _sum(_amounts, start=_init_total),
                init_count=2,
            ),
        ),
        of(
            "FIVE_ARG",
            aggregate_overload(
                "(BIGINT a, STRING b, STRING c, STRING d, INT e, INT init, STRING... texts) "
                "-> BIGINT",
                _sum(_amounts, start=_init_total),
                init_count=2,
            ),
        ),
        of(
            "MID_VAR_ARG",
            aggregate_overload(
                "(BIGINT a, STRING... b, INT initArg1, INT initArg2) -> BIGINT",
                _sum(_amounts, start=_init_total),
                init_count=2,
            ),
        ),
        of("GENERIC_VAR_ARG", aggregate_overload("(A a, B b, C... c) -> ARRAY<A>", _firsts)),
        of("OBJ_COL_ARG", aggregate_overload("(INT a, ANY... b) -> ARRAY<INT>", _firsts)),
    ]


def test_functions() -> list[Function]:
    """All of them."""
    return [*_scalars(), *_tables(), *_aggregates()]


test_functions.__test__ = False  # type: ignore[attr-defined]
