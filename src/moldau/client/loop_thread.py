"""The thread under a blocking client: an event loop of its own, and calls into it.

Invariants: a coroutine that was handed over ends before `call` does, also when the caller
is interrupted: then it is cancelled. After `stop`, and in a forked child, which has no such
thread, every call is refused. A client that is collected without having been closed leaves no
thread behind, as a file leaves no descriptor: `ended_with`.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

from moldau.client.errors import ClosedError, IllegalStateError

try:
    import uvloop

    _new_event_loop: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
except ImportError:
    _new_event_loop = asyncio.new_event_loop

__all__ = ["Inbox", "LoopThread"]

T = TypeVar("T")


class Inbox(Protocol[T]):
    """Where a thread waits for what the loop gives it."""

    def put(self, item: T) -> None: ...

    def get(self) -> T: ...


class LoopThread:
    """Runs coroutines for threads that may block."""

    def __init__(self, name: str) -> None:
        self.loop: asyncio.AbstractEventLoop = _new_event_loop()
        self._pid = os.getpid()
        self._stopped = False
        self._finalizer: weakref.finalize[..., Any] | None = None
        # A daemon: a client that nobody closed does not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def on_it(self) -> bool:
        """Whether the caller is this thread, which must not block."""
        return threading.get_ident() == self._thread.ident

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The coroutine's result; the caller's thread waits for it."""
        future = self.submit(coroutine)
        try:
            return future.result()
        except BaseException:
            if not future.done():
                # Interrupted, by Ctrl-C for one.
                future.cancel()
            raise

    def check(self) -> None:
        """Raise if the caller may not wait for something here."""
        problem = self._problem()
        if problem is not None:
            raise problem

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine; its result comes by the future."""
        problem = self._problem()
        if problem is not None:
            coroutine.close()
            raise problem
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def soon(self, callback: Callable[..., None], *arguments: Any) -> None:
        """Call something on the loop; does not wait, so it may come from there too."""
        problem = None if self.on_it else self._problem()
        if problem is not None:
            raise problem
        self.loop.call_soon_threadsafe(callback, *arguments)

    def inbox(self) -> Inbox[Any]:
        """Where callers wait for what the loop gives them."""
        return SimpleQueue()

    def ended_with(
        self, owner: object, what: str, close: Callable[[], Coroutine[Any, Any, Any]]
    ) -> None:
        """When the owner is collected and `stop` was not called: warn, close what runs here, which
        must not refer to the owner, and end the thread. At the end of the process nothing of this
        happens: nothing would be gained by it."""
        self._finalizer = weakref.finalize(owner, self._on_owner_gone, what, close)
        self._finalizer.atexit = False

    def _on_owner_gone(self, what: str, close: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        # In whatever thread, inside whatever it does: nothing may be waited for.
        if self._stopped or self._pid != os.getpid():
            return
        self._stopped = True
        self.loop.call_soon_threadsafe(self._close_by_itself, close)
        warnings.warn(
            f"unclosed {what}: close it, or use it in a with statement", ResourceWarning, 2
        )

    def _close_by_itself(self, close: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        closing = self.loop.create_task(close())

        def end(done: asyncio.Task[Any]) -> None:
            # Nobody is left to whom an error could be raised.
            _ = done.cancelled() or done.exception()
            self.loop.stop()

        closing.add_done_callback(end)

    def stop(self, timeout_s: float = 5.0) -> None:
        """Cancel what runs, end the thread."""
        if self._finalizer is not None:
            self._finalizer.detach()
        if self._stopped or self._pid != os.getpid():
            return
        self._stopped = True
        self.loop.call_soon_threadsafe(self.loop.stop)
        if not self.on_it:
            self._thread.join(timeout_s)

    def check_process(self) -> None:
        """Raises in a forked child, whose copy of the client has no thread."""
        if self._pid != os.getpid():
            raise IllegalStateError(
                "this client was created before a fork", advice="create one in the child process"
            )

    def _problem(self) -> Exception | None:
        try:
            self.check_process()
        except IllegalStateError as error:
            return error
        if self._stopped:
            return ClosedError("the client is closed")
        if self.on_it:
            return IllegalStateError(
                "a blocking call from a callback on the client's own thread",
                advice="use another thread, or the asyncio client",
            )
        return None

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self._finish()

    def _finish(self) -> None:
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()


def remaining_s(deadline: float | None) -> float | None:
    """Seconds until a moment of `time.monotonic`, at least 0; None for no limit."""
    return None if deadline is None else max(0.0, deadline - time.monotonic())
