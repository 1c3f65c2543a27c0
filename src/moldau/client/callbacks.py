"""Runs code of the application that a client calls: listeners, commit callbacks, interceptors.

It runs where the application waits for the client: in the task of the asyncio client that is inside
a call, or in the thread that is inside a call of the blocking one. Such code may call the client
again. Invariants: the client goes on when the code has ended, with its result or its error.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from moldau.client.errors import ClosedError, IllegalStateError
from moldau.client.loop_thread import Inbox, LoopThread

__all__ = ["BlockingCalls", "Callbacks", "InlineCallbacks"]

T = TypeVar("T")


class Callbacks(Protocol):
    """What a client's core calls the application by."""

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any: ...


class InlineCallbacks:
    """For the asyncio client: right here, waiting for what is awaitable."""

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        result = function(*arguments)
        return await result if inspect.isawaitable(result) else result


class _Request:
    __slots__ = ("arguments", "function", "result")

    def __init__(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], result: asyncio.Future[Any]
    ) -> None:
        self.function = function
        self.arguments = arguments
        self.result = result


class _Call:
    """A coroutine that a thread waits for."""

    __slots__ = ("begun", "coroutine", "task")

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self.coroutine = coroutine
        self.begun = False
        self.task: asyncio.Task[Any] | None = None

    def cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()


class BlockingCalls:
    """For the blocking client: a coroutine runs on the loop's thread, and what it asks for runs in
    the thread that waits for it."""

    def __init__(self, thread: LoopThread) -> None:
        self._thread = thread
        self._inbox: Inbox[_Request | _Call] = thread.inbox()
        self._depth = 0

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The coroutine's result. One thread at a time; code run from here may call again."""
        call = _Call(coroutine)
        # Before the loop runs it: it may ask for a callback sooner than this thread goes on.
        self._depth += 1
        try:
            self._begin(call)
            while True:
                item = self._inbox.get()
                if item is call and call.task is not None:
                    result: T = call.task.result()
                    return result
                if isinstance(item, _Request):
                    self._perform(item)
        except BaseException:
            if call.begun and (call.task is None or not call.task.done()):
                # Interrupted, by Ctrl-C for one.
                self._thread.soon(call.cancel)
            raise
        finally:
            self._depth -= 1

    def _begin(self, call: _Call) -> None:
        try:
            self._thread.check()
            self._thread.soon(self._start, call)
        except BaseException:
            call.coroutine.close()
            raise
        call.begun = True

    def _start(self, call: _Call) -> None:
        call.task = self._thread.loop.create_task(call.coroutine)
        call.task.add_done_callback(lambda done: self._inbox.put(call))

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        if not self._depth:
            raise IllegalStateError("no call is waiting, so the callback cannot run")
        result = asyncio.get_running_loop().create_future()
        self._inbox.put(_Request(function, arguments, result))
        return await result

    def _perform(self, request: _Request) -> None:
        try:
            outcome = request.function(*request.arguments)
            if inspect.iscoroutine(outcome):
                outcome.close()
                raise IllegalStateError(
                    f"{request.function!r} is a coroutine function",
                    advice="use the asyncio client, or a plain function",
                )
        except Exception as error:
            self._hand_back(_fail, request.result, error)
        except BaseException as error:
            self._hand_back(_fail, request.result, RuntimeError(repr(error)))
            raise
        else:
            self._hand_back(_succeed, request.result, outcome)

    def _hand_back(self, how: Callable[..., None], result: asyncio.Future[Any], what: Any) -> None:
        if self._thread.loop.is_closed():
            raise ClosedError("the client was closed inside a callback")
        self._thread.loop.call_soon_threadsafe(how, result, what)


def _succeed(future: asyncio.Future[Any], outcome: Any) -> None:
    if not future.done():
        future.set_result(outcome)


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
