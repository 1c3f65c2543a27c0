"""Ends a call that waits, from another thread.

Invariants: each wakeup ends one call, the one that waits or the next that would; what that
call was about is cancelled, not left running.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from moldau.client.errors import WakeupError

__all__ = ["Wakeup"]

T = TypeVar("T")


class Wakeup:
    """See the module. `soon` calls something on the loop from any thread; `wake` is called there
    after a wakeup was asked for."""

    def __init__(self, soon: Callable[..., None], wake: Callable[[], None]) -> None:
        self._soon = soon
        self._wake = wake
        #: Whether the next call that would wait is to raise. Read everywhere.
        self.asked = False
        # Of the loop only.
        self._waiter: asyncio.Future[None] | None = None

    def ask(self) -> None:
        """From any thread."""
        self.asked = True
        self._soon(self._on_asked)

    def _on_asked(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
        self._wake()

    def check(self) -> None:
        """Raise WakeupError if it was asked for."""
        if self.asked:
            self.asked = False
            raise WakeupError("the consumer was woken up")

    async def wakeable(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of something that may wait long, unless a wakeup ends it."""
        if self.asked:
            work.close()
            self.check()
        loop = asyncio.get_running_loop()
        task = loop.create_task(work)
        # A callback inside `work` may call the consumer again.
        outer, waiter = self._waiter, loop.create_future()
        self._waiter = waiter
        try:
            await asyncio.wait((task, waiter), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                self.check()
            return await task
        finally:
            self._waiter = outer
            if not task.done():
                task.cancel()
                # It may fail before it is cancelled, and nobody asks any more.
                task.add_done_callback(lambda done: done.cancelled() or done.exception())
