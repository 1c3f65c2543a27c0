"""Buffer: messages that one consumer has been given and has not received yet.

They come out by priority and then in the order of their coming, and not before their delivery
time. Whoever puts messages in looks for room first.
"""

from __future__ import annotations

import heapq
import itertools
from typing import Any, Generic, Protocol, TypeVar

__all__ = ["Buffer", "Timed"]


class _HasMessage(Protocol):
    @property
    def message(self) -> Any: ...


T = TypeVar("T", bound=_HasMessage)


class Buffer(Generic[T]):
    def __init__(self, size: int) -> None:
        self._size = size
        self._heap: list[tuple[int, int, T]] = []
        self._numbers = itertools.count()
        #: Those that are received again come before all others of their priority.
        self._front = itertools.count(-1, -1)

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def room(self) -> int:
        return max(self._size - len(self._heap), 0)

    def put(self, item: T) -> None:
        heapq.heappush(self._heap, (-item.message.priority, next(self._numbers), item))

    def put_back(self, item: T) -> None:
        heapq.heappush(self._heap, (-item.message.priority, next(self._front), item))

    def take(self) -> T | None:
        return heapq.heappop(self._heap)[2] if self._heap else None

    def clear(self) -> list[T]:
        found = [item for _, _, item in sorted(self._heap, key=lambda each: each[:2])]
        self._heap.clear()
        return found


class Timed(Generic[T]):
    """Messages that wait for their delivery time."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, T]] = []
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, item: T) -> None:
        heapq.heappush(self._heap, (item.message.delivery_time, next(self._numbers), item))

    def due(self, now_ms: int) -> list[T]:
        found = []
        while self._heap and self._heap[0][0] <= now_ms:
            found.append(heapq.heappop(self._heap)[2])
        return found

    def drop(self, item: T) -> None:
        """Forget it, if it is here."""
        left = [each for each in self._heap if each[2] is not item]
        if len(left) < len(self._heap):
            heapq.heapify(left)
            self._heap = left

    def next_ms(self) -> int | None:
        """When the next one is due."""
        return self._heap[0][0] if self._heap else None

    def clear(self) -> list[T]:
        found = [item for _, _, item in self._heap]
        self._heap.clear()
        return found
