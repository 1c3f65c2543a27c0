"""A limit in bytes per second: how long to wait before the next bytes."""

from __future__ import annotations

__all__ = ["Throttle"]

_BURST_S = 1.0


class Throttle:
    """Lets a second's worth through at once; the time is passed in."""

    def __init__(self, bytes_per_s: int) -> None:
        self._rate = bytes_per_s
        self._debt = 0.0
        self._seen_s: float | None = None

    def delay_s(self, size: int, now_s: float) -> float:
        """Take `size` bytes; how long to wait before the next ones."""
        if self._rate <= 0:
            return 0.0
        if self._seen_s is not None:
            self._debt = max(0.0, self._debt - (now_s - self._seen_s) * self._rate)
        self._seen_s = now_s
        self._debt += size
        return max(0.0, self._debt / self._rate - _BURST_S)
