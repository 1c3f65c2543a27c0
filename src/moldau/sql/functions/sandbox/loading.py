"""Functions of users as functions of the registry, from files and modules."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Final

from moldau.sql.errors import KsqlException
from moldau.sql.functions.declarations import (
    AggregateFunction,
    AggregateOverload,
    Aggregation,
    ArgumentTypes,
    Declaration,
    Evaluate,
    Function,
    Overload,
    ScalarFunction,
    Settings,
    TableFunction,
)
from moldau.sql.functions.decorators import Spec
from moldau.sql.functions.parameter_types import Signature, signature
from moldau.sql.functions.registry import FunctionRegistry
from moldau.sql.functions.sandbox.process import CallFailed, Limits, Sandbox
from moldau.sql.functions.sandbox.values import from_engine, to_engine
from moldau.sql.types import SqlType
from moldau.sql.types import parse as parse_type

__all__ = ["EXTENSION_DIR", "MODULES", "add_extensions", "load"]

logger = logging.getLogger(__name__)
processing_log = logging.getLogger("moldau.sql.processing")

EXTENSION_DIR: Final = "ksql.extension.dir"
MODULES: Final = "ksql.functions.python.modules"
TIMEOUT: Final = "ksql.functions.python.timeout.ms"
MEMORY: Final = "ksql.functions.python.memory.max.bytes"
_WIDENED_MAX: Final = 4
_DECIMAL = re.compile(r"DECIMAL\s*\([^)]*\)", re.IGNORECASE)


def add_extensions(functions: FunctionRegistry, settings: Mapping[str, Any]) -> FunctionRegistry:
    """Add what the settings name; a file that cannot be loaded is logged, and no more."""
    limits = Limits(
        int(settings.get(TIMEOUT) or Limits().timeout_ms),
        int(settings.get(MEMORY) or Limits().memory_max),
    )
    for where in _places(settings):
        try:
            for each in load(where, limits):
                functions.add(each)
        except KsqlException as error:
            logger.error("No functions of %s: %s", where, error)
    return functions


def _places(settings: Mapping[str, Any]) -> list[str]:
    found = [each.strip() for each in str(settings.get(MODULES) or "").split(",") if each.strip()]
    folder = settings.get(EXTENSION_DIR)
    if folder and Path(folder).is_dir():
        found += [str(each.resolve()) for each in sorted(Path(folder).glob("*.py"))]
    return found


def load(where: str, limits: Limits | None = None) -> list[Function]:
    """The functions of a file or a module. It is loaded in a process of its own, and only there."""
    limits = limits or Limits()
    sandbox = Sandbox(where, limits)
    try:
        sandbox.start()
    finally:
        sandbox.close()
    scalars: dict[str, tuple[Declaration, list[Overload]]] = {}
    tables: dict[str, tuple[Declaration, list[Overload]]] = {}
    aggregates: dict[str, tuple[Declaration, list[AggregateOverload]]] = {}
    for index, fields in enumerate(sandbox.declared):
        spec = Spec(**{**fields, "parameters": tuple(map(tuple, fields["parameters"]))})
        made = _Made(where, limits, index, spec)
        declared = made.declaration
        if spec.kind == "aggregate":
            aggregates.setdefault(spec.name.upper(), (declared, []))[1].extend(made.aggregates())
        else:
            into = scalars if spec.kind == "scalar" else tables
            into.setdefault(spec.name.upper(), (declared, []))[1].append(made.overload())
    return [
        *(ScalarFunction(one, tuple(many)) for one, many in scalars.values()),
        *(TableFunction(one, tuple(many)) for one, many in tables.values()),
        *(AggregateFunction(one, tuple(each)) for one, each in aggregates.values()),
    ]


class _Made:
    """A function of a file. Each use in a query has a process of its own: none disturbs another."""

    def __init__(self, where: str, limits: Limits, index: int, spec: Spec) -> None:
        self._where = where
        self._limits = limits
        self._index = index
        self._spec = spec
        try:
            self._result = parse_type(spec.result)
            self._signature = self._signature_of([kind for kind, _ in spec.parameters])
            self._state = parse_type(spec.state) if spec.state else self._result
        except ValueError as error:
            raise KsqlException(f"{spec.name}: {error}") from None

    def _signature_of(self, kinds: Sequence[str]) -> Signature:
        names = [name for _, name in self._spec.parameters]
        shown = ", ".join(f"{kind} {name}" for kind, name in zip(kinds, names, strict=True))
        text = f"({shown}) -> {self._result}".replace("`", "")
        return signature(_DECIMAL.sub("DECIMAL", text))

    @property
    def declaration(self) -> Declaration:
        spec = self._spec
        path = self._where if os.sep in self._where else f"module {self._where}"
        return Declaration(
            spec.name, spec.category, spec.description, "", author=spec.author, path=path
        )

    def _call(
        self,
        sandbox: Sandbox,
        method: str,
        types: Sequence[SqlType],
        result: SqlType,
        constants: Sequence[Any] = (),
    ) -> Callable[..., Any]:
        writes, read = [from_engine(each) for each in types], to_engine(result)
        shown = [str(each) for each in (*types, result)]
        index, given = self._index, list(constants)

        def call(*arguments: Any) -> Any:
            sent = [write(each) for write, each in zip(writes, arguments, strict=True)]
            found = sandbox.call(index, shown, method, given, sent)
            try:
                return read(found)
            except (TypeError, ValueError, ArithmeticError) as error:
                raise CallFailed(f"The result does not fit {result}: {error}") from None

        return call

    def overload(self) -> Overload:
        def bind(arguments: ArgumentTypes, result: SqlType) -> Evaluate:
            # A bare NULL has no type, and any will do.
            types = [self._result if each is None else each for each in arguments]
            sandbox = Sandbox(self._where, self._limits)
            return self._call(sandbox, "", types, self._result)

        return Overload(
            self._signature, bind, self._spec.nulls, lambda arguments: self._result,
            self._spec.description,
        )  # fmt: skip

    def aggregates(self) -> list[AggregateOverload]:
        """One for BIGINT and one for INT: the arguments of aggregates are never cast."""
        kinds = [kind for kind, _ in self._spec.parameters]
        if kinds.count("BIGINT") > _WIDENED_MAX:
            return [self._aggregate(self._signature)]
        choices = [("BIGINT", "INT") if kind == "BIGINT" else (kind,) for kind in kinds]
        return [self._aggregate(self._signature_of(each)) for each in product(*choices)]

    def _aggregate(self, declared: Signature) -> AggregateOverload:
        spec, state = self._spec, self._state

        def bind(types: Sequence[SqlType], init: Sequence[Any], settings: Settings) -> Aggregation:
            sandbox = Sandbox(self._where, self._limits)
            count = len(types) - spec.constants
            value_types = types[:count]
            constants = [
                from_engine(kind)(each) for kind, each in zip(types[count:], init, strict=True)
            ]

            def method(name: str, arguments: Sequence[SqlType], result: SqlType) -> Any:
                return self._call(sandbox, name, arguments, result, constants)

            added = [*value_types, state]
            has_result = bool(spec.state) and spec.result != spec.state
            return Aggregation(
                self._result,
                state,
                initialize=method("initialize", [], state),
                add=_kept(method("add", added, state), count),
                merge=method("merge", [state, state], state),
                map_result=method("result", [state], self._result)
                if has_result
                else lambda aggregate: aggregate,
                undo=_kept(method("undo", added, state), count) if spec.undo else None,
            )

        return AggregateOverload(declared, bind, spec.constants, spec.description)


def _kept(call: Callable[..., Any], count: int) -> Callable[[Any, Any], Any]:
    """An aggregate stays as it was where the function raises."""

    def changed(value: Any, aggregate: Any) -> Any:
        values = (value,) if count == 1 else tuple(value)
        try:
            return call(*values, aggregate)
        except CallFailed as error:
            processing_log.warning("Aggregate function: %s", error)
            return aggregate

    return changed
