"""The producer's `buffer.memory`: how much is free, and who waits for some.

Pure; the accumulator's lock guards it. Invariants: never more is given out than there is, and
waiters get memory in the order in which they asked.
"""

from __future__ import annotations

from collections import deque

from moldau.client.producer.machine.queues import MemoryWaiter
from moldau.invariant import invariant

__all__ = ["MemoryPool"]


class MemoryPool:
    """See the module."""

    __slots__ = ("free", "size", "waiters")

    def __init__(self, size: int) -> None:
        self.size = size
        self.free = size
        self.waiters: deque[MemoryWaiter] = deque()

    def take(self, size: int) -> bool:
        """Whether there was enough, and nobody had waited longer."""
        if self.waiters or self.free < size:
            return False
        self.free -= size
        return True

    def give_back(self, size: int) -> None:
        """Memory is free again; who waits longest gets it."""
        self.free += size
        invariant(self.free <= self.size, "more memory was given back than was taken")
        self._grant()

    def _grant(self) -> None:
        while self.waiters and self.free >= self.waiters[0].size:
            waiter = self.waiters.popleft()
            self.free -= waiter.size
            waiter.granted = True
            waiter.wake()

    def withdraw(self, waiter: MemoryWaiter) -> None:
        """Somebody does not wait any longer; what was granted at the last moment is given back."""
        if waiter.granted:
            self.give_back(waiter.size)
        elif waiter in self.waiters:
            self.waiters.remove(waiter)
            self._grant()

    def close(self) -> None:
        """Nobody waits any longer."""
        waiters, self.waiters = self.waiters, deque()
        for waiter in waiters:
            waiter.wake()
