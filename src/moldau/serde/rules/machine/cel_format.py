"""`format` of CEL's strings: %s, %d, %f, %e, %x, %X, %o, %b and %%."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

__all__ = ["formatted"]

_CLAUSE: Final = re.compile(r"%(?:\.(\d{1,3}))?(.)?", re.DOTALL)
_PRECISION: Final = 6
_END: Final = object()


def formatted(text: str, values: Sequence[Any]) -> str:
    """Raises ValueError."""
    left = iter(values)

    def clause(match: re.Match[str]) -> str:
        kind = match[2]
        if kind == "%" and match[1] is None:
            return "%"
        make = _KINDS.get(kind or "")
        if make is None:
            raise ValueError(f"{match[0]} is not known")
        if match[1] is not None and kind not in ("f", "e"):
            raise ValueError(f"{match[0]}: only %f and %e have a precision")
        for value in left:
            return make(value, _PRECISION if match[1] is None else int(match[1]))
        raise ValueError("there are not enough values")

    made = _CLAUSE.sub(clause, text)
    if next(left, _END) is not _END:
        raise ValueError("there are too many values")
    return made


def _text(value: Any, _: int = 0) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return value
        case bytes():
            return value.hex()
        case datetime.datetime():
            return value.isoformat().replace("+00:00", "Z")
        case list():
            return f"[{', '.join(map(_item, value))}]"
        case dict():
            pairs = sorted((_text(key), _text(each)) for key, each in value.items())
            return f"{{{', '.join(f'{key}: {each}' for key, each in pairs)}}}"
    return str(value)


def _item(value: Any) -> str:
    """In a list: texts have quotes."""
    return f'"{value.translate(_QUOTED)}"' if isinstance(value, str) else _text(value)


_QUOTED: Final = str.maketrans(
    {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}
    | {"\\": r"\\", '"': r"\""}
)


def _whole(value: Any, _: int = 0) -> str:
    return str(_int(value, "%d"))


def _int(value: Any, kind: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{kind} takes a whole number, not {_text(value)}")
    return value


def _fraction(value: Any, precision: int, kind: str) -> str:
    """A whole number stays one, as in Confluent's clients."""
    if isinstance(value, float):
        return format(value, f".{precision}{kind}")
    return str(_int(value, f"%{kind}"))


def _hex(value: Any) -> str:
    match value:
        case str():
            return value.encode().hex()
        case bytes():
            return value.hex()
    return format(_int(value, "%x"), "x")


def _bits(value: Any, _: int = 0) -> str:
    return format(int(value) if isinstance(value, bool) else _int(value, "%b"), "b")


_KINDS: Final[Mapping[str, Callable[[Any, int], str]]] = {
    "s": _text,
    "d": _whole,
    "f": lambda value, precision: _fraction(value, precision, "f"),
    "e": lambda value, precision: _fraction(value, precision, "e"),
    "x": lambda value, _: _hex(value),
    "X": lambda value, _: _hex(value).upper(),
    "o": lambda value, _: format(_int(value, "%o"), "o"),
    "b": _bits,
}
