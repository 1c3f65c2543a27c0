"""OpenRequests: requests of other nodes that the machine has not answered yet."""

from __future__ import annotations

import asyncio

from moldau.broker.raft.machine.rpcs import Reply


class OpenRequests:
    def __init__(self) -> None:
        self._last_token = 0
        self._futures: dict[int, asyncio.Future[Reply]] = {}

    def open(self) -> tuple[int, asyncio.Future[Reply]]:
        """A token for the machine, and the response that it will give under this token."""
        self._last_token += 1
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._futures[self._last_token] = future
        return self._last_token, future

    def close(self, token: int) -> None:
        """The response, if there will be one, is of no interest any more."""
        self._futures.pop(token, None)

    def answer(self, token: int, reply: Reply) -> None:
        future = self._futures.get(token)
        if future is not None and not future.done():
            future.set_result(reply)

    def fail_all(self, error: Exception) -> None:
        for future in self._futures.values():
            if not future.done():
                future.set_exception(error)
