"""Times in JSON: ISO 8601 as Java's Instant prints it, and milliseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

__all__ = ["format_instant", "parse_instant"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: Years 1 to 9999: what both ISO texts and records can hold.
_MS_MAX: Final = 253_402_300_799_999


def format_instant(ms: int) -> str | None:
    """None for a record without a timestamp."""
    if not 0 <= ms <= _MS_MAX:
        return None
    text, rest = _second(ms // 1000), ms % 1000
    return f"{text}.{rest:03}Z" if rest else f"{text}Z"


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")


def parse_instant(text: str) -> int | None:
    """Milliseconds since 1970 of an ISO 8601 time or of a number; None for another text."""
    if text.isdecimal() and text.isascii() and len(text) <= 15:
        return int(text) if int(text) <= _MS_MAX else None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    try:
        return (moment - _EPOCH) // timedelta(milliseconds=1)
    except OverflowError:
        return None
