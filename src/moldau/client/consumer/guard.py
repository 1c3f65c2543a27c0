"""Keeps a consumer to one thread or task at a time, as its users must."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import Protocol

from moldau.client.errors import ClosedError, ConcurrentModificationError

__all__ = ["Guard", "TaskGuard", "ThreadGuard"]


class Guard(Protocol):
    """Inside its `with` is one user at a time; who is inside may enter again, from a callback."""

    closed: bool

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


class ThreadGuard:
    """For the blocking consumer."""

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
    """For the asyncio consumer. The tasks that a call starts are inside with it."""

    __slots__ = ("_depth", "_inside", "closed")

    def __init__(self) -> None:
        self._depth = 0
        self._inside: ContextVar[int] = ContextVar("calls of the consumer", default=0)
        self.closed = False

    def __enter__(self) -> None:
        if self._depth and not self._inside.get():
            raise ConcurrentModificationError(
                "another task is inside a call of the consumer",
                advice="use one consumer per task",
            )
        if self.closed:
            raise ClosedError("This consumer has already been closed.")
        self._depth += 1
        self._inside.set(self._inside.get() + 1)

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        self._inside.set(self._inside.get() - 1)
