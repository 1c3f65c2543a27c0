"""The clients that a Spark process keeps between calls, by kind and settings.

Spark calls a reader or writer again and again in the same process, each time for a moment: a client
created for every call would connect and ask for metadata every time.

Invariants: a client is used only in the process that created it, and a forked child creates its own
(Spark's daemon forks its workers); a cache keeps at most `idle_max` idle clients, the ones
used last, and none for longer than `IDLE_S`, so that no client goes on looking for a cluster
that is gone; a client of an exclusive cache has one user at a time.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

__all__ = ["IDLE_S", "ClientCache", "close_idle"]

#: Longer than the pauses between the batches of most queries.
IDLE_S: Final = 120.0

C = TypeVar("C")

_Key = frozenset[tuple[str, str]]


@dataclass(slots=True)
class _Entry(Generic[C]):
    key: _Key
    client: C
    user_count: int = 0
    idle_since_s: float = 0.0


class ClientCache(Generic[C]):
    """Clients of one kind. Several threads may use it."""

    def __init__(
        self,
        create: Callable[[Mapping[str, Any]], C],
        close: Callable[[C], None],
        *,
        idle_max: int,
        shared: bool,
        idle_s: float = IDLE_S,
    ) -> None:
        self._create = create
        self._close = close
        self._idle_max = idle_max
        self._shared = shared
        self._idle_s = idle_s
        # The one that was used last comes last.
        self._entries: list[_Entry[C]] = []
        # Clients of the process that this one was forked from. They are never touched: even to
        # collect them would reach into the event loop that the parent still uses.
        self._inherited: list[_Entry[C]] = []
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        _caches.append(self)

    @property
    def clients(self) -> list[C]:
        """Those that are shared or idle; the one used last comes last."""
        with self._lock:
            return [each.client for each in self._entries]

    def take(self, settings: Mapping[str, Any]) -> C:
        """A client with these settings, until it is given back."""
        key = _key(settings)
        with self._lock:
            entry = self._find(key)
            if entry is not None:
                self._entries.remove(entry)
            elif self._shared:
                # Under the lock, else two threads would create two.
                entry = _Entry(key, self._create(settings))
            if entry is not None and self._shared:
                entry.user_count += 1
                self._entries.append(entry)
        # Outside the lock, for it may take a while. A client with one user belongs to that user:
        # if it is never given back, it is collected with its user.
        return self._create(settings) if entry is None else entry.client

    def give_back(self, settings: Mapping[str, Any], client: C) -> None:
        """Keep a client that works and has nothing left to do for its next user."""
        with self._lock:
            if self._shared:
                entry = next((each for each in self._entries if each.client is client), None)
                if entry is None:
                    # Inherited: a generator that a fork has copied was collected in the child.
                    return
                entry.user_count -= 1
            else:
                entry = _Entry(_key(settings), client)
                self._entries.append(entry)
            entry.idle_since_s = time.monotonic()
            idle = self._idle()
            surplus = self._taken_out(idle[: max(0, len(idle) - self._idle_max)])
            self._arm()
        self._close_all(surplus)

    @contextmanager
    def lease(self, settings: Mapping[str, Any]) -> Iterator[C]:
        client = self.take(settings)
        try:
            yield client
        finally:
            self.give_back(settings, client)

    def close_idle(self, idle_s: float = 0.0) -> None:
        """Close every client that has not been used for so long."""
        until_s = time.monotonic() - idle_s
        with self._lock:
            old = [each for each in self._idle() if each.idle_since_s <= until_s]
            surplus = self._taken_out(old)
        self._close_all(surplus)

    def after_fork(self) -> None:
        """In the child, whose only thread this is."""
        self._lock = threading.Lock()
        self._timer = None
        self._inherited += self._entries
        self._entries = []

    def _find(self, key: _Key) -> _Entry[C] | None:
        for entry in reversed(self._entries):
            if entry.key == key and (self._shared or entry.user_count == 0):
                return entry
        return None

    def _idle(self) -> list[_Entry[C]]:
        return [each for each in self._entries if each.user_count == 0]

    def _taken_out(self, entries: list[_Entry[C]]) -> list[C]:
        for each in entries:
            self._entries.remove(each)
        return [each.client for each in entries]

    def _close_all(self, clients: list[C]) -> None:
        for each in clients:
            self._close(each)

    def _arm(self) -> None:
        if self._timer is None and self._idle():
            self._timer = threading.Timer(self._idle_s, self._on_timer)
            # A process that is done does not wait for it.
            self._timer.daemon = True
            self._timer.start()

    def _on_timer(self) -> None:
        try:
            self.close_idle(self._idle_s)
        finally:
            with self._lock:
                self._timer = None
                self._arm()


def _key(settings: Mapping[str, Any]) -> _Key:
    return frozenset((name, str(value)) for name, value in settings.items())


_caches: list[ClientCache[Any]] = []


def _after_fork() -> None:
    for each in _caches:
        each.after_fork()


os.register_at_fork(after_in_child=_after_fork)


def close_idle() -> None:
    """Close every client of this process that is not in use."""
    for each in _caches:
        each.close_idle()
