"""Functions of the user, declared by decorators.

    functions = UserFunctions()

    @functions.scalar("(STRING text, INT times) -> STRING", description="A text, repeated.")
    def repeat(text: str, times: int) -> str:
        return text * times

    @functions.table("(STRING text) -> ARRAY<STRING>")
    def words(text):
        return text.split()

    @functions.aggregate("(BIGINT value) -> BIGINT", aggregate_type="STRUCT<N BIGINT>")
    class product: ...

Values look as `moldau.sql.types` says. A function that raises makes its result NULL, and the
processing log says why; an aggregate that raises leaves the aggregate as it was.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from moldau.sql.errors import KsqlException
from moldau.sql.functions.declarations import (
    AggregateFunction,
    AggregateOverload,
    Aggregation,
    Declaration,
    Function,
    Overload,
    ScalarFunction,
    Settings,
    TableFunction,
    overload,
)
from moldau.sql.functions.parameter_types import resolved, signature
from moldau.sql.types import SqlType, parse

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)


class Aggregate(Protocol):
    """What a class given to `UserFunctions.aggregate` has; a call's constants are its arguments.

    It may also have `undo(value, aggregate)`, and then it works on tables, and
    `map_result(aggregate)`.
    """

    def initialize(self) -> Any: ...

    def add(self, value: Any, aggregate: Any) -> Any: ...

    def merge(self, one: Any, other: Any) -> Any: ...


class UserFunctions:
    """Functions to add to a registry; several signatures of one name are its overloads."""

    def __init__(self, author: str = "") -> None:
        self._author = author
        self._scalars: dict[str, tuple[Declaration, list[Overload]]] = {}
        self._tables: dict[str, tuple[Declaration, list[Overload]]] = {}
        self._aggregates: dict[str, tuple[Declaration, list[AggregateOverload]]] = {}

    def scalar(
        self,
        text: str,
        *,
        name: str | None = None,
        description: str = "",
        example: str = "",
        nulls: bool = False,
        result: str | None = None,
    ) -> Callable[[F], F]:
        """A function of one row. `result` names the DECIMAL that a DECIMAL result is."""

        def declare(function: F) -> F:
            made = _overload(text, function, nulls=nulls, result=result)
            self._add(self._scalars, function, name, description, example, made)
            return function

        return declare

    def table(
        self,
        text: str,
        *,
        name: str | None = None,
        description: str = "",
        example: str = "",
        nulls: bool = False,
        result: str | None = None,
    ) -> Callable[[F], F]:
        """A function whose result is an array: a row for each of its values."""

        def declare(function: F) -> F:
            made = _overload(text, function, nulls=nulls, result=result)
            self._add(self._tables, function, name, description, example, made)
            return function

        return declare

    def aggregate(
        self,
        text: str,
        *,
        aggregate_type: str,
        init_count: int = 0,
        name: str | None = None,
        description: str = "",
        example: str = "",
    ) -> Callable[[C], C]:
        """A class with `Aggregate`'s methods; the last `init_count` parameters are constants."""

        def declare(made: C) -> C:
            one = AggregateOverload(
                signature(text), _bind_aggregate(text, made, parse(aggregate_type)), init_count
            )
            self._add(self._aggregates, made, name, description, example, one)
            return made

        return declare

    def _add(
        self,
        into: dict[str, tuple[Declaration, list[Any]]],
        made: Any,
        name: str | None,
        description: str,
        example: str,
        one: Any,
    ) -> None:
        shown = name or made.__name__
        said = description or inspect.getdoc(made) or ""
        declaration = Declaration(shown, "OTHER", said, example, author=self._author)
        into.setdefault(shown.upper(), (declaration, []))[1].append(one)

    def __iter__(self) -> Iterator[Function]:
        for declaration, overloads in self._scalars.values():
            yield ScalarFunction(declaration, tuple(overloads))
        for declaration, overloads in self._tables.values():
            yield TableFunction(declaration, tuple(overloads))
        for declaration, aggregates in self._aggregates.values():
            yield AggregateFunction(declaration, tuple(aggregates))


def _overload(
    text: str, function: Callable[..., Any], *, nulls: bool, result: str | None
) -> Overload:
    fixed = None if result is None else parse(result)
    return overload(
        text,
        function,
        nulls=nulls,
        result_of=None if fixed is None else lambda arguments: fixed,
    )


def _bind_aggregate(text: str, made: type, aggregate_type: SqlType) -> Any:
    declared = signature(text)

    def bind(types: Sequence[SqlType], init: Sequence[Any], settings: Settings) -> Aggregation:
        try:
            instance = made(*init)
        except Exception as error:
            raise KsqlException(f"Failed to invoke UDAF factory method: {error}") from error
        undo = getattr(instance, "undo", None)
        return Aggregation(
            resolved(declared.result, {}),
            aggregate_type,
            initialize=instance.initialize,
            add=instance.add,
            merge=instance.merge,
            map_result=getattr(instance, "map_result", lambda aggregate: aggregate),
            undo=undo,
        )

    return bind
