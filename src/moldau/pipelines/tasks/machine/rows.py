"""JSON values as rows and back, with Spark's results.

Reading is certain for objects as RFC 8259 has them whose fields are of the schema's types; whatever
else Spark may make of a value (quotes of another kind, numbers as text, a second value behind the
first) raises `Uncertain`. Writing is that of Spark's `to_json`: no nulls, Java's numbers.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from moldau.pipelines.tasks.machine.expressions import (
    BOOLEAN,
    DOUBLE,
    RANGES,
    STRING,
    Uncertain,
)

__all__ = ["Field", "reader", "writer", "written"]

#: A column's name, its type, and whether it may be null.
Field = tuple[str, str, bool]

_SIZE_MAX: Final = 1 << 20
_NAME_LENGTH_MAX: Final = 1_000
_INT_DIGITS_MAX: Final = 19
_FLOAT_LENGTH_MAX: Final = 40
_DEPTH_HINT: Final = b"[[[[[[[[[["
_SPECIAL: Final = re.compile(r'["\\\x00-\x1f]')
_NAMED: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}
# Java's way of writing a double is certain here for few digits in the range without an exponent.
_DIGITS_MAX: Final = 15
_PLAIN_MIN, _PLAIN_MAX = 1e-3, 1e7


def _int(text: str) -> int:
    if text == "-0" or len(text) > _INT_DIGITS_MAX:
        raise Uncertain("a number")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if len(text) > _FLOAT_LENGTH_MAX or not math.isfinite(value):
        raise Uncertain("a number")
    return value


def _constant(text: str) -> Any:
    raise Uncertain(text)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs) or any(len(name) > _NAME_LENGTH_MAX for name in found):
        raise Uncertain("names of fields")
    return found


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_int=_int, parse_float=_float, parse_constant=_constant
)


def reader(fields: Sequence[Field]) -> Callable[[bytes | None], list[Any]]:
    """A function that makes a row of a record's value; nulls only of a record without one."""
    checks = [(name, _CHECKS[kind], nullable) for name, kind, nullable in fields]
    empty = [None] * len(fields)

    def read(value: bytes | None) -> list[Any]:
        if value is None:
            return list(empty)
        if len(value) > _SIZE_MAX or _DEPTH_HINT in value:
            raise Uncertain("a large or deep value")
        try:
            found = _DECODER.decode(value.decode())
        except (ValueError, RecursionError):
            raise Uncertain("not a plain JSON value") from None
        if type(found) is not dict:
            raise Uncertain("not a JSON object")
        row: list[Any] = []
        for name, check, nullable in checks:
            field = found.get(name)
            if field is None:
                if not nullable:
                    raise Uncertain(f"{name} is null")
                row.append(None)
            else:
                row.append(check(field))
        return row

    return read


def _text(value: Any) -> str:
    if type(value) is not str:
        raise Uncertain("another value than text")
    if not value.isascii() and any("\ud800" <= each <= "\udfff" for each in value):
        raise Uncertain("half of a character")
    return value


def _truth(value: Any) -> bool:
    if type(value) is not bool:
        raise Uncertain("another value than true or false")
    return value


def _double(value: Any) -> float:
    if type(value) not in (int, float):
        raise Uncertain("another value than a number")
    return float(value)


def _whole(kind: str) -> Callable[[Any], int]:
    low, high = RANGES[kind]

    def whole(value: Any) -> int:
        if type(value) is not int or not low <= value <= high:
            raise Uncertain(f"another value than {kind}")
        return value

    return whole


_CHECKS: Final[dict[str, Callable[[Any], Any]]] = {
    STRING: _text,
    BOOLEAN: _truth,
    DOUBLE: _double,
    **{kind: _whole(kind) for kind in RANGES},
}


def _quoted(text: str) -> str:
    return f'"{_SPECIAL.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    return _NAMED.get(match[0]) or f"\\u{ord(match[0]):04X}"


def written(value: Any, kind: str) -> str:
    """A value as Spark's `to_json` writes it."""
    if kind == STRING:
        return _quoted(value)
    if kind == BOOLEAN:
        return "true" if value else "false"
    if kind == DOUBLE:
        return _java_double(value)
    return str(value)


def _java_double(value: float) -> str:
    text = repr(value)
    size = abs(value)
    if value == 0.0:
        return text
    if not _PLAIN_MIN <= size < _PLAIN_MAX or len(text.lstrip("-")) > _DIGITS_MAX:
        raise Uncertain("a double with an exponent or many digits")
    return text


def writer(fields: Sequence[tuple[str, str]]) -> Callable[[Sequence[Any]], bytes]:
    """A function that makes a record's value of a row."""
    heads = [(f"{_quoted(name)}:", kind) for name, kind in fields]

    def write(row: Sequence[Any]) -> bytes:
        parts = [
            head + written(value, kind)
            for (head, kind), value in zip(heads, row, strict=True)
            if value is not None
        ]
        return f"{{{','.join(parts)}}}".encode()

    return write
