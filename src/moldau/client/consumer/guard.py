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


# The guards that the current task is inside of. One for all: a variable is never collected.
_INSIDE: ContextVar[tuple[TaskGuard, ...]] = ContextVar("inside consumers", default=())


class TaskGuard:
    """For the asyncio consumer. The tasks that a call starts are inside with it."""

    __slots__ = ("_depth", "closed")

    def __init__(self) -> None:
        self._depth = 0
        self.closed = False

    def __enter__(self) -> None:
        inside = _INSIDE.get()
        if self._depth and self not in inside:
            raise ConcurrentModificationError(
                "another task is already using the consumer",
                advice="use one consumer per task",
            )
        if self.closed:
            raise ClosedError("This consumer has already been closed.")
        self._depth += 1
        _INSIDE.set((*inside, self))

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        inside = list(_INSIDE.get())
        inside.remove(self)
        _INSIDE.set(tuple(inside))
