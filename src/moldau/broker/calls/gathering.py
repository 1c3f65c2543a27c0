"""Many small calls to one destination as few large requests.

Invariants: at most one request is in flight to a destination, and what is called meanwhile goes
into the next one; every call ends with its own result or with the error of its request; two calls
with the same key never share a request, as their results could not be distinguished. Callers
bound the number of calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from typing import Generic, TypeVar

from moldau.invariant import invariant
from moldau.peers.channel import ChannelError

D = TypeVar("D", bound=Hashable)
T = TypeVar("T")
R = TypeVar("R")

_ITEM_COUNT_MAX = 1_000


class Gathering(Generic[D, T, R]):
    def __init__(
        self,
        send: Callable[[D, Sequence[T]], Awaitable[Sequence[R]]],
        *,
        key: Callable[[T], Hashable],
        item_count_max: int = _ITEM_COUNT_MAX,
    ) -> None:
        """`send` makes one request and returns a result for each item, in their order; what it
        raises is raised to all callers of these items."""
        self._send = send
        self._key = key
        self._item_count_max = item_count_max
        self._waiting: dict[D, dict[asyncio.Future[R], T]] = {}
        self._tasks: dict[D, asyncio.Task[None]] = {}

    async def call(self, destination: D, item: T) -> R:
        """The item's result. A call that is cancelled before its request is sent is left out."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        waiting = self._waiting.setdefault(destination, {})
        waiting[future] = item
        if destination not in self._tasks:
            self._tasks[destination] = loop.create_task(self._drain(destination))
        try:
            return await future
        finally:
            waiting.pop(future, None)

    async def _drain(self, destination: D) -> None:
        waiting = self._waiting[destination]
        try:
            while waiting:
                await self._send_once(destination, self._take(waiting))
        finally:
            del self._waiting[destination], self._tasks[destination]
            _fail(waiting, ChannelError("this node is stopping"))

    def _take(self, waiting: dict[asyncio.Future[R], T]) -> dict[asyncio.Future[R], T]:
        taken: dict[asyncio.Future[R], T] = {}
        keys = set()
        for future, item in waiting.items():
            key = self._key(item)
            if key not in keys:
                keys.add(key)
                taken[future] = item
                if len(taken) == self._item_count_max:
                    break
        for future in taken:
            del waiting[future]
        return taken

    async def _send_once(self, destination: D, taken: dict[asyncio.Future[R], T]) -> None:
        try:
            results = await self._send(destination, list(taken.values()))
            invariant(len(results) == len(taken), "every call has a result")
        except Exception as error:
            _fail(taken, error)
        except asyncio.CancelledError:
            _fail(taken, ChannelError("this node is stopping"))
            raise
        else:
            for future, result in zip(taken, results, strict=True):
                if not future.done():
                    future.set_result(result)


def _fail(futures: Iterable[asyncio.Future[R]], error: Exception) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(error)
