"""Averages and maxima over a window, as the newer half of Kafka's metrics has them."""

from __future__ import annotations

from collections import deque
from typing import Final

__all__ = ["Recent"]

#: Kafka's default: two samples of 30 seconds.
WINDOW_SECONDS: Final = 60.0
#: More than so many values in a window are represented by the newest.
VALUES_MAX: Final = 1_000


class Recent:
    """The values of the last minute; times are passed in."""

    __slots__ = ("_values", "total")

    def __init__(self) -> None:
        self._values: deque[tuple[float, float]] = deque(maxlen=VALUES_MAX)
        #: How many there were since the start.
        self.total = 0

    def add(self, value: float, now_s: float) -> None:
        self.total += 1
        self._values.append((now_s, value))

    def _current(self, now_s: float) -> list[float]:
        values = self._values
        while values and values[0][0] < now_s - WINDOW_SECONDS:
            values.popleft()
        return [value for _, value in values]

    def average(self, now_s: float) -> float:
        """0 without values: a number that is not one breaks readers."""
        values = self._current(now_s)
        return sum(values) / len(values) if values else 0.0

    def maximum(self, now_s: float) -> float:
        return max(self._current(now_s), default=0.0)

    def rate(self, now_s: float) -> float:
        """Values per second of the window."""
        values = self._current(now_s)
        # A full deque covers less than the window.
        span_s = now_s - self._values[0][0] if len(values) == VALUES_MAX else WINDOW_SECONDS
        return len(values) / max(span_s, 1.0)
