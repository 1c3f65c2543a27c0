"""Functions of the user."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.sql.errors import KsqlException
from moldau.sql.functions.registry import built_in
from moldau.sql.functions.user import UserFunctions
from moldau.sql.types import BIGINT, DOUBLE, INTEGER, STRING, DecimalType


def no_lambdas(index: int, inputs: Any) -> Any:
    raise AssertionError


def test_scalars_tables_and_aggregates_are_called_like_those_built_in() -> None:
    functions = UserFunctions(author="me")

    @functions.scalar("(STRING text, INT times) -> STRING")
    def repeat(text: str, times: int) -> str:
        """A text, repeated."""
        return text * times

    @functions.scalar("(BIGINT number) -> DECIMAL", name="cents", result="DECIMAL(20, 2)")
    def cents(number: int) -> Any:
        return number

    @functions.table("(STRING text) -> ARRAY<STRING>")
    def words(text: str) -> list[str]:
        return text.split()

    @functions.aggregate(
        "(BIGINT value, INT start) -> BIGINT", aggregate_type="BIGINT", init_count=1
    )
    class product:
        def __init__(self, start: int) -> None:
            self._start = start

        def initialize(self) -> int:
            return self._start

        def add(self, value: int | None, aggregate: int) -> int:
            return aggregate if value is None else aggregate * value

        def merge(self, one: int, other: int) -> int:
            return one * other

    registry = built_in()
    for function in functions:
        registry.add(function)
    call = registry.scalar("REPEAT", [STRING, INTEGER], no_lambdas)
    assert (call.result, call.evaluate("ab", 2), call.evaluate(None, 2)) == (STRING, "abab", None)
    assert registry.scalar("CENTS", [BIGINT], no_lambdas).result == DecimalType(20, 2)
    assert registry.table("words", [STRING]).evaluate("a b") == ["a", "b"]
    total = registry.aggregate("PRODUCT", [BIGINT, INTEGER], [10])
    assert total.add(3, total.initialize()) == 30
    assert total.undo is None
    assert registry.function("repeat").declaration.description == "A text, repeated."


def test_a_name_stands_for_one_function() -> None:
    functions = UserFunctions()

    @functions.scalar("(DOUBLE x) -> DOUBLE", name="abs")
    def mine(x: float) -> float:
        return x

    with pytest.raises(KsqlException, match="already registered"):
        built_in().add(next(iter(functions)))


@pytest.mark.parametrize(
    "text", ["(INT a -> INT", "(FANCY a) -> INT", "(INT... a, INT... b) -> INT"]
)
def test_a_signature_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"signature|variadic"):
        UserFunctions().scalar(text)(lambda *values: None)


def test_unknown_functions_are_named() -> None:
    with pytest.raises(KsqlException, match="Can't find any functions with the name 'NOPE'"):
        built_in().scalar("NOPE", [DOUBLE], no_lambdas)
