"""Time zones by name, from the system's files."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from zoneinfo import ZoneInfo

from moldau.connect.api import ConfigError


def offset_ms_of(name: str) -> Callable[[int], int]:
    """How far a time zone is from UTC at a time in ms."""
    try:
        zone = ZoneInfo(name or "UTC")
    except (KeyError, ValueError, OSError):
        raise ConfigError.invalid("timezone", name, "must be the name of a time zone") from None

    def offset_ms(moment_ms: int) -> int:
        offset = datetime.datetime.fromtimestamp(moment_ms / 1000, zone).utcoffset()
        return 0 if offset is None else offset // datetime.timedelta(milliseconds=1)

    return offset_ms
