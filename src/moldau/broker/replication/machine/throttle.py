"""How many bytes replication may take (leader/follower.replication.throttled.*), as Kafka counts.

A rate is measured over a window of samples; while it is above its limit, throttled replicas that
are not in sync get nothing. In-sync replicas are counted too but never delayed, so that a
throttle does not shrink an ISR. Pure: time is passed in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from moldau.times import ElapsedMs

ALL_REPLICAS = "*"


def is_throttled_replica(replicas: Sequence[str], partition: int, broker_id: int) -> bool:
    """Whether a topic's `...replication.throttled.replicas` names this replica."""
    return bool(replicas) and (ALL_REPLICAS in replicas or f"{partition}:{broker_id}" in replicas)


class ReplicationThrottle:
    """The bytes of one direction."""

    __slots__ = ("_rate_max", "_samples", "_samples_max", "_total", "_window_ms")

    def __init__(
        self, rate_max: Callable[[], int], *, samples_max: int = 11, window_ms: int = 1000
    ) -> None:
        """`rate_max` is the limit in bytes per second; `samples_max` and `window_ms` are
        replication.quota.window.num and replication.quota.window.size.seconds."""
        self._rate_max = rate_max
        self._samples_max = samples_max
        self._window_ms = window_ms
        # (start of the sample, bytes in it), oldest first.
        self._samples: deque[tuple[int, int]] = deque()
        self._total = 0

    def record(self, size: int, now_ms: ElapsedMs) -> None:
        self._forget(now_ms)
        if self._samples and now_ms - self._samples[-1][0] < self._window_ms:
            start_ms, before = self._samples.pop()
            self._samples.append((start_ms, before + size))
        else:
            self._samples.append((now_ms, size))
        self._total += size

    def is_exceeded(self, now_ms: ElapsedMs) -> bool:
        """Whether the rate over the window is above the limit."""
        self._forget(now_ms)
        if not self._samples:
            return False
        # A single burst is not measured over less than one sample's time.
        elapsed_ms = max(now_ms - self._samples[0][0], self._window_ms)
        return self._total * 1000 / elapsed_ms > self._rate_max()

    def _forget(self, now_ms: ElapsedMs) -> None:
        oldest_ms = now_ms - self._samples_max * self._window_ms
        while self._samples and self._samples[0][0] <= oldest_ms:
            self._total -= self._samples.popleft()[1]
