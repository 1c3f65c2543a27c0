"""What other threads have a stream thread do, between two turns of its loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from moldau.client.errors import WakeupError

__all__ = ["ThreadCalls"]

T = TypeVar("T")


class ThreadCalls:
    """Others add work, and wake the thread's consumer up; the thread runs it."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()

    def add(self, work: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        self._waiting.append((future, work))
        return future

    def run(self) -> None:
        while self._waiting:
            future, work = self._waiting.popleft()
            try:
                future.set_result(_undisturbed(work))
            except Exception as error:
                future.set_exception(error)

    def refuse(self, error: Exception) -> None:
        """The thread has ended."""
        while self._waiting:
            future, _ = self._waiting.popleft()
            future.set_exception(error)


def _undisturbed(work: Callable[[], T]) -> T:
    """The wake-up for some work is for the poll before it, but may come when the work runs already,
    because the thread was between two polls."""
    while True:
        try:
            return work()
        except WakeupError:
            continue
