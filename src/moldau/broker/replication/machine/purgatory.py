"""Requests that wait: for records to be committed, or for bytes to read.

Nothing here polls. A waiter is called by its partitions when something has changed, by a timer at
its timeout, or by its owner when the client has disconnected.

Invariants: a waiter ends exactly once, its timer never outlives it, and at most `waiters_max` wait
at a time (one that finds no place is answered immediately, as if it had timed out).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

# A connection has at most one request in flight, so this is also a limit on idle consumers.
WAITERS_MAX = 100_000


class TimerHandle(Protocol):
    def cancel(self) -> None: ...


class Timers(Protocol):
    """The part of an event loop that waiting needs; the simulator has its own."""

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any
    ) -> TimerHandle: ...

    def call_soon(self, callback: Callable[..., object], *args: Any) -> object: ...


class Waiter(ABC):
    """One waiting request. A subclass decides what happens at the timeout."""

    __slots__ = ("_timer", "finished")

    def __init__(self) -> None:
        self.finished = False
        self._timer: TimerHandle | None = None

    @abstractmethod
    def on_timeout(self) -> None:
        """Answer with what is available."""


class Purgatory:
    """All waiting requests of one kind."""

    __slots__ = ("_count", "_timers", "_waiters_max", "expired_count")

    def __init__(self, timers: Timers, waiters_max: int = WAITERS_MAX) -> None:
        self._timers = timers
        self._waiters_max = waiters_max
        self._count = 0
        # How many ended at their timeout.
        self.expired_count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def timers(self) -> Timers:
        return self._timers

    def admit(self, waiter: Waiter, timeout_ms: int) -> bool:
        """Let `waiter` wait up to `timeout_ms`; False if there is no place left."""
        if self._count >= self._waiters_max:
            return False
        self._count += 1
        waiter._timer = self._timers.call_later(timeout_ms / 1000, self._expire, waiter)
        return True

    def finish(self, waiter: Waiter) -> bool:
        """End the wait of an admitted waiter; False if it had ended before."""
        if waiter.finished:
            return False
        waiter.finished = True
        self._count -= 1
        if waiter._timer is not None:
            waiter._timer.cancel()
            waiter._timer = None
        return True

    def _expire(self, waiter: Waiter) -> None:
        waiter._timer = None
        if not waiter.finished:
            self.expired_count += 1
            waiter.on_timeout()
