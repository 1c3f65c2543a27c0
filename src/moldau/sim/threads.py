"""Threads of a simulated process: each takes turns with the loop, and one of them runs at a time.

A thread runs until it waits for something that the loop has to do; then the loop goes on, and it
gives the thread its next turn when that is done. Who runs when is decided by the loop alone, in
virtual time, so code that blocks is as repeatable as code that awaits. A thread of a process that
has died is unwound: whatever it waits for raises `Killed`.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from moldau.client.errors import ClosedError
from moldau.client.loop_thread import Inbox, LoopThread
from moldau.invariant import invariant
from moldau.sim.loop import VirtualLoop
from moldau.sim.process import TASKS, Process

T = TypeVar("T")


class Killed(BaseException):
    """The process of the thread has died."""


class SimThread:
    """A thread that blocks where it waits for the loop."""

    def __init__(
        self,
        loop: VirtualLoop,
        process: Process,
        work: Callable[[], None],
        context: contextvars.Context,
    ) -> None:
        self._loop = loop
        self._process = process
        self._work = work
        self._context = context
        self._turn = threading.Semaphore(0)
        self._back = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, name=process.name, daemon=True)
        self.ended = False
        self.error: BaseException | None = None
        self.on_end: Callable[[], None] = lambda: None
        process.when_dead(self.go_on)
        loop.call_soon(self.go_on, context=context)

    def _run(self) -> None:
        _THREADS[threading.get_ident()] = self
        try:
            # The loop enters the original when it gives a turn.
            self._context.copy().run(self._work)
        except Killed:
            pass
        except BaseException as error:
            self.error = error
        finally:
            del _THREADS[threading.get_ident()]
            self.ended = True
            self._back.release()

    @property
    def killed(self) -> bool:
        return not self._process.alive

    def go_on(self) -> None:
        """On the loop: the thread runs until it waits again, or ends."""
        if self.ended:
            return
        if self._thread.ident is None:
            if self.killed:
                self.ended = True
                return
            self._thread.start()
        else:
            self._turn.release()
        self._back.acquire()
        if self.ended:
            self.on_end()

    def wait(self) -> None:
        """In the thread: until `go_on`."""
        if self.killed:
            raise Killed
        self._back.release()
        self._turn.acquire()
        if self.killed:
            raise Killed

    def sleep(self, seconds: float) -> None:
        """In the thread: until so much virtual time has passed."""
        self._loop.call_later(seconds, self.go_on)
        self.wait()


_THREADS: dict[int, SimThread] = {}


def current_thread() -> SimThread:
    """The simulated thread that calls."""
    found = _THREADS.get(threading.get_ident())
    invariant(found is not None, "the caller is a simulated thread")
    return found  # type: ignore[return-value]


class _SimInbox:
    """`loop_thread.Inbox` between the loop and a simulated thread."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._items: deque[Any] = deque()
        self._waiting: SimThread | None = None

    def put(self, item: Any) -> None:
        self._items.append(item)
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self._loop.call_soon(waiting.go_on)

    def get(self) -> Any:
        while not self._items:
            self._waiting = thread = current_thread()
            thread.wait()
        return self._items.popleft()


class SimLoopThread(LoopThread):
    """What is a loop in a thread of its own under a real client is the one loop here."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop: VirtualLoop = loop
        self._stopped = False
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._context = contextvars.copy_context()
        self._context.run(TASKS.set, self._tasks)

    @property
    def on_it(self) -> bool:
        return threading.get_ident() not in _THREADS

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        thread = current_thread()
        try:
            self.check()
        except BaseException:
            coroutine.close()
            raise
        task = self._context.copy().run(self.loop.create_task, coroutine)
        task.add_done_callback(lambda _: thread.go_on())
        thread.wait()
        return task.result()

    def check(self) -> None:
        if current_thread().killed:
            raise Killed
        if self._stopped:
            raise ClosedError("the client is closed")

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Only at the end of the real process, when nothing of a simulated one is left."""
        coroutine.close()
        raise ClosedError("the simulation is over")

    def soon(self, callback: Callable[..., None], *arguments: Any) -> None:
        self.loop.call_soon(callback, *arguments, context=self._context.copy())

    def inbox(self) -> Inbox[Any]:
        return _SimInbox(self.loop)

    def ended_with(
        self, owner: object, what: str, close: Callable[[], Coroutine[Any, Any, Any]]
    ) -> None:
        """A client that is not closed ends with its process."""

    def stop(self, timeout_s: float = 5.0) -> None:
        self._stopped = True
        for task in list(self._tasks):
            task.cancel()

    def check_process(self) -> None:
        """Nothing forks here."""
