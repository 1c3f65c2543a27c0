"""How single option values are understood.

Values come from YAML (text, numbers, truth values, lists) or from Spark (text only); both give the
same result. Nothing is guessed: a value that fits no form of its option is an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from moldau.spark.tables.errors import OptionError

Value = str | int | bool | tuple[str, ...]
Parser = Callable[[object], Value]

_BYTE_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)) and str(value):
        return str(value)
    raise OptionError(f"expected text, got {value!r}")


def any_text(value: object) -> str:
    """Text that may be empty, such as a CSV `nullValue`."""
    return "" if value is None or value == "" else text(value)


def flag(value: object) -> bool:
    word = str(value).lower()
    if word in ("true", "false"):
        return word == "true"
    raise OptionError(f"expected true or false, got {value!r}")


def number(value: object) -> int:
    if not isinstance(value, bool):
        try:
            return int(str(value))
        except ValueError:
            pass
    raise OptionError(f"expected a whole number, got {value!r}")


def positive(value: object) -> int:
    parsed = number(value)
    if parsed <= 0:
        raise OptionError(f"expected a number above zero, got {value!r}")
    return parsed


def not_negative(value: object) -> int:
    parsed = number(value)
    if parsed < 0:
        raise OptionError(f"expected zero or more, got {value!r}")
    return parsed


def size(value: object) -> int:
    """Bytes, as `1048576` or `1m`."""
    match = re.fullmatch(r"(\d+)\s*([bkmg]?)b?", str(value).strip().lower())
    if match is None or isinstance(value, bool) or int(match[1]) == 0:
        raise OptionError(f"expected a size such as 64m, got {value!r}")
    return int(match[1]) * _BYTE_UNITS[match[2]]


def names(value: object) -> tuple[str, ...]:
    """Column names: a list, one name, or several with commas between them."""
    if isinstance(value, str):
        stripped = value.strip()
        if stripped.startswith("["):
            try:
                value = json.loads(stripped)
            except ValueError:
                raise OptionError(f"expected a list of column names, got {value!r}") from None
        else:
            value = stripped.split(",")
    if isinstance(value, (list, tuple)) and value and all(isinstance(n, str) for n in value):
        found = tuple(name.strip() for name in value)
        if all(found) and len(set(found)) == len(found):
            return found
    raise OptionError(f"expected column names, each once, got {value!r}")


def one_of(*allowed: str) -> Parser:
    def parse(value: object) -> str:
        word = str(value).lower()
        if word not in allowed:
            raise OptionError(f"expected {' or '.join(allowed)}, got {value!r}")
        return word

    return parse
