"""A simulated process: everything that its code has scheduled runs while it runs, and only then.

The loop asks the context of every callback which process it belongs to; tasks and timers inherit
the context they were made in, so nothing in the code under test has to know. A process that has
died runs nothing more; one that is paused (SIGSTOP, a long garbage collection, a frozen virtual
machine) runs later, in the same order, what came due meanwhile.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import Any


class Process:
    """One boot of a program."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.paused = False
        self.ran = True
        """Whether it has done anything since this was last set to False."""
        self._when_dead: list[Callable[[], None]] = []
        self._put_off: list[tuple[Step, contextvars.Context]] = []

    def context(self) -> contextvars.Context:
        """A fresh context in which everything belongs to this process."""
        context = contextvars.Context()
        context.run(PROCESS.set, self)
        return context

    def when_dead(self, listener: Callable[[], None]) -> None:
        if self.alive:
            self._when_dead.append(listener)
        else:
            listener()

    def die(self) -> None:
        if not self.alive:
            return
        self.alive = False
        self._put_off.clear()
        listeners, self._when_dead = self._when_dead, []
        for listener in listeners:
            listener()

    def pause(self) -> None:
        self.paused = True

    def resume(self, loop: asyncio.AbstractEventLoop) -> None:
        self.paused = False
        waiting, self._put_off = self._put_off, []
        for step, context in waiting:
            loop.call_soon(step, context=context)

    def put_off(self, step: Step) -> None:
        self._put_off.append((step, contextvars.copy_context()))


PROCESS: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)
#: Where the tasks are noted that begin in this context, for who ends all of them.
TASKS: contextvars.ContextVar[dict[asyncio.Task[Any], None] | None] = contextvars.ContextVar(
    "tasks", default=None
)


class Step:
    """A callback of a process, as the loop holds it."""

    __slots__ = ("_args", "_callback", "_process", "handle")

    def __init__(self, process: Process, callback: Callable[..., object], args: Any) -> None:
        self._process = process
        self._callback = callback
        self._args = args
        self.handle: asyncio.Handle

    def __call__(self) -> None:
        process = self._process
        if not process.alive or self.handle.cancelled():
            return
        if process.paused:
            process.put_off(self)
        else:
            process.ran = True
            self._callback(*self._args)
