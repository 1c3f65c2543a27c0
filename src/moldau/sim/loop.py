"""An asyncio loop whose clock jumps to the next thing that happens.

Invariants: no real time passes, no descriptor is opened, and callbacks run in the order
that their times and the order of their scheduling give, so a seeded program runs the same way
each time.
"""

from __future__ import annotations

import asyncio
import contextlib
from asyncio.base_events import BaseEventLoop
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, Final, Protocol, TypeVar

from moldau.client.errors import KafkaError
from moldau.sim.process import PROCESS, TASKS, Process, Step

T = TypeVar("T")


ROUNDS_MAX = 1_000_000
CANCEL_S = 30.0


class Socket(Protocol):
    """What the loop watches for those who ask it to, as it would a descriptor."""

    def watch_reads(self, callback: Callable[[], object] | None) -> None: ...

    def watch_writes(self, callback: Callable[[], object] | None) -> None: ...


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


#: Longer than a request waits for its answer.
GATHERING_S_MAX: Final = 60.0


class VirtualLoop(BaseEventLoop):
    """Run a whole world with `VirtualLoop().run(main())`."""

    def __init__(self) -> None:
        super().__init__()
        self._now_s = 0.0
        self._selector = _VirtualSelector(self)
        self.errors: list[BaseException] = []
        """What callbacks have raised: bugs, as no caller could see it."""
        self.set_exception_handler(self._on_error)
        # A loop itself holds its tasks weakly: one that waits for a process that has stopped
        # would end whenever the garbage collector comes by.
        self._started: dict[asyncio.Task[Any], None] = {}
        self.set_task_factory(self._new_task)
        self.sockets: dict[int, Socket] = {}
        """By the number that stands for a descriptor."""
        self.failed: list[tuple[asyncio.Task[Any], Process, float]] = []
        """Tasks of processes that ended with an error, which may have been handled."""
        self._ending = False
        self.on_moment: Callable[[], None] | None = None
        """Called when everything of one moment has happened, before time goes on."""

    def _new_task(
        self, loop: asyncio.AbstractEventLoop, work: Any, **options: Any
    ) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **options)
        self._started[task] = None
        process, group = PROCESS.get(), TASKS.get()
        if group is not None:
            group[task] = None
            task.add_done_callback(group.pop)
        task.add_done_callback(lambda task: self._on_task_done(task, process))
        return task

    def _on_task_done(self, task: asyncio.Task[Any], process: Process | None) -> None:
        self._started.pop(task, None)
        if process is not None and not task.cancelled() and getattr(task, "_log_traceback", False):
            self.failed.append((task, process, self._now_s))

    def unretrieved(self, *, at_end: bool) -> list[BaseException]:
        """Errors that ended a task of a process and have not been retrieved since.

        Those of requests may be gathered, and are retrieved when the last of them has ended: before
        the end of a run only old ones count, and none if who waited for it has died.
        """
        found: list[BaseException] = []
        waiting = []
        for task, process, ended_s in self.failed:
            # `exception()` would count as retrieving it.
            error = task._exception if getattr(task, "_log_traceback", False) else None
            if error is None:
                continue
            if not isinstance(error, KafkaError):
                found.append(error)
            elif not at_end and self._now_s - ended_s < GATHERING_S_MAX:
                waiting.append((task, process, ended_s))
            elif process.alive:
                found.append(error)
        self.failed = waiting
        return found

    # Callbacks run as long as their process does.

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        process = PROCESS.get() if context is None else context.get(PROCESS)
        if process is None or self._ending:
            return super().call_soon(callback, *args, context=context)
        step = Step(process, callback, args)
        step.handle = super().call_soon(step, context=context)
        return step.handle

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        process = PROCESS.get() if context is None else context.get(PROCESS)
        if process is None or self._ending:
            return super().call_at(when, callback, *args, context=context)
        step = Step(process, callback, args)
        step.handle = handle = super().call_at(when, step, context=context)
        return handle

    # Sockets are watched like descriptors.

    def add_reader(  # type: ignore[override]
        self, fd: Any, callback: Callable[..., object], *args: Any
    ) -> None:
        self.sockets[fd].watch_reads(lambda: callback(*args))

    def remove_reader(self, fd: Any) -> bool:
        self.sockets[fd].watch_reads(None)
        return True

    def add_writer(  # type: ignore[override]
        self, fd: Any, callback: Callable[..., object], *args: Any
    ) -> None:
        self.sockets[fd].watch_writes(lambda: callback(*args))

    def remove_writer(self, fd: Any) -> bool:
        self.sockets[fd].watch_writes(None)
        return True

    def time(self) -> float:
        return self._now_s

    def advance(self, seconds: float) -> None:
        if seconds > 0:
            if self.on_moment is not None and not self._ending:
                self.on_moment()
            self._now_s += seconds

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        try:
            return self.run_until_complete(main)
        finally:
            self._cancel_all()
            self.close()

    def _cancel_all(self) -> None:
        # The dead must rise once more to be cancelled.
        self._ending = True
        tasks = list(self._started)
        for task in tasks:
            task.cancel()
        if tasks:
            self.run_until_complete(asyncio.wait(tasks, timeout=CANCEL_S))
        for task in self._started:
            # It was about to run when its process died, so nothing wakes it any more.
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            coroutine = task.get_coro()
            with contextlib.suppress(BaseException):
                coroutine.close()

    def _on_error(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        # A forgotten task's error comes whenever the garbage collector finds it, so it would
        # make runs differ; those who start tasks here look at how they end.
        error = context.get("exception")
        if error is not None and "handle" in context:
            self.errors.append(error)

    def _process_events(self, event_list: list[Any]) -> None:
        """Nothing comes from outside."""

    def _write_to_self(self) -> None:
        """Nothing sleeps, so nothing needs waking."""
