"""Push queries: rows go from a query's thread through a bounded queue to whoever reads them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Sequence
from typing import Any, Final

from moldau.services.sql.core import PreparedQuery, SqlCore
from moldau.services.sql.machine.errors import BAD_REQUEST, SERVER_ERROR, KsqlHttpError
from moldau.services.sql.machine.retries import explained
from moldau.sql.engine.results import PersistentQuery
from moldau.sql.sources.schema import WINDOWEND, WINDOWSTART, LogicalSchema
from moldau.sql.syntax.statements import Query
from moldau.streams.records import Windowed

__all__ = ["PushQueries", "PushQuery", "columns_of"]

#: How long the queue is waited on before the client is looked after.
_POLL_S: Final = 0.5


class RowQueue:
    """Rows of one query. The query's thread waits where the client is too slow.

    The event loop takes all rows that are there, and is woken once for all of them.
    """

    def __init__(self, size: int, loop: asyncio.AbstractEventLoop) -> None:
        self._size = size
        self._loop = loop
        self._rows: list[Any] = []
        self._arrived = asyncio.Event()
        self._changed = threading.Condition()
        self._closed = False

    def put(self, row: Any) -> None:
        """From the query's thread; returns when there is room, or when nobody reads any more."""
        with self._changed:
            while len(self._rows) >= self._size and not self._closed:
                self._changed.wait(_POLL_S)
            if self._closed:
                return
            self._rows.append(row)
            if len(self._rows) > 1:
                return
        # It raises if the loop has ended, and then nobody reads.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._arrived.set)

    async def take(self) -> list[Any]:
        """The rows that are there; TimeoutError after a while without one."""
        await asyncio.wait_for(self._arrived.wait(), _POLL_S)
        with self._changed:
            self._arrived.clear()
            taken, self._rows = self._rows, []
            self._changed.notify_all()
        return taken

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class PushQuery:
    """A push query that runs, with the queue of its rows."""

    def __init__(
        self, core: SqlCore, prepared: PreparedQuery, queue: RowQueue, stopping: asyncio.Event
    ) -> None:
        self._core = core
        self._prepared = prepared
        self._queue = queue
        self._stopping = stopping
        self.running: PersistentQuery | None = None
        self.closed = False

    def start(self) -> None:
        self.running = self._core.push(self._prepared, self._on_row)

    def _on_row(self, key: Any, row: Any, timestamp: int) -> None:
        self._queue.put((key, row))

    @property
    def id(self) -> str:
        return "" if self.running is None else self.running.id

    @property
    def schema(self) -> LogicalSchema:
        if self.running is None:
            raise KsqlHttpError(400, "The query does not run", error_code=BAD_REQUEST)
        return self.running.built.schema

    @property
    def is_stream(self) -> bool:
        """A record without a value deletes a row of a table; in a stream it is none."""
        return self.running is not None and self.running.plan.kind == "STREAM"

    async def batches(self) -> AsyncGenerator[list[tuple[Any, Any]], None]:
        """Rows as they come, until the limit, the end of the query, or of the server."""
        query = self._prepared.query
        left = query.limit if isinstance(query, Query) else None
        while left is None or left > 0:
            if self._is_over or self._error is not None:
                return
            try:
                rows = await self._queue.take()
            except TimeoutError:
                continue
            if self.is_stream:
                rows = [each for each in rows if each[1] is not None]
            if left is not None:
                rows = rows[:left]
                left -= len(rows)
            if rows:
                yield rows

    def stop(self) -> None:
        self.closed = True
        self._queue.close()
        if self.running is not None:
            self._core.host.stop(self.running.id)

    @property
    def _is_over(self) -> bool:
        """By the client, by the end of the server, or by TERMINATE."""
        terminated = self.running is not None and self._core.host.streams(self.running.id) is None
        return self.closed or self._stopping.is_set() or terminated

    @property
    def _error(self) -> BaseException | None:
        return None if self.running is None else self._core.host.error(self.running.id)

    @property
    def outcome(self) -> tuple[str, dict[str, Any] | None]:
        """The last message, and the error if it failed."""
        if self._error is not None:
            error = KsqlHttpError(500, explained(self._error), error_code=SERVER_ERROR)
            return "", error.body
        return ("Query Completed" if self._is_over else "Limit Reached"), None


class PushQueries:
    """Those that run now, by their ids; as many as the settings allow."""

    def __init__(self, core: SqlCore) -> None:
        self._core = core
        self._open: dict[str, PushQuery] = {}

    async def start(self, prepared: PreparedQuery, stopping: asyncio.Event) -> PushQuery:
        config = self._core.config
        limit = config["ksql.query.push.queries.max"]
        if len(self._open) >= limit:
            raise KsqlHttpError(
                400,
                "Not executing statement(s) as it would cause the number of push queries to "
                f"exceed the limit of {limit}",
                error_code=BAD_REQUEST,
            )
        queue = RowQueue(config["ksql.query.push.rows.queued.max"], asyncio.get_running_loop())
        push = PushQuery(self._core, prepared, queue, stopping)
        await asyncio.to_thread(push.start)
        self._open[push.id] = push
        return push

    async def end(self, push: PushQuery) -> None:
        self._open.pop(push.id, None)
        await asyncio.to_thread(push.stop)

    async def close(self, query_id: str) -> bool:
        """Whether there was such a query."""
        push = self._open.get(query_id)
        if push is None:
            return False
        await asyncio.to_thread(push.stop)
        return True

    @property
    def ids(self) -> list[str]:
        return list(self._open)


def columns_of(key: Any, row: Any, schema: LogicalSchema) -> Sequence[Any]:
    """What a row shows; of one that was deleted, its key."""
    if row is not None:
        found: Sequence[Any] = row
        return found
    inner = getattr(key, "key", key)
    values = inner if isinstance(inner, tuple) else (inner,)
    names = [each.name for each in schema.key]
    known = dict(zip(names, values, strict=False))
    if isinstance(key, Windowed):
        known.update({WINDOWSTART: key.window.start, WINDOWEND: key.window.end})
    return [known.get(each.name) for each in schema.value]
