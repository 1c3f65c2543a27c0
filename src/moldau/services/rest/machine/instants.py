"""Times in JSON: ISO 8601 as Java's Instant prints it, and milliseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

__all__ = ["format_instant", "parse_instant"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: Years 1 to 9999: what both ISO texts and records can hold.
_MS_MAX: Final = 253_402_300_799_999


def format_instant(ms: int) -> str | None:
    """None for a record without a timestamp."""
    if not 0 <= ms <= _MS_MAX:
        return None
    moment = _EPOCH + timedelta(milliseconds=ms)
    text = moment.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    return f"{text}.{ms % 1000:03}Z" if ms % 1000 else f"{text}Z"


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
