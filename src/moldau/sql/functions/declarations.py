"""What a function is: its name, what it does, and its overloads.

DESCRIBE FUNCTION, error messages and the generated page of the documentation come from here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moldau.sql.functions.parameter_types import Signature, signature
from moldau.sql.types import SqlType

Evaluate = Callable[..., Any]
#: The types of the arguments; None for a bare NULL, a lambda or an interval unit.
ArgumentTypes = Sequence[SqlType | None]
#: Makes the implementation for the types of a call, and the type of its result.
Bind = Callable[[ArgumentTypes, SqlType], Evaluate]
ResultOf = Callable[[ArgumentTypes], SqlType]
Settings = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a scalar or table function.

    With `nulls`, the implementation takes None; otherwise a NULL argument makes the result NULL.
    `result_of` is needed where the signature's result is a DECIMAL.
    """

    signature: Signature
    bind: Bind
    nulls: bool = False
    result_of: ResultOf | None = None
    description: str = ""


def overload(
    text: str,
    evaluate: Evaluate | None = None,
    *,
    bind: Bind | None = None,
    nulls: bool = False,
    result_of: ResultOf | None = None,
    description: str = "",
) -> Overload:
    """An overload by its signature and either its implementation or what makes it."""
    if (evaluate is None) == (bind is None):
        raise ValueError(f"{text}: give either evaluate or bind")
    made = bind if bind is not None else _always(evaluate)
    return Overload(signature(text), made, nulls, result_of, description)


def _always(evaluate: Evaluate | None) -> Bind:
    def bind(arguments: ArgumentTypes, result: SqlType) -> Evaluate:
        if evaluate is None:
            raise ValueError("no implementation")
        return evaluate

    return bind


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An aggregate function in use: see `moldau.sql.ports.AggregateCall`."""

    result: SqlType
    aggregate_type: SqlType
    initialize: Callable[[], Any]
    add: Callable[[Any, Any], Any]
    merge: Callable[[Any, Any], Any]
    map_result: Callable[[Any], Any]
    undo: Callable[[Any, Any], Any] | None = None


#: Types of all arguments, values of the initial ones, settings of the server.
BindAggregate = Callable[[Sequence[SqlType], Sequence[Any], Settings], Aggregation]


@dataclass(frozen=True, slots=True)
class AggregateOverload:
    """One signature of an aggregate function; its last `init_count` parameters are constants."""

    signature: Signature
    bind: BindAggregate
    init_count: int = 0
    description: str = ""


def aggregate_overload(
    text: str, bind: BindAggregate, *, init_count: int = 0, description: str = ""
) -> AggregateOverload:
    return AggregateOverload(signature(text), bind, init_count, description)


@dataclass(frozen=True, slots=True)
class Declaration:
    """A function. `name` is spelled as ksqlDB's messages spell it; any case calls it."""

    name: str
    category: str
    description: str
    example: str
    author: str = "Moldau"
    #: Where it was loaded from.
    path: str = "internal"
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    declaration: Declaration
    overloads: tuple[Overload, ...]


@dataclass(frozen=True, slots=True)
class TableFunction:
    declaration: Declaration
    overloads: tuple[Overload, ...]


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    declaration: Declaration
    overloads: tuple[AggregateOverload, ...]


Function = ScalarFunction | TableFunction | AggregateFunction


def scalar(
    name: str,
    category: str,
    description: str,
    example: str,
    *overloads: Overload,
    parameters: Mapping[str, str] | None = None,
) -> ScalarFunction:
    return ScalarFunction(
        Declaration(name, category, description, example, parameters=parameters or {}), overloads
    )


def table(name: str, description: str, example: str, *overloads: Overload) -> TableFunction:
    return TableFunction(Declaration(name, "TABLE", description, example), overloads)


def aggregate(
    name: str, description: str, example: str, *overloads: AggregateOverload
) -> AggregateFunction:
    return AggregateFunction(Declaration(name, "AGGREGATE", description, example), overloads)


def null_guarded(evaluate: Evaluate, count: int) -> Evaluate:
    """NULL if any argument is, by the number of arguments so that calls stay cheap."""
    match count:
        case 0:
            return evaluate
        case 1:
            return lambda one: None if one is None else evaluate(one)
        case 2:
            return lambda one, two: None if one is None or two is None else evaluate(one, two)
        case 3:
            return lambda one, two, three: (
                None if one is None or two is None or three is None else evaluate(one, two, three)
            )
        case _:
            return lambda *given: None if any(each is None for each in given) else evaluate(*given)
