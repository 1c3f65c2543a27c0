"""Decides which record a task processes next.

Records of a partition are processed in order, and among partitions the one with the smallest
timestamp comes first. A task waits for a partition that is empty: until its records that are on the
broker have been fetched and, after that, for up to `max.task.idle.ms`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

Partition = tuple[str, int]
#: How many records of a partition are on the broker and not fetched yet; `None` if not known.
Lag = Callable[[Any], int | None]
NEVER_WAITS = -1


class Timed(Protocol):
    """A record, as far as the choice depends on it."""

    @property
    def timestamp(self) -> int: ...


R = TypeVar("R", bound=Timed)


class _Single(Generic[R]):
    """The records of one partition, in the lists in which they were fetched."""

    def __init__(self) -> None:
        self.count = 0
        self._lists: deque[list[R]] = deque()
        self._taken = 0

    def add(self, records: list[R]) -> None:
        if records:
            self._lists.append(records)
            self.count += len(records)

    def take(self, count_max: int) -> list[R]:
        """The next records of the oldest list."""
        first, start = self._lists[0], self._taken
        end = start + count_max
        if end < len(first):
            self._taken = end
            found = first[start:end]
        else:
            self._lists.popleft()
            self._taken = 0
            found = first[start:] if start else first
        self.count -= len(found)
        return found


class Inputs(Generic[R]):
    """The records of a task that are fetched and not processed."""

    def __init__(self, partitions: Iterable[Partition], *, idle_ms: int, buffered_max: int) -> None:
        self._queues: dict[Partition, deque[R]] = {key: deque() for key in sorted(partitions)}
        # With one partition there is nothing to choose: fetched records stay together as they are.
        self._single: _Single[R] | None = _Single() if len(self._queues) == 1 else None
        self._idle_ms = idle_ms
        self._buffered_max = buffered_max
        #: Since when it waits for a partition that is empty.
        self.idle_since_ms: int | None = None
        self.paused: set[Partition] = set()
        #: How often a partition that stayed empty was no longer waited for.
        self.enforced = 0

    def __len__(self) -> int:
        if self._single is not None:
            return self._single.count
        return sum(len(queue) for queue in self._queues.values())

    def _count(self, key: Partition) -> int:
        return len(self._queues[key]) if self._single is None else self._single.count

    def add(self, key: Partition, records: list[R]) -> bool:
        """Add fetched records; whether the partition is to be paused."""
        if self._single is not None:
            self._single.add(records)
        else:
            self._queues[key].extend(records)
        if self._count(key) > self._buffered_max and key not in self.paused:
            self.paused.add(key)
            return True
        return False

    def to_resume(self) -> list[Partition]:
        """Paused partitions that have room again."""
        if not self.paused:
            return []
        found = [key for key in self.paused if self._count(key) <= self._buffered_max]
        self.paused.difference_update(found)
        return found

    def is_empty(self, key: Partition) -> bool:
        return not self._count(key)

    def ready(self, now_ms: int, lag: Lag) -> bool:
        """Whether a record may be processed now."""
        if self._single is not None:
            return self._single.count > 0
        empty = [key for key, queue in self._queues.items() if not queue]
        if not empty:
            self.idle_since_ms = None
            return True
        if len(empty) == len(self._queues):
            return False
        if self._idle_ms == NEVER_WAITS:
            return True
        for key in empty:
            behind = lag(key)
            if behind is None or behind > 0:
                # Its records are on the way: processing another partition would be out of order.
                self.idle_since_ms = None
                return False
        if self.idle_since_ms is None:
            self.idle_since_ms = now_ms
        is_due = now_ms - self.idle_since_ms >= self._idle_ms
        self.enforced += is_due
        return is_due

    def take(self, count_max: int) -> list[R]:
        """The next records, in the order in which they are to be processed. Call it after `ready`.

        It ends where a partition becomes empty: what that one gets next may have to come first.
        """
        if self._single is not None:
            return self._single.take(count_max)
        taken: list[R] = []
        filled = [queue for queue in self._queues.values() if queue]
        while len(taken) < count_max:
            first = filled[0]
            for queue in filled:
                if queue[0].timestamp < first[0].timestamp:
                    first = queue
            taken.append(first.popleft())
            if not first:
                break
        return taken
