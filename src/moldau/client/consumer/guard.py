"""Keeps a consumer to one thread or task at a time, as its users must."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import Any

from moldau.client.errors import ClosedError, ConcurrentModificationError

__all__ = ["TaskGuard", "ThreadGuard"]


class ThreadGuard:
    """For the blocking consumer. The thread inside may enter again, from a callback."""

    __slots__ = ("_depth", "_lock", "_owner", "closed")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0
        self._depth = 0
        self.closed = False

    def __enter__(self) -> None:
        thread = threading.get_ident()
        if self._owner != thread:
            if not self._lock.acquire(blocking=False):
                raise ConcurrentModificationError(
                    "the consumer is not safe for multi-threaded access: "
                    f"thread {self._owner} is inside a call"
                )
            self._owner = thread
        self._depth += 1
        if self.closed:
            self.__exit__()
            raise ClosedError("This consumer has already been closed.")

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = 0
            self._lock.release()


class TaskGuard:
    """For the asyncio consumer. A task that a call of the consumer runs in may enter again."""

    __slots__ = ("_depth", "_inside", "_tokens", "closed")

    def __init__(self) -> None:
        self._depth = 0
        self._inside: ContextVar[bool] = ContextVar("inside a call of the consumer", default=False)
        self._tokens: list[Any] = []
        self.closed = False

    def __enter__(self) -> None:
        if self._depth and not self._inside.get():
            raise ConcurrentModificationError("another task is inside a call of the consumer")
        if self.closed:
            raise ClosedError("This consumer has already been closed.")
        self._depth += 1
        self._tokens.append(self._inside.set(True))

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        self._inside.set(self._depth > 0)
        self._tokens.pop()
