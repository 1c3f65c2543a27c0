"""Parameters as SQL literals, and where in a statement they go."""

from __future__ import annotations

import base64
import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Final

from moldau.sql.client.errors import DataError, InterfaceError

__all__ = ["bind", "literal"]

_LONG_MAX: Final = 2**63 - 1
#: Texts, names and comments are passed over: a mark in them is not a placeholder.
_PIECE = re.compile(
    r"""'(?:[^']|'')*' | `(?:[^`]|``)*` | "(?:[^"]|"")*" | --[^\r\n]* | /\*.*?\*/
    | (?P<mark>\?) | (?<![\w:]):(?P<name>[A-Za-z_]\w*)""",
    re.VERBOSE | re.DOTALL,
)


def bind(sql: str, parameters: Sequence[Any] | Mapping[str, Any] | None) -> str:
    """The statement with its placeholders, `?` or `:name`, replaced by literals."""
    if parameters is None:
        return sql
    if isinstance(parameters, str | bytes):
        raise InterfaceError("The parameters must be a sequence or a mapping, not a text")
    named = parameters if isinstance(parameters, Mapping) else None
    values = list(parameters) if named is None else []
    used = 0

    def replaced(found: re.Match[str]) -> str:
        nonlocal used
        if found["mark"] is not None and named is None:
            if used >= len(values):
                raise InterfaceError(
                    f"The statement has more placeholders than the {len(values)} parameters"
                )
            used += 1
            return literal(values[used - 1])
        if found["name"] is not None and named is not None:
            if found["name"] not in named:
                raise InterfaceError(f"There is no parameter :{found['name']}")
            return literal(named[found["name"]])
        return found.group()

    bound = _PIECE.sub(replaced, sql)
    if named is None and used < len(values):
        raise InterfaceError(
            f"The statement has {used} placeholders, but {len(values)} parameters were given"
        )
    return bound


def literal(value: Any) -> str:
    """A value as an expression of SQL."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return _integer(value)
        case float():
            return _double(value)
        case Decimal():
            return _decimal(value)
        case str():
            return _text(value)
        case bytes() | bytearray() | memoryview():
            return f"TO_BYTES('{base64.b64encode(value).decode()}', 'base64')"
        case datetime():
            moment = value if value.tzinfo is None else value.astimezone(UTC)
            shown = moment.replace(tzinfo=None).isoformat(timespec="milliseconds")
            return f"CAST('{shown}' AS TIMESTAMP)"
        case date():
            return f"CAST('{value.isoformat()}' AS DATE)"
        case time():
            return f"CAST('{value.isoformat(timespec='milliseconds')}' AS TIME)"
    return _composite(value)


def _composite(value: Any) -> str:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        return _struct(fields)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _struct(dict(zip(value._fields, value, strict=True)))
    if isinstance(value, Mapping):
        if not value:
            raise DataError("An empty mapping has no type in SQL: use None")
        entries = (f"{literal(key)} := {literal(each)}" for key, each in value.items())
        return f"MAP({', '.join(entries)})"
    if isinstance(value, list | tuple):
        if not value:
            raise DataError("An empty list has no type in SQL: use None")
        return f"ARRAY[{', '.join(map(literal, value))}]"
    raise DataError(f"A {type(value).__name__} cannot be written as SQL: {value!r}")


def _struct(fields: Mapping[str, Any]) -> str:
    entries = (f"{name} := {literal(each)}" for name, each in fields.items())
    return f"STRUCT({', '.join(entries)})"


def _integer(value: int) -> str:
    if not -_LONG_MAX - 1 <= value <= _LONG_MAX:
        raise DataError(f"{value} does not fit BIGINT: use a Decimal")
    # Without brackets, two signs in a row would start a comment.
    return str(int(value)) if value >= 0 else f"({int(value)})"


def _double(value: float) -> str:
    if math.isnan(value):
        return "CAST('NaN' AS DOUBLE)"
    if math.isinf(value):
        return f"CAST('{'-' if value < 0 else ''}Infinity' AS DOUBLE)"
    shown = repr(float(value))
    # With an exponent it is a DOUBLE; without one it would be a DECIMAL.
    shown = shown if "e" in shown else f"{shown}E0"
    return shown if shown[0] != "-" else f"({shown})"


def _decimal(value: Decimal) -> str:
    if not value.is_finite():
        raise DataError(f"{value} cannot be a DECIMAL")
    shown = f"{value:f}"
    if "." not in shown:
        # A number without a point would be an INTEGER.
        digits = max(1, len(shown.lstrip("-")))
        return f"CAST('{shown}' AS DECIMAL({digits}, 0))"
    return shown if shown[0] != "-" else f"({shown})"


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"The text cannot be sent as UTF-8: {error}") from None
    doubled = value.replace("'", "''")
    return f"'{doubled}'"
