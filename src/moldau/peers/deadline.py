"""A time limit for the running task."""

from __future__ import annotations

import asyncio

from moldau.clock import Clock
from moldau.invariant import present

__all__ = ["Deadline"]


class Deadline:
    """Cancels the current task when its time is over."""

    def __init__(self, clock: Clock, timeout_ms: int) -> None:
        self._task = present(asyncio.current_task(), "a time limit needs a task to cancel")
        self._passed = False
        self._alarm = clock.call_later(timeout_ms, self._pass)

    def _pass(self) -> None:
        self._passed = True
        self._task.cancel()

    def passed(self) -> bool:
        """Whether this was the reason; the task then continues."""
        if self._passed:
            self._task.uncancel()
        return self._passed

    def cancel(self) -> None:
        self._alarm.cancel()
