"""Deadlines of many timers, of which most are moved before they are due.

Every heartbeat moves one session deadline, so moving must be cheap: the map is authoritative, and
the heap may hold older, earlier entries that are dropped or put back when they surface. Invariants:
a timer fires at most once per schedule, never before its latest deadline, and in the order of
deadlines.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

from moldau.times import ElapsedMs

T = TypeVar("T", bound=Hashable)

# Below this size stale entries are not worth removing.
_COMPACT_FROM = 64


class TimerQueue(Generic[T]):
    __slots__ = ("_deadlines", "_heap", "_sequence")

    def __init__(self) -> None:
        # timer -> (deadline, the heap entry that stands for it)
        self._deadlines: dict[T, tuple[ElapsedMs, int]] = {}
        self._heap: list[tuple[ElapsedMs, int, T]] = []
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._deadlines)

    def schedule(self, timer: T, at_ms: ElapsedMs) -> None:
        current = self._deadlines.get(timer)
        if current is not None and current[0] <= at_ms:
            # The entry surfaces early and is put back then: no heap work per heartbeat.
            self._deadlines[timer] = (at_ms, current[1])
            return
        self._push(timer, at_ms)

    def cancel(self, timer: T) -> None:
        self._deadlines.pop(timer, None)
        self._compact()

    def clear(self) -> None:
        self._deadlines.clear()
        self._heap.clear()

    def next_at_ms(self) -> ElapsedMs | None:
        """When to look again; may be too early after deadlines moved, never too late."""
        self._drop_stale()
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now_ms: ElapsedMs) -> T | None:
        """Take one timer that is due, the oldest deadline first."""
        while True:
            self._drop_stale()
            if not self._heap or self._heap[0][0] > now_ms:
                return None
            _, _, timer = heapq.heappop(self._heap)
            deadline, _ = self._deadlines[timer]
            if deadline <= now_ms:
                del self._deadlines[timer]
                return timer
            self._push(timer, deadline)

    def _push(self, timer: T, at_ms: ElapsedMs) -> None:
        self._sequence += 1
        self._deadlines[timer] = (at_ms, self._sequence)
        heapq.heappush(self._heap, (at_ms, self._sequence, timer))
        self._compact()

    def _drop_stale(self) -> None:
        while self._heap:
            _, sequence, timer = self._heap[0]
            current = self._deadlines.get(timer)
            if current is not None and current[1] == sequence:
                return
            heapq.heappop(self._heap)

    def _compact(self) -> None:
        """Throw stale entries away before they outnumber the timers."""
        if len(self._heap) <= max(_COMPACT_FROM, 2 * len(self._deadlines)):
            return
        self._heap = [
            (at_ms, sequence, timer) for timer, (at_ms, sequence) in self._deadlines.items()
        ]
        heapq.heapify(self._heap)
