"""CEL and CEL_FIELD, by cel-python.

`guard ; expression`: where the guard is false, a condition holds and a transform changes nothing.
"""

from __future__ import annotations

import datetime
import ipaddress
import uuid
from collections.abc import Callable, Mapping
from email.utils import parseaddr
from typing import Any, Final
from urllib.parse import urlparse

import celpy
from celpy import celtypes
from celpy.celparser import CELParseError
from celpy.evaluation import CELEvalError

from moldau.serde.rules.machine.cel_format import formatted
from moldau.serde.rules.machine.errors import RuleError
from moldau.serde.rules.machine.fields import Field
from moldau.serde.rules.running import RuleContext

__all__ = ["CelExecutor", "CelFieldExecutor"]

PROGRAMS_MAX: Final = 1000
_EPOCH_DAY: Final = datetime.date(1970, 1, 1).toordinal()
_PRIMITIVES: Final = frozenset(
    {"INT", "LONG", "FLOAT", "DOUBLE", "BOOLEAN", "NULL", "STRING", "BYTES"}
)


class _Programs:
    """Expressions are compiled once."""

    def __init__(self) -> None:
        self._environment = celpy.Environment()
        self._programs: dict[str, Any] = {}

    def evaluate(self, expression: str, arguments: dict[str, Any]) -> Any:
        program = self._programs.get(expression)
        if program is None:
            if len(self._programs) >= PROGRAMS_MAX:
                self._programs.clear()
            try:
                compiled = self._environment.compile(expression)
                program = self._environment.program(compiled, functions=_FUNCTIONS)
            except CELParseError as error:
                raise RuleError(f"the CEL expression {expression} is wrong: {error}") from None
            self._programs[expression] = program
        if "now" in expression:
            moment = datetime.datetime.now(tz=datetime.UTC)
            arguments = {**arguments, "now": celtypes.TimestampType(moment)}
        return _plain(program.evaluate(arguments))

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
        result = self._programs.run(context, data, {"message": _cel(data)})
        if context.rule.is_condition or not hasattr(data, "DESCRIPTOR") or result is data:
            return result
        return _message(result, data)


class CelFieldExecutor:
    """`value` is the field's, and `message` what it is in."""

    def __init__(self) -> None:
        self._programs = _Programs()

    def visit(self, context: RuleContext) -> Callable[[Field, frozenset[str], Any], Any]:
        def change(field: Field, tags: frozenset[str], value: Any) -> Any:
            if field.type not in _PRIMITIVES:
                return True if context.rule.is_condition else value
            arguments = {
                "value": _cel(value),
                "fullName": celtypes.StringType(field.full_name),
                "name": celtypes.StringType(field.name),
                "typeName": celtypes.StringType(field.type),
                "tags": celtypes.ListType([celtypes.StringType(each) for each in sorted(tags)]),
                "message": _cel(field.message),
            }
            return self._programs.run(context, value, arguments)

        return change


def _cel(value: Any) -> Any:
    match value:
        case None:
            return None
        case bool():
            return celtypes.BoolType(value)
        case int():
            return celtypes.IntType(value)
        case float():
            return celtypes.DoubleType(value)
        case str():
            return celtypes.StringType(value)
        case bytes():
            return celtypes.BytesType(value)
        case dict():
            return celtypes.MapType(
                {celtypes.StringType(key): _cel(each) for key, each in value.items()}
            )
        case list():
            return celtypes.ListType([_cel(each) for each in value])
        case tuple():
            # A value of a union with the name of its branch.
            return _cel(value[1])
        case datetime.datetime():
            return celtypes.TimestampType(value)
        case datetime.timedelta():
            return celtypes.DurationType(value)
        case datetime.date():
            return celtypes.IntType(value.toordinal() - _EPOCH_DAY)
        case uuid.UUID():
            return celtypes.StringType(str(value))
        case _ if hasattr(value, "DESCRIPTOR"):
            return celtypes.MapType(
                {
                    celtypes.StringType(field.name): _cel_field(value, field)
                    for field in value.DESCRIPTOR.fields
                }
            )
        case _:
            return value


def _cel_field(message: Any, field: Any) -> Any:
    value = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return _cel({str(key): each for key, each in value.items()})
    if field.message_type is not None and field.has_presence and not message.HasField(field.name):
        return None
    if not hasattr(value, "DESCRIPTOR") and not isinstance(value, str | bytes | int | float):
        return _cel(list(value))
    return _cel(value)


def _plain(value: Any) -> Any:
    """Without cel-python's types, which are subclasses with other habits."""
    match value:
        case celtypes.BoolType():
            return bool(value)
        case celtypes.IntType() | celtypes.UintType():
            return int(value)
        case celtypes.DoubleType():
            return float(value)
        case celtypes.StringType():
            return str(value)
        case celtypes.BytesType():
            return bytes(value)
        case celtypes.MapType():
            return {str(key): _plain(each) for key, each in value.items()}
        case celtypes.ListType():
            return [_plain(each) for each in value]
        case celtypes.TimestampType():
            return datetime.datetime.fromisoformat(value.isoformat())
        case _:
            return value


def _message(result: Any, data: Any) -> Any:
    """A map in place of a Protobuf message."""
    from google.protobuf import json_format

    if not isinstance(result, Mapping):
        raise RuleError(f"the expression makes a {type(result).__name__} of a message")
    try:
        return json_format.ParseDict(result, type(data)())
    except json_format.ParseError as error:
        raise RuleError(f"the expression does not make a message: {error}") from None


# The functions that Confluent's clients add.


def _formatted(text: Any, values: Any) -> str:
    """`'%s has %d'.format([name, count])`, as CEL's extension of strings has it."""
    if not isinstance(text, celtypes.StringType) or not isinstance(values, celtypes.ListType):
        raise CELEvalError("format takes a list of values")
    try:
        return formatted(str(text), [_plain(each) for each in values])
    except ValueError as error:
        raise CELEvalError(f"format: {error}") from None


def _text_check(check: Callable[[str], bool]) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        if not isinstance(value, celtypes.StringType):
            raise CELEvalError("invalid argument, expected string")
        return celtypes.BoolType(check(str(value)))

    return run


def _is_hostname(text: str) -> bool:
    name = text.removesuffix(".")
    parts = name.split(".")
    if not name or len(text) > 253 or parts[-1].isdigit():
        return False
    return all(
        0 < len(part) <= 63
        and part.isascii()
        and part.replace("-", "").isalnum()
        and not (part.startswith("-") or part.endswith("-"))
        for part in parts
    )


def _is_email(text: str) -> bool:
    local, at, host = text.rpartition("@")
    return (
        parseaddr(text)[1] == text
        and len(text) <= 254
        and bool(at)
        and "@" not in local
        and 0 < len(local) <= 64
        and _is_hostname(host)
    )


def _address_check(version: int) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        if not isinstance(value, celtypes.StringType | celtypes.BytesType):
            raise CELEvalError("invalid argument, expected string or bytes")
        plain = bytes(value) if isinstance(value, celtypes.BytesType) else str(value)
        try:
            return celtypes.BoolType(ipaddress.ip_address(plain).version == version)
        except ValueError:
            return celtypes.BoolType(False)

    return run


def _is_uri(text: str) -> bool:
    found = urlparse(text)
    return bool(found.scheme and found.netloc and found.path)


def _is_uri_reference(text: str) -> bool:
    found = urlparse(text)
    return not (not (found.scheme and found.path) and found.fragment)


def _is_uuid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


_FUNCTIONS: Final[dict[str, Any]] = {
    "format": lambda text, values: celtypes.StringType(_formatted(text, values)),
    "isEmail": _text_check(_is_email),
    "isHostname": _text_check(_is_hostname),
    "isIpv4": _address_check(4),
    "isIpv6": _address_check(6),
    "isUri": _text_check(_is_uri),
    "isUriRef": _text_check(_is_uri_reference),
    "isUuid": _text_check(_is_uuid),
}
