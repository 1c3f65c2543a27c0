"""The values of options, from their texts: each raises ValueError saying what is expected.

Pure.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "boolean",
    "duration_ms",
    "natural",
    "no_match",
    "nonempty",
    "positive",
    "timestamp",
]


def boolean(text: str) -> bool:
    match text.lower():
        case "true":
            return True
        case "false":
            return False
    raise ValueError("true or false")


def _whole(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise ValueError("must be a whole number") from None
    if number >= 2**63:
        raise ValueError("is too large")
    return number


def positive(text: str) -> int:
    number = _whole(text)
    if number <= 0:
        raise ValueError("must be positive")
    return number


def natural(text: str) -> int:
    number = _whole(text)
    if number < 0:
        raise ValueError("must not be negative")
    return number


def timestamp(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise ValueError(
            f"Expected a single long value, milliseconds since 1970, got {text}"
        ) from None
    if not 0 <= number < 2**63:
        raise ValueError("milliseconds since 1970, not negative")
    return number


def no_match(text: str) -> bool:
    match text.lower():
        case "error":
            return False
        case "latest":
            return True
    raise ValueError("error or latest")


def nonempty(text: str) -> str:
    if not text:
        raise ValueError("must not be empty")
    return text


_UNITS_MS: Final = {
    "us": 0.001,
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}


def duration_ms(text: str) -> int:
    """As Spark writes times: 500ms, 30s, 15m, 2h; a number alone is in ms."""
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
    unit = text[len(digits) :].strip().lower() or "ms"
    if not digits.isdigit() or unit not in _UNITS_MS:
        raise ValueError("a time such as 500ms, 30s, 15m or 2h")
    return int(int(digits) * _UNITS_MS[unit])
