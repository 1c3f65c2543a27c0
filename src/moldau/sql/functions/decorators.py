"""`udf`, `udtf` and `udaf`: declare functions of your own, with types from annotations or in SQL.

The decorators only leave a note on what they decorate; a server finds it in the files it loads.

| annotation | SQL |
|---|---|
| bool, int, float, str, bytes | BOOLEAN, BIGINT, DOUBLE, STRING, BYTES |
| date, time, datetime | DATE, TIME, TIMESTAMP |
| list[T], dict[str, T] | ARRAY<T>, MAP<STRING, T> |

Other types, such as DECIMAL(10, 2) and STRUCT, are given as texts. A parameter `T | None` takes
NULL; without one, a NULL argument makes the result NULL and the function is not called.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime, time
from typing import Any, Literal, TypeVar, overload

__all__ = ["MARK", "Spec", "udaf", "udf", "udtf"]

MARK = "__moldau_sql__"
F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)
_BASE: dict[Any, str] = {
    bool: "BOOLEAN",
    int: "BIGINT",
    float: "DOUBLE",
    str: "STRING",
    bytes: "BYTES",
    date: "DATE",
    time: "TIME",
    datetime: "TIMESTAMP",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A function as declared; `parameters` are types (`...` after a variadic one) and names."""

    kind: Literal["scalar", "table", "aggregate"]
    name: str
    parameters: tuple[tuple[str, str], ...]
    result: str
    nulls: bool = False
    description: str = ""
    author: str = ""
    version: str = ""
    category: str = "OTHER"
    #: Of aggregates: the type of what is kept, and what a class has beside the needed methods.
    state: str = ""
    undo: bool = False
    constants: int = 0

    @property
    def fields(self) -> dict[str, Any]:
        return asdict(self)


@overload
def udf(function: F, /) -> F: ...
@overload
def udf(
    *,
    name: str | None = ...,
    parameters: Sequence[str] | None = ...,
    returns: str | None = ...,
    nulls: bool | None = ...,
    description: str = ...,
    author: str = ...,
    version: str = ...,
    category: str = ...,
) -> Callable[[F], F]: ...


def udf(function: Any = None, /, **options: Any) -> Any:
    """A function of one row. `parameters` and `returns` are SQL types, instead of annotations."""
    return _declared("scalar", function, options)


@overload
def udtf(function: F, /) -> F: ...
@overload
def udtf(
    *,
    name: str | None = ...,
    parameters: Sequence[str] | None = ...,
    returns: str | None = ...,
    nulls: bool | None = ...,
    description: str = ...,
    author: str = ...,
    version: str = ...,
    category: str = ...,
) -> Callable[[F], F]: ...


def udtf(function: Any = None, /, **options: Any) -> Any:
    """A function whose result is a list: a row for each of its values."""
    return _declared("table", function, options)


@overload
def udaf(made: C, /) -> C: ...
@overload
def udaf(
    *,
    name: str | None = ...,
    parameters: Sequence[str] | None = ...,
    returns: str | None = ...,
    state: str | None = ...,
    description: str = ...,
    author: str = ...,
    version: str = ...,
    category: str = ...,
) -> Callable[[C], C]: ...


def udaf(made: Any = None, /, **options: Any) -> Any:
    """A class with `initialize()`, `add(value, state)`, `merge(one, other)`, and if wanted
    `result(state)` and `undo(value, state)`; parameters of `__init__` are a call's constants."""
    if made is None:
        return lambda each: _aggregate(each, options)
    return _aggregate(made, options)


def _declared(kind: Literal["scalar", "table"], function: Any, options: dict[str, Any]) -> Any:
    def declare(each: Any) -> Any:
        parameters, nullable = _parameters(each, options.get("parameters"))
        result = options.get("returns") or _returned(each)
        nulls = options.get("nulls")
        spec = Spec(
            kind=kind,
            parameters=parameters,
            result=result,
            nulls=nullable if nulls is None else nulls,
            **_texts(each, options),
        )
        if kind == "table" and not result.upper().startswith("ARRAY"):
            raise TypeError(
                f"{spec.name}: the result of a table function is an ARRAY, not {result}"
            )
        setattr(each, MARK, spec)
        return each

    return declare if function is None else declare(function)


def _aggregate(made: Any, options: dict[str, Any]) -> Any:
    for method in ("initialize", "add", "merge"):
        if not callable(getattr(made, method, None)):
            raise TypeError(f"{made.__name__} needs a method {method}")
    state = options.get("state") or _returned(made.initialize)
    given = options.get("parameters")
    added, _ = _parameters(made.add, None if given is None else [*given, state], skip=1)
    constants: tuple[tuple[str, str], ...] = ()
    if "__init__" in vars(made):
        constants, _ = _parameters(made.__init__, None, skip=1)
    result = options.get("returns")
    if result is None:
        result = _returned(made.result) if hasattr(made, "result") else state
    spec = Spec(
        kind="aggregate",
        parameters=(*added[:-1], *constants),
        result=result,
        state=state,
        undo=callable(getattr(made, "undo", None)),
        constants=len(constants),
        **_texts(made, options),
    )
    setattr(made, MARK, spec)
    return made


def _texts(made: Any, options: dict[str, Any]) -> dict[str, Any]:
    known = {"name", "parameters", "returns", "nulls", "state"}
    texts = {key: value for key, value in options.items() if key not in known}
    texts.setdefault("description", (inspect.getdoc(made) or "").partition("\n\n")[0])
    return {"name": options.get("name") or made.__name__, **texts}


def _parameters(
    function: Any, given: Sequence[str] | None, *, skip: int = 0
) -> tuple[tuple[tuple[str, str], ...], bool]:
    """Types and names, and whether one of them takes NULL."""
    hints = typing.get_type_hints(function)
    found, nullable = [], False
    names = list(inspect.signature(function).parameters.values())[skip:]
    if given is not None and len(given) != len(names):
        raise TypeError(
            f"{function.__qualname__} has {len(names)} parameters, but {len(given)} types"
        )
    for index, each in enumerate(names):
        if each.kind in (each.KEYWORD_ONLY, each.VAR_KEYWORD):
            raise TypeError(f"{function.__qualname__}: {each.name} cannot be given in SQL")
        dots = "..." if each.kind is each.VAR_POSITIONAL else ""
        if given is not None:
            found.append((given[index] + dots, each.name))
            continue
        if each.name not in hints:
            raise TypeError(f"{function.__qualname__}: {each.name} needs a type")
        hint, optional = _optional(hints[each.name])
        nullable = nullable or optional
        found.append((_sql(hint, function, each.name) + dots, each.name))
    return tuple(found), nullable


def _returned(function: Any) -> str:
    hints = typing.get_type_hints(function)
    if "return" not in hints:
        raise TypeError(f"{function.__qualname__} needs a type for its result")
    return _sql(_optional(hints["return"])[0], function, "the result")


def _optional(hint: Any) -> tuple[Any, bool]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        left = [each for each in typing.get_args(hint) if each is not type(None)]
        if len(left) == 1 and len(typing.get_args(hint)) == 2:
            return left[0], True
    return hint, False


def _sql(hint: Any, function: Any, what: str) -> str:
    if hint in _BASE:
        return _BASE[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is list and len(arguments) == 1:
        return f"ARRAY<{_sql(_optional(arguments[0])[0], function, what)}>"
    if origin is dict and len(arguments) == 2 and arguments[0] is str:
        return f"MAP<STRING, {_sql(_optional(arguments[1])[0], function, what)}>"
    raise TypeError(
        f"{function.__qualname__}: {hint} of {what} has no type in SQL: give the types as texts, "
        "parameters=[...] and returns=..."
    )
