"""Service level objectives: what share of events must be good, and how fast the rest is used up.

An objective of 99.9 % over 30 days allows 0.1 % of the events to be bad: the error budget. The burn
rate says how many times faster than allowed it is used: 1 uses it up exactly at the end of the
period. An alert looks at a long and a short window together, so that it comes early, and ends soon
after the trouble does.

Events are counted in buckets of a fixed length: short ones for the windows, long ones for the
period. Memory is bounded by the number of buckets.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

__all__ = ["BURN_RATE_MAX", "Objective", "Report", "Tracker"]

PERIOD_BUCKETS: Final = 4_320
#: How many buckets the short window has.
WINDOW_BUCKETS: Final = 10
#: Google's SRE workbook: 2 % of a month's budget within an hour.
BURN_RATE_MAX: Final = 14.4


class Objective(NamedTuple):
    """`kind`: availability (probes that succeed), latency (that take at most `threshold` ms), or
    lag (rounds in which a group is at most `threshold` seconds behind)."""

    name: str
    kind: str
    target: float
    """The share that must be good, such as 0.999."""
    period_s: float = 30 * 86_400
    threshold: float = 0.0
    group: str = ""
    """For lag: which group; empty: all."""
    long_window_s: float = 3_600
    short_window_s: float = 300
    burn_rate_max: float = BURN_RATE_MAX


class Report(NamedTuple):
    objective: Objective
    good: int
    total: int
    budget: float
    """The share of the error budget that is left; negative if it is overdrawn."""
    long_burn_rate: float
    short_burn_rate: float

    @property
    def burning(self) -> bool:
        """Whether the budget is used up too fast, now and for some time."""
        limit = self.objective.burn_rate_max
        return self.long_burn_rate > limit and self.short_burn_rate > limit


class _Bucket:
    __slots__ = ("bad", "good", "start_s")

    def __init__(self, start_s: float) -> None:
        self.start_s = start_s
        self.good = 0
        self.bad = 0


class _Counts:
    """The events of the last `span_s`."""

    def __init__(self, bucket_s: float, span_s: float) -> None:
        self._bucket_s = bucket_s
        self._buckets: deque[_Bucket] = deque(maxlen=int(span_s / bucket_s) + 2)

    def add(self, good: bool, now_s: float) -> None:
        if not self._buckets or now_s - self._buckets[-1].start_s >= self._bucket_s:
            self._buckets.append(_Bucket(now_s))
        bucket = self._buckets[-1]
        if good:
            bucket.good += 1
        else:
            bucket.bad += 1

    def within(self, window_s: float, now_s: float) -> tuple[int, int]:
        """How many were good, and how many there were."""
        good = bad = 0
        for bucket in reversed(self._buckets):
            if bucket.start_s <= now_s - window_s:
                break
            good += bucket.good
            bad += bucket.bad
        return good, good + bad


class Tracker:
    """Counts the events of one objective."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        period_s = objective.period_s
        self._period = _Counts(period_s / PERIOD_BUCKETS, period_s)
        self._windows = _Counts(
            objective.short_window_s / WINDOW_BUCKETS, objective.long_window_s
        )

    def record(self, good: bool, now_s: float) -> None:
        self._period.add(good, now_s)
        self._windows.add(good, now_s)

    def report(self, now_s: float) -> Report:
        objective = self.objective
        good, total = self._period.within(objective.period_s, now_s)
        allowed = total * (1 - objective.target)
        left = 1 - (total - good) / allowed if total else 1.0
        return Report(
            objective,
            good,
            total,
            left,
            self._burn_rate(objective.long_window_s, now_s),
            self._burn_rate(objective.short_window_s, now_s),
        )

    def _burn_rate(self, window_s: float, now_s: float) -> float:
        good, total = self._windows.within(window_s, now_s)
        if not total:
            return 0.0
        return (total - good) / total / max(1 - self.objective.target, 1e-9)
