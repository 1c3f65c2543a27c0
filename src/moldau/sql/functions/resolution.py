"""Which overload of a function fits some arguments, by the rules of ksqlDB's UdfIndex.

First without implicit casts, then with them. Among those that fit, one without variadic parameters
wins, then the one with more parameters, then the one with fewer type variables. Two that are
equally good are an error, and so is the same overload found in two ways.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from moldau.sql.errors import KsqlException
from moldau.sql.functions.parameter_types import (
    AnyValue,
    Array,
    Generic,
    Lambda,
    Map,
    Parameter,
    ParamType,
    Signature,
    accepts,
    generics_of,
    matches_exactly,
)
from moldau.sql.functions.parameter_types import Struct as StructParam
from moldau.sql.ports import Argument, IntervalUnitArgument, LambdaArgument
from moldau.sql.types import ArrayType, LambdaType, MapType, SqlType, StructType

#: An argument, or a lambda whose types are known.
Given = Argument | LambdaType


class HasSignature(Protocol):
    @property
    def signature(self) -> Signature: ...


O = TypeVar("O", bound=HasSignature)  # noqa: E741


def find(
    name: str, overloads: Sequence[O], arguments: Sequence[Given], *, implicit_casts: bool
) -> O:
    """The overload that fits best, or ksqlDB's error."""
    for allow_cast in (False, True) if implicit_casts else (False,):
        found = _best(name, overloads, arguments, allow_cast=allow_cast)
        if found is not None:
            return found
    raise KsqlException(
        f"Function '{name}' does not accept parameters {_shown(arguments)}.\n"
        f"Valid alternatives are:\n{_alternatives(name, overloads)}\n"
        "For detailed information on a function run: DESCRIBE FUNCTION <Function-Name>;"
    )


def _best(
    name: str, overloads: Sequence[O], arguments: Sequence[Given], *, allow_cast: bool
) -> O | None:
    # Overloads that expand to the same list of types stand in each other's way: the better stays.
    candidates: dict[tuple[ParamType, ...], O] = {}
    for overload in overloads:
        for types in expansions(overload.signature, len(arguments)):
            if not _all_accept(types, arguments, allow_cast=allow_cast):
                continue
            other = candidates.get(types)
            if other is None or _rank(overload.signature) > _rank(other.signature):
                candidates[types] = overload
    if not candidates:
        return None
    ranked = sorted(candidates.values(), key=lambda each: _rank(each.signature))
    if len(ranked) > 1 and _rank(ranked[-1].signature) == _rank(ranked[-2].signature):
        raise KsqlException(
            f"Function '{name}' cannot be resolved due to ambiguous method parameters "
            f"{_shown(arguments)}.\n"
            "Use CAST() to explicitly cast your parameters to one of the supported function calls."
            f"\nValid function calls are:\n{_alternatives(name, overloads)}\n"
            "For detailed information on a function run: DESCRIBE FUNCTION <Function-Name>;"
        )
    return ranked[-1]


def _rank(signature: Signature) -> tuple[int, int, int, int, int]:
    parameters = signature.parameters
    variadic_at = next((i for i, each in enumerate(parameters) if each.variadic), -1)
    any_variadic = any(_is_any_variadic(each) for each in parameters)
    generics = sum(bool(generics_of(each.type)) or _is_any_variadic(each) for each in parameters)
    return (0 if variadic_at >= 0 else 1, len(parameters), -generics, 1 - any_variadic, variadic_at)


def _is_any_variadic(parameter: Parameter) -> bool:
    return parameter.variadic and isinstance(parameter.type, AnyValue)


def expansions(signature: Signature, count: int) -> Iterator[tuple[ParamType, ...]]:
    """The lists of `count` types that the parameters can stand for."""
    parameters = signature.parameters
    at = next((i for i, each in enumerate(parameters) if each.variadic), None)
    if at is None:
        if len(parameters) == count:
            yield tuple(each.type for each in parameters)
        return
    repeated = count - (len(parameters) - 1)
    if repeated < 0:
        return
    before = tuple(each.type for each in parameters[:at])
    after = tuple(each.type for each in parameters[at + 1 :])
    yield before + (parameters[at].type,) * repeated + after
    if repeated == 1:
        # The variadic values may also be given as one array.
        yield before + (Array(parameters[at].type),) + after


def _all_accept(
    types: tuple[ParamType, ...], arguments: Sequence[Given], *, allow_cast: bool
) -> bool:
    known: dict[str, SqlType] = {}
    return all(
        _accepts(declared, argument, known, allow_cast=allow_cast)
        for declared, argument in zip(types, arguments, strict=True)
    )


def _accepts(
    declared: ParamType, argument: Given, known: dict[str, SqlType], *, allow_cast: bool
) -> bool:
    if argument is None or isinstance(argument, IntervalUnitArgument):
        return True
    if generics_of(declared):
        return reserve(declared, argument, known) is None
    if isinstance(argument, LambdaArgument):
        return isinstance(declared, Lambda) and len(declared.inputs) == argument.input_count
    if isinstance(argument, LambdaType):
        return isinstance(declared, Lambda) and len(declared.inputs) == len(argument.inputs)
    return accepts(argument, declared, allow_cast=allow_cast)


def reserve(declared: ParamType, argument: Given, known: dict[str, SqlType]) -> str | None:
    """Learn what the type variables stand for; the reason if that cannot be."""
    pairs: list[tuple[str, SqlType]] = []
    if not _bind(declared, argument, pairs):
        return (
            f"Cannot infer generics for {declared} from {_one(argument)} because they do not have "
            "the same schema structure."
        )
    for name, found in pairs:
        old = known.setdefault(name, found)
        if old != found:
            return (
                f"Found invalid instance of generic schema when mapping {declared} to "
                f"{_one(argument)}. Cannot map {name} to both {old} and {found}"
            )
    return None


def _bind(declared: ParamType, argument: Given, pairs: list[tuple[str, SqlType]]) -> bool:
    match declared, argument:
        case Lambda(), LambdaArgument():
            return len(declared.inputs) == argument.input_count
        case Lambda(), LambdaType():
            return len(declared.inputs) == len(argument.inputs) and all(
                _bind(ours, theirs, pairs)
                for ours, theirs in zip(
                    (*declared.inputs, declared.result),
                    (*argument.inputs, argument.result),
                    strict=True,
                )
            )
        case _, (LambdaArgument() | LambdaType()):
            return False
        case Generic(), _ if argument is not None and not isinstance(
            argument, IntervalUnitArgument
        ):
            pairs.append((declared.name, argument))
            return True
        case Array(), ArrayType():
            return _bind(declared.item, argument.item, pairs)
        case Map(), MapType():
            return _bind(declared.key, argument.key, pairs) and _bind(
                declared.value, argument.value, pairs
            )
        case StructParam(), StructType():
            return not generics_of(declared)
    if argument is None or isinstance(argument, IntervalUnitArgument | LambdaArgument | LambdaType):
        return False
    return matches_exactly(argument, declared)


def _one(argument: Given) -> str:
    if argument is None:
        return "null"
    if isinstance(argument, LambdaArgument):
        return "LAMBDA"
    if isinstance(argument, IntervalUnitArgument):
        return "INTERVAL UNIT"
    return str(argument).replace("`", "")


def _shown(arguments: Sequence[Given]) -> str:
    return f"({', '.join(_one(each) for each in arguments)})"


def _alternatives(name: str, overloads: Sequence[HasSignature]) -> str:
    return "\n".join(
        f"{name}({', '.join(map(str, each.signature.parameters))})" for each in overloads
    )
