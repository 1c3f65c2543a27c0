"""Durations as Java writes them: PnDTnHnMn.nS."""

from __future__ import annotations

import re

__all__ = ["parse_duration_ms"]

_DURATION = re.compile(
    r"P(?=[0-9T])(?:([0-9]+)D)?"
    r"(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+(?:\.[0-9]+)?)S)?)?"
)


def parse_duration_ms(text: str) -> int | None:
    """Milliseconds, or None for what is no duration."""
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes = (int(part or 0) for part in match.groups()[:3])
    return ((days * 24 + hours) * 60 + minutes) * 60_000 + round(float(match[4] or 0) * 1000)
