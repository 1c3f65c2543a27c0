"""CEL and CEL_FIELD, by cel-python.

`guard ; expression`: where the guard is false, a condition holds and a transform changes nothing.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any, Final

import celpy
import lark
from celpy import celtypes
from celpy.celparser import CELParseError
from celpy.evaluation import CELEvalError, Evaluator
from google.protobuf.message import Message

from moldau.serde.rules.cel_functions import FUNCTIONS
from moldau.serde.rules.cel_messages import (
    MessageMap,
    cel_of_field,
    cel_of_scalar,
    message_of,
    value_message,
)
from moldau.serde.rules.cel_values import cel_of, plain
from moldau.serde.rules.machine.errors import RuleError
from moldau.serde.rules.machine.fields import Field
from moldau.serde.rules.running import RuleContext

__all__ = ["CelExecutor", "CelFieldExecutor", "CelValidator"]

PROGRAMS_MAX: Final = 1000
_PRIMITIVES: Final = frozenset(
    {"INT", "LONG", "FLOAT", "DOUBLE", "BOOLEAN", "NULL", "STRING", "BYTES"}
)


class _Evaluator(Evaluator):
    """Also finds functions of a namespace, and what a message has."""

    def member_dot_arg(self, tree: Any) -> Any:
        namespace = _path(tree.children[0])
        function = None
        if namespace is not None:
            function = FUNCTIONS.get(f"{namespace}.{tree.children[1].value}")
        if function is None:
            return super().member_dot_arg(tree)
        values = list(self.visit(tree.children[2])) if len(tree.children) > 2 else []
        for each in values:
            if isinstance(each, CELEvalError):
                return each
        try:
            return function(*values)
        except TypeError as error:
            raise CELEvalError(f"no such overload: {error}", tree=tree) from None

    def macro_has_eval(self, exprlist: Any) -> Any:
        member = _member(exprlist)
        if member is not None:
            receiver = self.visit(member.children[0])
            if isinstance(receiver, MessageMap):
                return celtypes.BoolType(receiver.has(member.children[1].value))
        return super().macro_has_eval(exprlist)


def _path(tree: Any) -> str | None:
    """`a.b` for a tree of names alone."""
    if not isinstance(tree, lark.Tree):
        return None
    match tree.data:
        case "member_dot":
            before = _path(tree.children[0])
            return None if before is None else f"{before}.{tree.children[1]}"
        case "member" | "primary" if len(tree.children) == 1:
            return _path(tree.children[0])
        case "ident":
            return str(tree.children[0])
    return None


def _member(tree: Any) -> Any:
    """The `e.f` that a tree consists of."""
    while isinstance(tree, lark.Tree):
        if tree.data == "member_dot":
            return tree
        if len(tree.children) != 1:
            return None
        tree = tree.children[0]
    return None


class _Runner(celpy.InterpretedRunner):
    def evaluate(self, context: Any) -> Any:
        return _Evaluator(ast=self.ast, activation=self.new_activation()).evaluate(context)


class _Programs:
    """Expressions are compiled once."""

    def __init__(self) -> None:
        self._environment = celpy.Environment(runner_class=_Runner)
        self._programs: dict[str, Any] = {}

    def evaluate(self, expression: str, arguments: dict[str, Any]) -> Any:
        program = self._programs.get(expression)
        if program is None:
            if len(self._programs) >= PROGRAMS_MAX:
                self._programs.clear()
            try:
                compiled = self._environment.compile(expression)
                program = self._environment.program(compiled, functions=FUNCTIONS)
            except CELParseError as error:
                raise RuleError(f"the CEL expression {expression} is wrong: {error}") from None
            self._programs[expression] = program
        if "now" in expression:
            moment = datetime.datetime.now(tz=datetime.UTC)
            arguments = {**arguments, "now": celtypes.TimestampType(moment)}
        return program.evaluate(arguments)

    def run(self, context: RuleContext, data: Any, arguments: dict[str, Any]) -> Any:
        expression = context.rule.expr
        if expression is None:
            return True if context.rule.is_condition else data
        guard, separator, rest = expression.partition(";")
        if separator:
            if guard.strip() and not self.evaluate(guard, arguments):
                return True if context.rule.is_condition else data
            expression = rest
        return self.evaluate(expression, arguments)


class CelExecutor:
    """`message` is the whole data."""

    def __init__(self) -> None:
        self._programs = _Programs()

    def run(self, context: RuleContext, data: Any) -> Any:
        result = self._programs.run(context, data, {"message": cel_of(data)})
        if context.rule.is_condition or not isinstance(data, Message) or result is data:
            return plain(result)
        return message_of(result, data)


class CelFieldExecutor:
    """`value` is the field's, and `message` what it is in."""

    def __init__(self) -> None:
        self._programs = _Programs()

    def visit(self, context: RuleContext) -> Callable[[Field, frozenset[str], Any], Any]:
        def change(field: Field, tags: frozenset[str], value: Any) -> Any:
            if field.type not in _PRIMITIVES:
                return True if context.rule.is_condition else value
            given = field.descriptor
            arguments = {
                "value": cel_of(value) if given is None else cel_of_scalar(value, given),
                "fullName": celtypes.StringType(field.full_name),
                "name": celtypes.StringType(field.name),
                "typeName": celtypes.StringType(field.type),
                "tags": celtypes.ListType([celtypes.StringType(each) for each in sorted(tags)]),
                "message": cel_of(field.message),
            }
            result = self._programs.run(context, value, arguments)
            if context.rule.is_condition or result is value or not isinstance(value, Message):
                return plain(result)
            return value_message(result, given)

        return change


class CelValidator:
    """Rules within a schema. `this` is the value: a text that is not empty, or false, is wrong."""

    def __init__(self) -> None:
        self._programs = _Programs()

    def check(self, expression: str, value: Any, field: Any = None) -> bool | str:
        """`field` is Protobuf's descriptor. Raises RuleError."""
        this = cel_of(value) if field is None else cel_of_field(value, field)
        try:
            result = self._programs.evaluate(expression, {"this": this})
        except CELEvalError as error:
            raise RuleError(str(error.args[0]) if error.args else str(error)) from None
        match result:
            case bool() | celtypes.BoolType():
                return bool(result)
            case str():
                return str(result)
        raise RuleError(f"the expression makes a {type(result).__name__}, not a bool or string")
