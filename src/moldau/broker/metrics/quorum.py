"""What the quorum's log and elections take: `kafka.server:type=raft-metrics`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from moldau.metrics.recent import Recent

__all__ = ["QuorumTimes"]

#: How many appends may wait for their commit and be measured.
WAITING_MAX: Final = 10_000
RATE_SECONDS: Final = 60.0


class QuorumTimes:
    """Called by the log of the quorum and when leaders are published; `now_s` is the clock."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._waiting: deque[tuple[int, float]] = deque(maxlen=WAITING_MAX)
        self._appended: deque[tuple[float, int]] = deque(maxlen=WAITING_MAX)
        self._fetched: deque[tuple[float, int]] = deque(maxlen=WAITING_MAX)
        self._election_began_s: float | None = None
        self.commit_latency = Recent()
        self.election_latency = Recent()

    def appended(self, base_offset: int, end_offset: int) -> None:
        """This node leads, and has appended records."""
        now_s = self._now_s()
        self._waiting.append((end_offset, now_s))
        self._appended.append((now_s, end_offset - base_offset))

    def fetched(self, base_offset: int, end_offset: int) -> None:
        """This node follows, and has records of its leader."""
        self._waiting.clear()
        self._fetched.append((self._now_s(), end_offset - base_offset))

    def committed(self, offset: int) -> None:
        now_s = self._now_s()
        while self._waiting and self._waiting[0][0] <= offset:
            _, began_s = self._waiting.popleft()
            self.commit_latency.add((now_s - began_s) * 1000, now_s)

    def leader_known(self, known: bool) -> None:
        """A leader was published, or that there is none."""
        now_s = self._now_s()
        if not known:
            if self._election_began_s is None:
                self._election_began_s = now_s
        elif self._election_began_s is not None:
            self.election_latency.add((now_s - self._election_began_s) * 1000, now_s)
            self._election_began_s = None

    def append_rate(self) -> float:
        return _rate(self._appended, self._now_s())

    def fetch_rate(self) -> float:
        return _rate(self._fetched, self._now_s())


def _rate(records: deque[tuple[float, int]], now_s: float) -> float:
    while records and records[0][0] < now_s - RATE_SECONDS:
        records.popleft()
    return sum(count for _, count in records) / RATE_SECONDS
