"""Queries over HTTP: /query, /query-stream, /close-query and the websocket."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from typing import Any, Final

from moldau.http.machine.errors import HttpError
from moldau.http.request import Answer, Request
from moldau.http.websocket import WebSocket
from moldau.services.sql.core import PreparedQuery, SqlCore
from moldau.services.sql.machine.errors import BAD_REQUEST, SERVER_ERROR, KsqlHttpError
from moldau.services.sql.machine.frames import (
    V1_PROTOBUF,
    Frames,
    Messages,
    frames_of,
    streamed_type,
    whole,
)
from moldau.services.sql.machine.protobuf_rows import ProtobufMessages, protobuf_writer
from moldau.services.sql.printing import TopicPrinter
from moldau.services.sql.pulling import PulledRows, Writers, json_rows, pull
from moldau.services.sql.pushing import PushQueries, PushQuery, columns_of
from moldau.sql.engine.listing import field_info
from moldau.sql.sources.schema import LogicalSchema
from moldau.sql.syntax.statements import PrintTopic, Query

__all__ = ["QueryHandlers"]

logger = logging.getLogger(__name__)

_INVALID_MESSAGE: Final = 1003
_SERVER_FAILURE: Final = 1011


class QueryHandlers:
    """See the module."""

    def __init__(self, core: SqlCore, check_ready: Callable[[], None]) -> None:
        """`check_ready` raises while commands are still executed."""
        self._core = core
        self._check_ready = check_ready
        self.pushes = PushQueries(core)

    async def query(self, request: Request) -> Answer:
        """The older interface: a JSON array of a header, rows and a message, or PRINT's lines."""
        prepared = await self._prepared(
            request, await _object(request), "ksql", "streamsProperties"
        )
        if isinstance(prepared.query, PrintTopic):
            printer = TopicPrinter(self._core, prepared, request.stopping)
            await printer.open()
            return Answer(chunks=_printed(printer))
        kind = streamed_type(request.headers.get("accept"), request.media_type)
        if kind != V1_PROTOBUF:
            return await self._answer(request, prepared, Messages(), json_rows)
        request.media_type = kind
        return await self._answer(request, prepared, ProtobufMessages(), protobuf_writer)

    async def query_stream(self, request: Request) -> Answer:
        """The newer interface: columns, then rows, as lines or as a JSON array."""
        body = await _object(request)
        prepared = await self._prepared(request, body, "sql", "properties")
        if isinstance(prepared.query, PrintTopic):
            printer = TopicPrinter(self._core, prepared, request.stopping)
            await printer.open()
            return Answer(chunks=_printed(printer))
        request.media_type = streamed_type(request.headers.get("accept"), request.media_type)
        if request.media_type == V1_PROTOBUF:
            return await self._answer(request, prepared, ProtobufMessages(), protobuf_writer)
        return await self._answer(request, prepared, frames_of(request.media_type), json_rows)

    async def close_query(self, request: Request) -> Any:
        body = await _object(request)
        query_id = body.get("queryId")
        if not isinstance(query_id, str) or not query_id:
            raise KsqlHttpError(400, "No queryId in the request", error_code=BAD_REQUEST)
        if not await self.pushes.close(query_id):
            raise KsqlHttpError(400, f"No query with id {query_id}", error_code=BAD_REQUEST)
        return {}

    async def _prepared(
        self, request: Request, body: dict[str, Any], text_key: str, properties_key: str
    ) -> PreparedQuery:
        authorization = request.headers.get("authorization")
        text = body.get(text_key)
        properties = body.get(properties_key) or {}
        variables = body.get("sessionVariables") or {}
        if not isinstance(text, str):
            raise KsqlHttpError(
                400, f'"{text_key}" field must be populated', error_code=BAD_REQUEST
            )
        if not isinstance(properties, dict) or not isinstance(variables, dict):
            raise KsqlHttpError(
                400,
                f'"{properties_key}" and "sessionVariables" must be JSON objects',
                error_code=BAD_REQUEST,
            )
        self._check_ready()
        prepared = await asyncio.to_thread(self._core.prepare_query, text, properties, variables)
        return replace(prepared, authorization=authorization)

    async def _answer(
        self, request: Request, prepared: PreparedQuery, frames: Frames, writers: Writers
    ) -> Answer:
        if _is_pull(prepared):
            found = await asyncio.to_thread(pull, self._core, prepared, writers)
            return Answer(body=_pulled(found, frames).encode())
        push = await self.pushes.start(prepared, request.stopping)
        return Answer(chunks=self._pushed(push, frames, writers))

    async def _pushed(
        self, push: PushQuery, frames: Frames, writers: Writers
    ) -> AsyncGenerator[bytes, None]:
        schema = push.schema
        try:
            yield frames.header(push.id, schema.value).encode()
            write, deleted = writers(schema.value), json_rows(schema.value)
            try:
                async for rows in push.batches():
                    yield "".join(
                        frames.row(deleted(columns_of(key, row, schema)), tombstone=True)
                        if row is None
                        else frames.row(write(row))
                        for key, row in rows
                    ).encode()
                outcome = push.outcome
            except Exception as error:
                # The answer has begun: only its last row can say that more was to come.
                logger.exception("the answer of %s ends", push.id)
                outcome = "", KsqlHttpError(500, str(error), error_code=SERVER_ERROR).body
            yield frames.end(*outcome).encode()
        finally:
            await self.pushes.end(push)

    # The websocket: the request is a parameter of the handshake.

    async def websocket(self, request: Request, socket: WebSocket) -> None:
        """The columns, then a message per row; or PRINT's lines. Errors close it."""
        await socket.accept()
        try:
            prepared = await self._from_parameter(request)
        except HttpError as error:
            await socket.close(_INVALID_MESSAGE, error.message)
            return
        try:
            if isinstance(prepared.query, PrintTopic):
                await self._print_to(socket, request, prepared)
            elif _is_pull(prepared):
                await self._pull_to(socket, prepared)
            else:
                await self._push_to(socket, request, prepared)
        except HttpError as error:
            await socket.close(_SERVER_FAILURE, error.message)

    async def _from_parameter(self, request: Request) -> PreparedQuery:
        text = request.text("request")
        if not text:
            raise KsqlHttpError(400, "Missing request parameter", error_code=BAD_REQUEST)
        try:
            body = json.loads(text)
        except ValueError as error:
            raise KsqlHttpError(
                400, f"Malformed request parameter: {error}", error_code=BAD_REQUEST
            ) from None
        if not isinstance(body, dict):
            raise KsqlHttpError(400, "The request must be an object", error_code=BAD_REQUEST)
        return await self._prepared(request, body, "ksql", "streamsProperties")

    async def _print_to(self, socket: WebSocket, request: Request, prepared: PreparedQuery) -> None:
        printer = TopicPrinter(self._core, prepared, request.stopping)
        await printer.open()
        try:
            async for line in printer.lines():
                await socket.send(line)
        finally:
            await printer.close()

    async def _pull_to(self, socket: WebSocket, prepared: PreparedQuery) -> None:
        found = await asyncio.to_thread(pull, self._core, prepared)
        await socket.send(json.dumps([field_info(each) for each in found.columns]))
        for row in found.rows:
            await socket.send(_message(row))

    async def _push_to(self, socket: WebSocket, request: Request, prepared: PreparedQuery) -> None:
        push = await self.pushes.start(prepared, request.stopping)
        try:
            schema: LogicalSchema = push.schema
            await socket.send(json.dumps([field_info(each) for each in schema.value]))
            write = json_rows(schema.value)
            async for rows in _while_open(push, socket):
                for key, row in rows:
                    await socket.send(_message(write(columns_of(key, row, schema))))
            error = push.outcome[1]
            if error is not None:
                await socket.close(_SERVER_FAILURE, str(error["message"]))
        finally:
            await self.pushes.end(push)


async def _while_open(
    push: PushQuery, socket: WebSocket
) -> AsyncGenerator[list[tuple[Any, Any]], None]:
    """Rows until the client goes, also while there are none."""

    async def watch() -> None:
        await socket.gone()
        push.closed = True

    watching = asyncio.create_task(watch())
    try:
        async for rows in push.batches():
            yield rows
    finally:
        watching.cancel()


def _message(columns: str) -> str:
    return f'{{"row":{{"columns":{columns}}}}}'


def _is_pull(prepared: PreparedQuery) -> bool:
    return isinstance(prepared.query, Query) and prepared.query.is_pull


def _pulled(found: PulledRows, frames: Frames) -> str:
    header = frames.header(found.query_id, found.columns)
    return whole(frames, header, [frames.row(row) for row in found.rows], found.message)


async def _printed(printer: TopicPrinter) -> AsyncGenerator[bytes, None]:
    try:
        async for line in printer.lines():
            yield line.encode()
    finally:
        await printer.close()


async def _object(request: Request) -> dict[str, Any]:
    found = await request.json()
    if not isinstance(found, dict):
        raise KsqlHttpError(400, "The body must be a JSON object", error_code=BAD_REQUEST)
    return found
