"""An asyncio loop whose clock jumps to the next thing that happens.

What always holds: no real time passes, no descriptor is opened, and callbacks run in the order
that their times and the order of their scheduling give, so a seeded program runs the same way
each time.
"""

from __future__ import annotations

import asyncio
from asyncio.base_events import BaseEventLoop
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


ROUNDS_MAX = 1_000_000


class Deadlock(Exception):
    """Everything waits and nothing is going to happen, or it never ends."""


class _VirtualSelector:
    """Where a real loop would sleep, this one moves the clock."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._rounds = 0

    def select(self, timeout: float | None) -> list[Any]:
        self._rounds += 1
        if timeout is None:
            raise Deadlock("every task waits and no timer is set")
        if self._rounds > ROUNDS_MAX:
            raise Deadlock(f"no end after {ROUNDS_MAX} rounds")
        self._loop.advance(timeout)
        return []

    def close(self) -> None:
        """Nothing to let go of."""


class VirtualLoop(BaseEventLoop):
    """Run a whole world with `VirtualLoop().run(main())`."""

    def __init__(self) -> None:
        super().__init__()
        self._now_s = 0.0
        self._selector = _VirtualSelector(self)
        self.errors: list[BaseException] = []
        """What callbacks have raised: bugs, as nobody was there to hear."""
        self.set_exception_handler(self._on_error)
        # A loop itself holds its tasks weakly: one that waits for a process that has stopped
        # would end whenever the garbage collector comes by.
        self._started: dict[asyncio.Task[Any], None] = {}
        self.set_task_factory(self._new_task)

    def _new_task(
        self, loop: asyncio.AbstractEventLoop, work: Any, **options: Any
    ) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **options)
        self._started[task] = None
        task.add_done_callback(lambda task: self._started.pop(task, None))
        return task

    def time(self) -> float:
        return self._now_s

    def advance(self, seconds: float) -> None:
        self._now_s += seconds

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        try:
            return self.run_until_complete(main)
        finally:
            self._cancel_all()
            self.close()

    def _cancel_all(self) -> None:
        tasks = list(self._started)
        for task in tasks:
            task.cancel()
        if tasks:
            self.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))

    def _on_error(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        # A forgotten task's error comes whenever the garbage collector finds it, so it would
        # make runs differ; those who start tasks here look at how they end.
        error = context.get("exception")
        if error is not None and "handle" in context:
            self.errors.append(error)

    def _process_events(self, event_list: list[Any]) -> None:
        """Nothing comes from outside."""

    def _write_to_self(self) -> None:
        """Nobody sleeps, so nobody needs waking."""
