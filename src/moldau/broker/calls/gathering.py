"""Many small calls to the same place as few large ones.

One request is under way at a time to each destination; what is asked meanwhile goes into the next
one together. What always holds: every call ends with its own result or with the error that its
request met; two calls with the same key never share a request, as their results could not be told
apart. The number of calls is for the callers to bound.
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
        """`send` makes one request and gives a result for each item, in their order; what it
        raises is raised to all."""
        self._send = send
        self._key = key
        self._item_count_max = item_count_max
        self._waiting: dict[D, dict[asyncio.Future[R], T]] = {}
        self._tasks: dict[D, asyncio.Task[None]] = {}

    async def call(self, destination: D, item: T) -> R:
        """The item's result. Who gives up before the request is sent is not part of it."""
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
            _fail(waiting, ChannelError("this node stops"))

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
            _fail(taken, ChannelError("this node stops"))
            raise
        else:
            for future, result in zip(taken, results, strict=True):
                if not future.done():
                    future.set_result(result)

    def close(self) -> None:
        """Fail what waits with a ChannelError."""
        for task in self._tasks.values():
            task.cancel()


def _fail(futures: Iterable[asyncio.Future[R]], error: Exception) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(error)
