"""Wakeup: one alarm for the machine's next deadline."""

from __future__ import annotations

from collections.abc import Callable

from moldau.clock import Alarm, Clock
from moldau.times import ElapsedMs


class Wakeup:
    def __init__(self, clock: Clock, callback: Callable[[], None]) -> None:
        self._clock = clock
        self._callback = callback
        self._alarm: Alarm | None = None
        self._deadline_ms: ElapsedMs | None = None

    def set(self, deadline_ms: ElapsedMs | None) -> None:
        """Call back at `deadline_ms` instead of at the deadline before; never if it is None."""
        if deadline_ms == self._deadline_ms and (self._alarm is not None or deadline_ms is None):
            return
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self._deadline_ms = deadline_ms
        if deadline_ms is not None:
            delay_ms = max(0, deadline_ms - self._clock.elapsed_ms())
            self._alarm = self._clock.call_later(delay_ms, self._on_alarm)

    def _on_alarm(self) -> None:
        self._alarm = None
        self._callback()
