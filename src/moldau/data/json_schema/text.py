"""Reads the texts of schemas, whose length, nesting and numbers are bounded.

What walks a document later may therefore recurse.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from moldau.data.schema_language import SchemaError

TEXT_LENGTH_MAX = 16 * 1024 * 1024
#: Of objects and arrays. A step of a loader takes up to four frames of Python's stack.
DEPTH_MAX = 128
#: Of a number: a larger one would take long to compute with.
DIGITS_MAX = 1000


def read_json(text: str) -> Any:
    """The value, with dicts in the order of the text and Decimals for numbers with a fraction."""
    if len(text) > TEXT_LENGTH_MAX:
        raise SchemaError(
            f"The schema has {len(text)} characters, more than the {TEXT_LENGTH_MAX} allowed"
        )
    try:
        value = json.loads(
            text, parse_float=_read_decimal, parse_int=_read_int, parse_constant=_refuse_constant
        )
    except RecursionError:
        raise SchemaError(f"The schema is nested more than {DEPTH_MAX} levels deep") from None
    except json.JSONDecodeError as error:
        raise SchemaError(
            f"The schema is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None
    _check_depth(value)
    return value


def _read_decimal(text: str) -> Decimal:
    number = Decimal(text)
    if len(text) > DIGITS_MAX or abs(number.adjusted()) > DIGITS_MAX:
        raise SchemaError(f"The number {text[:50]} is too large, too small or too long")
    return number


def _read_int(text: str) -> int:
    if len(text) > DIGITS_MAX:
        raise SchemaError(f"A number has {len(text)} digits, more than {DIGITS_MAX}")
    return int(text)


def _refuse_constant(text: str) -> Any:
    raise SchemaError(f"The schema is not JSON: {text} is no JSON number")


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEPTH_MAX + 1):
        level = [child for each in level for child in _children(each)]
        if not level:
            return
    raise SchemaError(f"The schema is nested more than {DEPTH_MAX} levels deep")


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def with_sorted_keys(value: Any) -> Any:
    """The same value with the keys of every object in Java's order of strings."""
    if isinstance(value, dict):
        return {key: with_sorted_keys(value[key]) for key in sorted(value, key=_utf_16)}
    if isinstance(value, list):
        return [with_sorted_keys(each) for each in value]
    return value


def _utf_16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")
