"""Decides when a stream thread commits.

Commits begin at most once per interval, counted from the begin of one to the begin of the next, so
that the time that a commit takes does not add to what records wait for. When nothing was processed
for longer than the interval, the next record is committed at once: waiting would gain nothing.
"""

from __future__ import annotations


class CommitSchedule:
    """Of one thread. Times are milliseconds of a clock that only goes forward."""

    __slots__ = ("_due_ms", "_interval_ms")

    def __init__(self, interval_ms: int, now_ms: int) -> None:
        self._interval_ms = interval_ms
        self._due_ms = now_ms + interval_ms

    def is_due(self, now_ms: int, *, has_work: bool, requested: bool) -> bool:
        """Whether to commit now: something was processed, or a processor asks for it."""
        return requested or (has_work and now_ms >= self._due_ms)

    def begun(self, now_ms: int) -> None:
        """A commit began at this time, and has ended."""
        self._due_ms = now_ms + self._interval_ms

    def wait_ms(self, now_ms: int) -> int:
        """How long what was processed has to wait for its commit."""
        return max(0, self._due_ms - now_ms)
