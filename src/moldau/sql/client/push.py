"""Rows of a push query for `async for`."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final

from moldau.sql.client.errors import InterfaceError
from moldau.sql.client.http import RowStream
from moldau.sql.client.types import Description, describe, row_reader

__all__ = ["PushRows"]

#: Rows that wait for the program; the server is slowed when they are full.
_WAITING_MAX: Final = 1000


class _End:
    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class PushRows:
    """The rows of a query, as they come. Leave the loop and the query ends with `aclose`.

    async with connection.stream("SELECT * FROM orders EMIT CHANGES") as rows:
        async for row in rows: ...
    """

    def __init__(self, start: Callable[[], RowStream]) -> None:
        self._start = start
        self._stream: RowStream | None = None
        self._queue: asyncio.Queue[tuple[Any, ...] | _End] = asyncio.Queue(_WAITING_MAX)
        self._closed = False
        self.description: list[Description] = []
        self.query_id = ""

    async def _open(self) -> None:
        if self._closed:
            raise InterfaceError("The query has ended")
        if self._stream is not None:
            return
        stream = await asyncio.to_thread(self._start)
        if self._closed:
            stream.close()
            return
        self._stream = stream
        self.query_id = stream.query_id
        self.description = describe(stream.names, stream.types)
        loop = asyncio.get_running_loop()
        thread = threading.Thread(
            target=self._read, args=(stream, loop), name="moldau-sql-push", daemon=True
        )
        thread.start()

    def _read(self, stream: RowStream, loop: asyncio.AbstractEventLoop) -> None:
        """In a thread of its own: wait for rows, and for room in the queue."""
        end = _End(None)
        try:
            read = row_reader(stream.types)
            for line in stream.lines():
                if not self._put(read(line), loop):
                    return
        except Exception as error:
            end = _End(error)
        self._put(end, loop)

    def _put(self, item: tuple[Any, ...] | _End, loop: asyncio.AbstractEventLoop) -> bool:
        try:
            future = asyncio.run_coroutine_threadsafe(self._queue.put(item), loop)
        except RuntimeError:  # the loop is closed
            return False
        while not self._closed:
            try:
                future.result(timeout=0.5)
                return True
            except concurrent.futures.TimeoutError:
                if loop.is_closed():
                    return False
        future.cancel()
        return False

    def __aiter__(self) -> PushRows:
        return self

    async def __anext__(self) -> tuple[Any, ...]:
        await self._open()
        item = await self._queue.get()
        if not isinstance(item, _End):
            return item
        await self.aclose()
        if item.error is not None:
            raise item.error
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """End the query."""
        self._closed = True
        if self._stream is not None:
            await asyncio.to_thread(self._stream.close)

    async def __aenter__(self) -> PushRows:
        await self._open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()
