"""JSON texts as the registry reads and writes them.

Read with numbers as they are written (`0.50` stays `0.50`) and written as Jackson writes them:
compact, keys in their order. Texts and their nesting are bounded, so that whatever walks a document
later may recurse.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any

from moldau.data.schema_language import SchemaError

TEXT_LENGTH_MAX = 16 * 1024 * 1024
#: Of objects and arrays. A step of a loader takes up to four frames of Python's stack.
DEPTH_MAX = 128
#: Of a number's exponent: a larger one would be a huge number once it is computed with.
EXPONENT_MAX = 1000

_LOWER_ESCAPE = re.compile(r"\\\\|\\u00[01][0-9a-f]")


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
    if abs(number.adjusted()) > EXPONENT_MAX:
        raise SchemaError(f"The number {text[:50]} is too large or too small")
    return number


def _read_int(text: str) -> int:
    if len(text) > EXPONENT_MAX:
        raise SchemaError(f"A number has {len(text)} digits, more than {EXPONENT_MAX}")
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


def write_json(value: Any) -> str:
    """Compact JSON, with keys in their order and characters beyond ASCII as they are."""
    parts: list[str] = []
    _write(value, parts)
    return "".join(parts)


def _write(value: Any, parts: list[str]) -> None:
    if isinstance(value, str):
        parts.append(_quoted(value))
    elif isinstance(value, dict):
        separator = "{"
        for key, each in value.items():
            parts.append(separator + _quoted(key) + ":")
            _write(each, parts)
            separator = ","
        parts.append("}" if value else "{}")
    elif isinstance(value, list):
        separator = "["
        for each in value:
            parts.append(separator)
            _write(each, parts)
            separator = ","
        parts.append("]" if value else "[]")
    elif isinstance(value, Decimal):
        parts.append(str(value))
    else:
        parts.append(json.dumps(value))


def _quoted(text: str) -> str:
    quoted = encode_basestring(text)
    if "\\u00" not in quoted:
        return quoted
    # Jackson writes the digits of control characters in capitals.
    return _LOWER_ESCAPE.sub(
        lambda found: found[0] if found[0] == "\\\\" else "\\u" + found[0][2:].upper(), quoted
    )


def with_sorted_keys(value: Any) -> Any:
    """The same value with the keys of every object in Java's order of strings."""
    if isinstance(value, dict):
        return {key: with_sorted_keys(value[key]) for key in sorted(value, key=_utf_16)}
    if isinstance(value, list):
        return [with_sorted_keys(each) for each in value]
    return value


def _utf_16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")
