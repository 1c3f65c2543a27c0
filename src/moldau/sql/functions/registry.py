"""The functions that statements may call: built in ones and those of the user.

Implements `moldau.sql.ports.Functions`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.sql.errors import KsqlException
from moldau.sql.functions import resolution
from moldau.sql.functions.aggregates import collections, hyperloglog, numbers
from moldau.sql.functions.builtin import (
    ambient,
    arrays,
    encodings,
    json_functions,
    maps,
    masks,
    mathematics,
    regexes,
    strings,
    tables,
    times,
    urls,
)
from moldau.sql.functions.declarations import (
    AggregateFunction,
    AggregateOverload,
    Aggregation,
    Declaration,
    Evaluate,
    Function,
    Overload,
    ScalarFunction,
    TableFunction,
    null_guarded,
)
from moldau.sql.functions.parameter_types import (
    AnyDecimal,
    Array,
    Generic,
    Lambda,
    cast_target,
    generics_of,
    resolved,
)
from moldau.sql.ports import (
    Argument,
    FunctionKind,
    IntervalUnitArgument,
    LambdaArgument,
    LambdaResolver,
)
from moldau.sql.types import ArrayType, LambdaType, SqlType

_BUILT_IN: tuple[Sequence[Function], ...] = (
    arrays.FUNCTIONS,
    maps.FUNCTIONS,
    mathematics.FUNCTIONS,
    ambient.FUNCTIONS,
    times.FUNCTIONS,
    strings.FUNCTIONS,
    masks.FUNCTIONS,
    regexes.FUNCTIONS,
    encodings.FUNCTIONS,
    json_functions.FUNCTIONS,
    urls.FUNCTIONS,
    tables.FUNCTIONS,
    numbers.FUNCTIONS,
    collections.FUNCTIONS,
    hyperloglog.FUNCTIONS,
)
_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")


@dataclass(frozen=True, slots=True)
class Call:
    """A scalar or table function whose signature is chosen; `moldau.sql.ports.ScalarCall`."""

    result: SqlType
    parameters: tuple[SqlType | None, ...]
    evaluate: Evaluate


class FunctionRegistry:
    """Functions by name, in any case."""

    def __init__(
        self, functions: Iterable[Function] = (), settings: Mapping[str, Any] | None = None
    ) -> None:
        self._functions: dict[str, Function] = {}
        self._settings = dict(settings or {})
        for each in functions:
            self.add(each)

    def add(self, function: Function) -> None:
        """Make a function known; a name stands for one function only."""
        name = function.declaration.name
        if _NAME.fullmatch(name) is None:
            raise KsqlException(
                f"{name} is not a valid function name. Function names must be valid java "
                "identifiers and not a KSQL reserved word"
            )
        if name.upper() in self._functions:
            raise KsqlException(f"Function already registered: {name.upper()}")
        self._functions[name.upper()] = function

    def with_settings(self, settings: Mapping[str, Any]) -> FunctionRegistry:
        """The same functions under other settings, such as ksql.functions.collect_list.limit."""
        copy = FunctionRegistry(settings=settings)
        copy._functions = self._functions
        return copy

    def kind(self, name: str) -> FunctionKind | None:
        match self._functions.get(name.upper()):
            case ScalarFunction():
                return "scalar"
            case TableFunction():
                return "table"
            case AggregateFunction():
                return "aggregate"
            case None:
                return None

    def names(self) -> list[str]:
        return list(self._functions)

    def function(self, name: str) -> Function:
        found = self._functions.get(name.upper())
        if found is None:
            raise KsqlException(f"Can't find any functions with the name '{name}'")
        return found

    def declarations(self) -> list[tuple[FunctionKind, Declaration]]:
        """What SHOW FUNCTIONS lists, in the order of names."""
        return [
            (self.kind(name) or "scalar", self._functions[name].declaration)
            for name in sorted(self._functions)
        ]

    def scalar(
        self, name: str, arguments: Sequence[Argument], resolve_lambda: LambdaResolver
    ) -> Call:
        found = self._functions.get(name.upper())
        if not isinstance(found, ScalarFunction):
            raise KsqlException(f"Can't find any functions with the name '{name}'")
        shown = found.declaration.name
        chosen = resolution.find(shown, found.overloads, arguments, implicit_casts=True)
        return _call(chosen, _with_lambdas(chosen, arguments, resolve_lambda))

    def table(self, name: str, arguments: Sequence[Argument]) -> Call:
        found = self._functions.get(name.upper())
        if not isinstance(found, TableFunction):
            raise KsqlException(f"Can't find any table functions with the name '{name}'")
        shown = found.declaration.name
        chosen = resolution.find(shown, found.overloads, arguments, implicit_casts=True)
        call = _call(chosen, list(arguments))
        if not isinstance(call.result, ArrayType):
            raise KsqlException(f"Table function {shown} must return an ARRAY")
        return Call(call.result.item, call.parameters, call.evaluate)

    def init_argument_count(self, name: str, arguments: Sequence[Argument]) -> int:
        chosen = self._aggregate_overload(name, arguments)
        parameters = chosen.signature.parameters
        if any(each.variadic for each in parameters[len(parameters) - chosen.init_count :]):
            return len(arguments) - (len(parameters) - chosen.init_count)
        return chosen.init_count

    def aggregate(
        self, name: str, arguments: Sequence[Argument], init_arguments: Sequence[Any]
    ) -> Aggregation:
        chosen = self._aggregate_overload(name, arguments)
        types = [_type_or_none(each) for each in arguments]
        known = [each for each in types if each is not None]
        if len(known) != len(types):
            raise KsqlException(f"The arguments of {name} must have types")
        return chosen.bind(known, init_arguments, self._settings)

    def _aggregate_overload(self, name: str, arguments: Sequence[Argument]) -> AggregateOverload:
        found = self._functions.get(name.upper())
        if not isinstance(found, AggregateFunction):
            raise KsqlException(f"Can not find any aggregate functions with the name '{name}'")
        return resolution.find(
            found.declaration.name, found.overloads, arguments, implicit_casts=False
        )


def built_in(settings: Mapping[str, Any] | None = None) -> FunctionRegistry:
    """ksqlDB's functions."""
    return FunctionRegistry((each for family in _BUILT_IN for each in family), settings)


def _type_or_none(argument: resolution.Given) -> SqlType | None:
    if isinstance(argument, LambdaArgument | IntervalUnitArgument | LambdaType):
        return None
    return argument


def _declared(chosen: Overload, count: int, arguments: Sequence[resolution.Given]) -> list[Any]:
    """The declared type of each argument."""
    ways = list(resolution.expansions(chosen.signature, count))
    if len(ways) == 2 and isinstance(arguments[-1], ArrayType):
        # A variadic parameter given as one array, unless arrays are what it takes.
        types = ways[0]
        at = next(i for i, each in enumerate(chosen.signature.parameters) if each.variadic)
        if not isinstance(types[at], Array | Generic):
            return list(ways[1])
    return list(ways[0])


def _with_lambdas(
    chosen: Overload, arguments: Sequence[Argument], resolve_lambda: LambdaResolver
) -> list[resolution.Given]:
    """The arguments with lambdas typed, from left to right, by what is known of type variables."""
    if not any(isinstance(each, LambdaArgument) for each in arguments):
        return list(arguments)
    known: dict[str, SqlType] = {}
    given: list[resolution.Given] = []
    for index, argument in enumerate(arguments):
        declared = chosen.signature.parameters[index].type
        typed: resolution.Given = argument
        if isinstance(argument, LambdaArgument) and isinstance(declared, Lambda):
            inputs = tuple(_lambda_input(each, known) for each in declared.inputs)
            typed = LambdaType(inputs, resolve_lambda(index, inputs))
        reason = resolution.reserve(declared, typed, known) if typed is not None else None
        if reason is not None:
            raise KsqlException(reason)
        given.append(typed)
    return given


def _lambda_input(declared: Any, known: Mapping[str, SqlType]) -> SqlType:
    if isinstance(declared, Generic) and declared.name not in known:
        raise KsqlException(
            f"Could not resolve type for generic {declared}. The generic mapping so far: "
            f"{ {name: str(each) for name, each in known.items()} }"
        )
    return resolved(declared, known)


def _call(chosen: Overload, arguments: Sequence[resolution.Given]) -> Call:
    declared = _declared(chosen, len(arguments), arguments)
    types = [_type_or_none(each) for each in arguments]
    parameters = tuple(
        None if given is None else cast_target(wanted, given)
        for wanted, given in zip(declared, types, strict=True)
    )
    passed = [
        given if target is None else target for given, target in zip(types, parameters, strict=True)
    ]
    result = _result(chosen, declared, arguments, passed)
    evaluate = chosen.bind(passed, result)
    if not chosen.nulls:
        evaluate = null_guarded(evaluate, len(arguments))
    if chosen.signature.is_variadic and _is_spread(chosen, declared):
        evaluate = _spread(evaluate, len(arguments))
    return Call(result, parameters, evaluate)


def _is_spread(chosen: Overload, declared: Sequence[Any]) -> bool:
    at = next(i for i, each in enumerate(chosen.signature.parameters) if each.variadic)
    if at >= len(declared):
        return False
    return bool(declared[at] == Array(chosen.signature.parameters[at].type))


def _spread(evaluate: Evaluate, count: int) -> Evaluate:
    """The variadic values came as one array, the last argument."""
    return lambda *given: (
        evaluate(*given[: count - 1], *given[-1]) if given[-1] is not None else None
    )


def _result(
    chosen: Overload,
    declared: Sequence[Any],
    arguments: Sequence[resolution.Given],
    passed: Sequence[SqlType | None],
) -> SqlType:
    if chosen.result_of is not None:
        return chosen.result_of(passed)
    if isinstance(chosen.signature.result, AnyDecimal):
        raise KsqlException("A function that returns a DECIMAL must say which one")
    known: dict[str, SqlType] = {}
    for wanted, given in zip(declared, arguments, strict=True):
        if given is not None and not isinstance(given, IntervalUnitArgument):
            reason = resolution.reserve(wanted, given, known) if generics_of(wanted) else None
            if reason is not None:
                raise KsqlException(reason)
    return resolved(chosen.signature.result, known)
