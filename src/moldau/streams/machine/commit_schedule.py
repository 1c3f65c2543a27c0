"""Decides when a stream thread commits.

Commits begin at most once per interval, counted from the begin of one to the begin of the next, so
that the time that a commit takes does not add to what records wait for. When nothing was processed
for longer than the interval, the next record is committed at once: waiting would gain nothing.

With exactly once a result is read after its commit, so the first results of a thread are committed
at once. A thread that has time to spare then commits earlier by twice what a commit and the two
ways take, that of a record to the thread and that of its result to a reader. So everything together
takes half the interval in the mean: (interval - 2 * (taken + ways)) / 2 + taken + ways. A thread
with records to process keeps to the interval.
"""

from __future__ import annotations

from typing import Final

#: The part of the interval by which a commit may be earlier at most.
_EARLIER_MAX: Final = 0.5
#: What a produce and a fetch take on either side; the thread does not see them.
_WAYS_MS: Final = 3
#: When a commit that the group's rebalance has put off is tried again.
_AGAIN_MS: Final = 100
#: How much the latest commit counts in the mean of what commits take.
_WEIGHT: Final = 0.125


class CommitSchedule:
    """Of one thread. Times are milliseconds of a clock that only goes forward."""

    __slots__ = ("_begun_ms", "_commit_shows", "_interval_ms", "_taken_ms")

    def __init__(self, interval_ms: int, now_ms: int, *, commit_shows: bool = False) -> None:
        """`commit_shows` says that results are read only after their commit."""
        self._interval_ms = interval_ms
        self._begun_ms = now_ms - interval_ms if commit_shows else now_ms
        self._commit_shows = commit_shows
        self._taken_ms: float | None = None

    def put_off(self, now_ms: int) -> None:
        """The group does not take a commit while it rebalances; a poll completes that."""
        self._begun_ms = now_ms + _AGAIN_MS - self._interval_ms

    def is_due(self, now_ms: int, *, has_work: bool, requested: bool, busy: bool = False) -> bool:
        """Whether to commit now: something was processed, or a processor asks for it."""
        due_ms = self._begun_ms + self._interval_ms
        if not busy:
            due_ms -= self._earlier_ms()
        return requested or (has_work and now_ms >= due_ms)

    def committed(self, begun_ms: int, now_ms: int) -> None:
        """A commit began then, and has ended now."""
        self._begun_ms = begun_ms
        taken_ms = now_ms - begun_ms
        if self._taken_ms is None:
            self._taken_ms = taken_ms
        else:
            self._taken_ms += _WEIGHT * (taken_ms - self._taken_ms)

    def wait_ms(self, now_ms: int) -> int:
        """How long what was processed has to wait for its commit, if nothing else is to be done."""
        return max(0, self._begun_ms + self._interval_ms - self._earlier_ms() - now_ms)

    def _earlier_ms(self) -> int:
        if not self._commit_shows or self._taken_ms is None:
            return 0
        return int(min(2 * (self._taken_ms + _WAYS_MS), _EARLIER_MAX * self._interval_ms))
