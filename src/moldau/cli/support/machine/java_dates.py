"""Times in a format of Java's SimpleDateFormat, in the local time zone."""

from __future__ import annotations

from moldau.data.java_time.simple import SimpleFormat
from moldau.data.java_time.zones import SYSTEM_ZONE

__all__ = ["DateFormat"]


class DateFormat:
    """Raises ValueError for a pattern with an unknown letter."""

    def __init__(self, pattern: str) -> None:
        try:
            self._format = SimpleFormat(pattern, SYSTEM_ZONE)
        except ValueError as error:
            raise ValueError(f"{error} in the date format '{pattern}'") from None

    def format(self, timestamp_ms: int) -> str:
        return self._format.format(timestamp_ms)
