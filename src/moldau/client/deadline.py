"""Until when something may take."""

from __future__ import annotations

from moldau.clock import Clock

__all__ = ["Deadline"]

_MS_MAX = 2**53


class Deadline:
    """A moment after which an operation gives up."""

    __slots__ = ("_clock", "at_ms", "timeout_ms")

    def __init__(self, clock: Clock, timeout_ms: int) -> None:
        self._clock = clock
        self.timeout_ms = timeout_ms
        self.at_ms = clock.elapsed_ms() + timeout_ms

    def left_ms(self) -> int:
        return max(0, self.at_ms - self._clock.elapsed_ms())

    @classmethod
    def in_seconds(cls, clock: Clock, timeout: float | None, *, default_ms: int) -> Deadline:
        """From a caller's timeout; `default_ms` if that is None."""
        if timeout is None:
            return cls(clock, default_ms)
        if timeout < 0:
            raise ValueError(f"timeout {timeout} must not be negative")
        return cls(clock, int(min(timeout * 1000, _MS_MAX)))

    @property
    def passed(self) -> bool:
        return self._clock.elapsed_ms() >= self.at_ms
