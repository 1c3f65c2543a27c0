"""Heartbeats: now and then a record that says how far the log was read, so that offsets go on even
if no captured table changes."""

from __future__ import annotations

from typing import Final

from moldau.data import builders

KEY_SCHEMA: Final = builders.struct(
    {"serverName": builders.STRING}, name="io.debezium.connector.common.ServerNameKey", version=1
)
VALUE_SCHEMA: Final = builders.struct(
    {"ts_ms": builders.INT64}, name="io.debezium.connector.common.Heartbeat", version=1
)


class Heartbeats:
    """An interval of 0 means none."""

    def __init__(self, interval_ms: int, now_s: float) -> None:
        self._interval_s = interval_ms / 1000
        self._last_s = now_s

    def is_due(self, now_s: float) -> bool:
        """At most once an interval."""
        if not self._interval_s or now_s - self._last_s < self._interval_s:
            return False
        self._last_s = now_s
        return True
