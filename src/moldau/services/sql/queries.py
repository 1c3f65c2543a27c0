"""Push queries over HTTP: rows go from a query's thread through a bounded queue to the client."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from moldau.http.request import Answer, Request
from moldau.services.sql.core import PreparedQuery, SqlCore
from moldau.services.sql.machine.errors import BAD_REQUEST, KsqlHttpError
from moldau.services.sql.machine.rows import row_writer
from moldau.services.sql.pulling import pull
from moldau.sql.engine.results import PersistentQuery
from moldau.sql.sources.schema import WINDOWEND, WINDOWSTART, LogicalSchema
from moldau.sql.syntax.statements import PrintTopic, Query
from moldau.streams.records import Windowed

__all__ = ["QueryHandlers"]

DELIMITED = "application/vnd.ksqlapi.delimited.v1"
#: How long the queue is waited on before the client is looked after.
_POLL_S = 0.5
#: A row of a push query that was deleted.
_ROW = '{"row":{"columns":%s}}'
_TOMBSTONE = '{"row":{"tombstone":true,"columns":%s}}'


class RowQueue:
    """Rows of one query. The query's thread waits where the client is too slow."""

    def __init__(self, size: int, loop: asyncio.AbstractEventLoop) -> None:
        self._queue: asyncio.Queue[Any] = asyncio.Queue(size)
        self._loop = loop
        self._closed = threading.Event()

    def put(self, row: Any) -> None:
        """From the query's thread; returns when there is room, or when nobody reads any more."""
        if self._closed.is_set():
            return
        placed = asyncio.run_coroutine_threadsafe(self._queue.put(row), self._loop)
        while not self._closed.is_set():
            try:
                placed.result(timeout=_POLL_S)
                return
            except TimeoutError:
                continue
        placed.cancel()

    async def get(self) -> Any:
        """The next row; TimeoutError after a while without one."""
        return await asyncio.wait_for(self._queue.get(), _POLL_S)

    def close(self) -> None:
        self._closed.set()


class PushQuery:
    """A push query that runs, with the queue of its rows."""

    def __init__(
        self, core: SqlCore, prepared: PreparedQuery, queue: RowQueue, stopping: asyncio.Event
    ) -> None:
        self._core = core
        self._prepared = prepared
        self.queue = queue
        self.stopping = stopping
        self.running: PersistentQuery | None = None
        self.closed = False

    def start(self) -> None:
        self.running = self._core.push(self._prepared, self._on_row)

    def _on_row(self, key: Any, row: Any, timestamp: int) -> None:
        self.queue.put((key, row))

    @property
    def schema(self) -> LogicalSchema:
        if self.running is None:
            raise KsqlHttpError(400, "The query does not run", error_code=BAD_REQUEST)
        return self.running.built.schema

    @property
    def is_stream(self) -> bool:
        """A record without a value deletes a row of a table; in a stream it is none."""
        return self.running is not None and self.running.plan.kind == "STREAM"

    def stop(self) -> None:
        self.closed = True
        self.queue.close()
        if self.running is not None:
            self._core.host.stop(self.running.id)

    @property
    def error(self) -> BaseException | None:
        return None if self.running is None else self._core.host.error(self.running.id)


class QueryHandlers:
    """/query, /query-stream and /close-query."""

    def __init__(self, core: SqlCore) -> None:
        self._core = core
        self._open: dict[str, PushQuery] = {}

    async def query(self, request: Request) -> Answer:
        """The older interface: a JSON array of a header, rows and a message."""
        body = await _object(request)
        prepared = await self._prepared(body, "ksql", "streamsProperties")
        if isinstance(prepared.query, Query) and prepared.query.is_pull:
            found = await asyncio.to_thread(pull, self._core, prepared)
            return Answer(body=found.as_array().encode())
        push = await self._started(prepared, request.stopping)
        return Answer(chunks=self._array(push, prepared))

    async def query_stream(self, request: Request) -> Answer:
        """The newer interface: a line of columns, then a line per row."""
        body = await _object(request)
        prepared = await self._prepared(body, "sql", "properties")
        if isinstance(prepared.query, Query) and prepared.query.is_pull:
            found = await asyncio.to_thread(pull, self._core, prepared)
            return Answer(body=found.as_lines().encode())
        push = await self._started(prepared, request.stopping)
        return Answer(chunks=self._lines(push, prepared))

    async def close_query(self, request: Request) -> Any:
        body = await _object(request)
        query_id = str(body.get("queryId", ""))
        push = self._open.get(query_id)
        if push is None:
            raise KsqlHttpError(400, f"No query with id {query_id}", error_code=BAD_REQUEST)
        await asyncio.to_thread(push.stop)
        return {}

    async def _prepared(
        self, body: dict[str, Any], text_key: str, properties_key: str
    ) -> PreparedQuery:
        text = body.get(text_key)
        if not isinstance(text, str):
            raise KsqlHttpError(
                400, f'"{text_key}" field must be populated', error_code=BAD_REQUEST
            )
        prepared = await asyncio.to_thread(
            self._core.prepare_query,
            text,
            body.get(properties_key) or {},
            body.get("sessionVariables") or {},
        )
        if isinstance(prepared.query, PrintTopic):
            raise KsqlHttpError(400, "PRINT is not supported here", error_code=BAD_REQUEST)
        return prepared

    async def _started(self, prepared: PreparedQuery, stopping: asyncio.Event) -> PushQuery:
        config = self._core.config
        if len(self._open) >= config["ksql.query.push.queries.max"]:
            raise KsqlHttpError(
                400,
                f"Not executing statement(s) as it would cause the number of push queries to "
                f"exceed the limit of {config['ksql.query.push.queries.max']}",
                error_code=BAD_REQUEST,
            )
        queue = RowQueue(config["ksql.query.push.rows.queued.max"], asyncio.get_running_loop())
        push = PushQuery(self._core, prepared, queue, stopping)
        await asyncio.to_thread(push.start)
        if push.running is not None:
            self._open[push.running.id] = push
        return push

    async def _ended(self, push: PushQuery) -> None:
        if push.running is not None:
            self._open.pop(push.running.id, None)
        await asyncio.to_thread(push.stop)

    async def _array(self, push: PushQuery, prepared: PreparedQuery) -> AsyncGenerator[bytes, None]:
        schema = push.schema
        header = {"header": {"queryId": _id(push), "schema": ", ".join(map(str, schema.value))}}
        try:
            yield f"[{json.dumps(header)},\n".encode()
            write = row_writer([each.type for each in schema.value])
            async for key, row in self._rows(push, prepared):
                columns = write(_columns(key, row, schema))
                shown = (
                    _TOMBSTONE % columns if row is None else f'{{"row":{{"columns":{columns}}}}}'
                )
                yield f"{shown},\n".encode()
            yield f"{_last(push)}]".encode()
        finally:
            await self._ended(push)

    async def _lines(self, push: PushQuery, prepared: PreparedQuery) -> AsyncGenerator[bytes, None]:
        schema = push.schema
        header = {
            "queryId": _id(push),
            "columnNames": [each.name for each in schema.value],
            "columnTypes": [str(each.type) for each in schema.value],
        }
        try:
            yield f"{json.dumps(header)}\n".encode()
            write = row_writer([each.type for each in schema.value])
            async for key, row in self._rows(push, prepared):
                yield f"{write(_columns(key, row, schema))}\n".encode()
        finally:
            await self._ended(push)

    async def _rows(
        self, push: PushQuery, prepared: PreparedQuery
    ) -> AsyncGenerator[tuple[Any, Any], None]:
        query = prepared.query
        left = query.limit if isinstance(query, Query) else None
        while left is None or left > 0:
            if push.closed or push.stopping.is_set() or push.error is not None:
                return
            with contextlib.suppress(TimeoutError):
                key, row = await push.queue.get()
                if row is None and push.is_stream:
                    continue
                yield key, row
                if left is not None:
                    left -= 1


def _id(push: PushQuery) -> str:
    return "" if push.running is None else push.running.id


def _last(push: PushQuery) -> str:
    if push.error is not None:
        error = KsqlHttpError(500, str(push.error), error_code=50000)
        return json.dumps({"errorMessage": error.body})
    return json.dumps(
        {
            "finalMessage": "Query Completed"
            if push.closed or push.stopping.is_set()
            else "Limit Reached"
        }
    )


def _columns(key: Any, row: Any, schema: LogicalSchema) -> Sequence[Any]:
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


async def _object(request: Request) -> dict[str, Any]:
    found = await request.json()
    if not isinstance(found, dict):
        raise KsqlHttpError(400, "The body must be a JSON object", error_code=BAD_REQUEST)
    return found
