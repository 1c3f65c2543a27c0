"""Which overload a call means."""

from __future__ import annotations

import pytest

from moldau.sql.errors import KsqlException
from moldau.sql.functions.declarations import overload
from moldau.sql.functions.resolution import find
from moldau.sql.ports import Argument, LambdaArgument
from moldau.sql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    ArrayType,
    DecimalType,
    MapType,
)


def chosen(signatures: list[str], arguments: list[Argument], *, casts: bool = True) -> str:
    overloads = [overload(each, lambda *values: None) for each in signatures]
    found = find("f", overloads, arguments, implicit_casts=casts)
    return signatures[overloads.index(found)]


@pytest.mark.parametrize(
    ("signatures", "arguments", "expected"),
    [
        (["(INT a) -> INT", "(BIGINT a) -> INT"], [BIGINT], 1),
        (["(STRING a) -> INT", "(STRING... a) -> INT"], [STRING], 0),
        (["(STRING... a) -> INT", "(STRING a, INT... b) -> INT"], [STRING], 1),
        (["(STRING... a) -> INT"], [], 0),
        (["(T a) -> T", "(INT a) -> INT"], [INTEGER], 1),
        (["(T a) -> T", "(INT a) -> INT"], [DOUBLE], 0),
        (["(ARRAY<T> a, T b) -> T"], [ArrayType(INTEGER), INTEGER], 0),
        (["(DOUBLE a) -> INT"], [DecimalType(4, 2)], 0),
        (["(DATE a) -> INT"], [STRING], 0),
        (["(INT a, STRING... b, DOUBLE c) -> INT"], [INTEGER, STRING, STRING, DOUBLE], 0),
        (["(INT a, STRING... b, DOUBLE c) -> INT"], [INTEGER, DOUBLE], 0),
        (["(STRING... a) -> INT"], [ArrayType(STRING)], 0),
        (["(ARRAY<T> a, LAMBDA(T)=>R f) -> R"], [ArrayType(INTEGER), LambdaArgument(1)], 0),
        (["(INT a, INT b) -> INT"], [None, INTEGER], 0),
        (["(ARRAY<DECIMAL> a) -> INT", "(ARRAY<T> a) -> INT"], [ArrayType(DecimalType(2, 1))], 0),
    ],
)
def test_the_best_overload_is_found(
    signatures: list[str], arguments: list[Argument], expected: int
) -> None:
    assert chosen(signatures, arguments) == signatures[expected]


@pytest.mark.parametrize(
    ("signatures", "arguments", "message"),
    [
        (["(INT a) -> INT"], [STRING], "Function 'f' does not accept parameters (STRING)."),
        (["(INT a) -> INT"], [DOUBLE], "does not accept parameters (DOUBLE)"),
        (["(ARRAY<T> a, T b) -> T"], [ArrayType(INTEGER), STRING], "does not accept parameters"),
        (["(INTERVAL UNIT u, DATE d) -> DATE"], [DATE, DATE], "(DATE, DATE)"),
        (
            [
                "(INT a, INT... b) -> INT",
                "(BIGINT a, BIGINT... b) -> INT",
                "(DOUBLE a, DOUBLE... b) -> INT",
            ],
            [INTEGER, BIGINT],
            "Function 'f' cannot be resolved due to ambiguous method parameters (INTEGER, BIGINT).",
        ),
        (
            ["(MAP<K, V> m, LAMBDA(K, V)=>V f) -> V"],
            [MapType(STRING, INTEGER), LambdaArgument(1)],
            "(MAP<STRING, INTEGER>, LAMBDA)",
        ),
        (["(BOOLEAN a) -> INT"], [None, BOOLEAN], "(null, BOOLEAN)"),
    ],
)
def test_a_call_that_fits_none_or_several_is_an_error(
    signatures: list[str], arguments: list[Argument], message: str
) -> None:
    with pytest.raises(KsqlException) as caught:
        chosen(signatures, arguments)
    assert message in str(caught.value)


def test_the_error_lists_what_there_is() -> None:
    with pytest.raises(KsqlException) as caught:
        chosen(["(ARRAY<DECIMAL> input) -> INT", "(STRING... more) -> INT"], [DOUBLE])
    assert "Valid alternatives are:\nf(ARRAY<DECIMAL> input)\nf(VARCHAR... more)\n" in str(
        caught.value
    )


def test_aggregates_are_not_given_casts() -> None:
    with pytest.raises(KsqlException):
        chosen(["(BIGINT a) -> INT"], [INTEGER], casts=False)
