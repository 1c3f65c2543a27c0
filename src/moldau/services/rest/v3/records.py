"""API v3: producing records, one, many concatenated, streamed, or as a batch.

Records are sent as they arrive and answered in their order. A request whose length is known is
answered as a whole; one that streams (chunked) is answered while it goes on, and a bounded number
of records wait for the broker meanwhile. A record's own error is in its answer, with status 200.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from moldau.client.errors import KafkaError
from moldau.client.producer import RecordFuture
from moldau.http.machine.errors import HttpError, bad_json, payload_too_large
from moldau.http.machine.json_text import dump_json, load_all_json, load_json
from moldau.http.machine.routes import Route
from moldau.http.request import Answer, ClientDisconnected, Request
from moldau.services.rest.backend import Backend, V3Call
from moldau.services.rest.machine import bodies
from moldau.services.rest.machine.errors import (
    constraint,
    invalid_payload,
    rest_error,
    too_many_records,
)
from moldau.services.rest.machine.formats import EncodedSchema
from moldau.services.rest.machine.instants import format_instant
from moldau.services.rest.machine.json_stream import InvalidStream, JsonStream
from moldau.services.rest.machine.produce_requests import read_produce_request
from moldau.services.rest.sending import check_partitions
from moldau.services.rest.v3.routing import CLUSTER, resource

__all__ = ["RecordHandlers"]

PENDING_MAX: Final = 1000
ID_LENGTH_MAX: Final = 80


class _Sent(NamedTuple):
    """A record on its way, or why it is not."""

    future: RecordFuture | None
    key: EncodedSchema | None = None
    value: EncodedSchema | None = None
    error: HttpError | None = None


class RecordHandlers:
    """See the module."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def routes(self) -> list[Route]:
        path = f"{CLUSTER}/topics/{{topic_name}}/records"
        return [
            Route(
                method="POST", path=path, handler=self._produce, tag="v3 records",
                summary="Produce records",
                description="One record, or several concatenated; the answers are concatenated in "
                "the same order. With chunked encoding records are produced while they arrive.",
                consumes=("application/json",), body=resource("ProduceRequest"),
                responses={200: resource("ProduceResponse")}, streams_body=True, timeout_ms=0,
                body_bytes_max=2**62,
            ),
            Route(
                method="POST", path=f"{path}:batch", handler=self._batch, tag="v3 records",
                summary="Produce a batch of records", consumes=("application/json",),
                body=resource("ProduceBatchRequest"),
                responses={207: resource("ProduceBatchResponse")},
            ),
        ]  # fmt: skip

    # One by one.

    async def _produce(self, request: Request) -> Answer:
        http = self._backend.config.http
        length = request.headers.get("content-length", "")
        if not length.isdigit():
            stream = JsonStream(bytes_max=http.request_body_bytes_max)
            pieces = self._pieces(request)
            first = await self._first(pieces, stream)
            return Answer(chunks=self._streamed(request, first, pieces, stream))
        if int(length) > http.request_body_bytes_max:
            raise payload_too_large(http.request_body_bytes_max)
        limit = asyncio.timeout(http.request_timeout_ms / 1000 or None)
        try:
            async with limit:
                return await self._whole(request)
        except TimeoutError:
            if not limit.expired():
                raise
            raise HttpError(408, "The request took too long.") from None

    async def _whole(self, request: Request) -> Answer:
        found = load_all_json(await request.body())
        if not found:
            raise invalid_payload("Request body is empty. Data is required.")
        if len(found) > self._backend.config["produce.records.max"]:
            raise too_many_records(self._backend.config["produce.records.max"])
        topic = request.path["topic_name"]
        answers: list[bytes] = []
        async with self._backend.v3(request) as call:
            for start in range(0, len(found), PENDING_MAX):
                window = found[start : start + PENDING_MAX]
                sent = [await self._sent(call, topic, each) for each in window]
                for each in sent:
                    await _settled(each)
                answers += [dump_json(_stored(call, topic, each)) for each in sent]
        return Answer(body=b"\r\n".join(answers))

    async def _pieces(self, request: Request) -> AsyncIterator[bytes]:
        """The pieces of a body that streams; ends when the service stops, the time is over, or
        nothing arrives for too long."""
        config = self._backend.config
        until = asyncio.get_running_loop().time() + (
            config["streaming.connection.max.duration.ms"] / 1000
        )
        arriving = aiter(request.stream())
        stopping = asyncio.ensure_future(request.stopping.wait())
        try:
            while asyncio.get_running_loop().time() < until:
                piece = asyncio.ensure_future(anext(arriving, None))
                await asyncio.wait(
                    {piece, stopping},
                    timeout=config.http.idle_timeout_ms / 1000,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if not piece.done():
                    piece.cancel()
                    return
                data = piece.result()
                if data is None:
                    return
                yield data
        finally:
            stopping.cancel()

    async def _first(self, pieces: AsyncIterator[bytes], stream: JsonStream) -> list[bytes]:
        """The first records: what is wrong before them has a status of its own."""
        async for piece in pieces:
            found = _fed(stream, piece)
            if found:
                return found
        _check_end(stream)
        raise invalid_payload("Request body is empty. Data is required.")

    async def _streamed(
        self,
        request: Request,
        first: list[bytes],
        pieces: AsyncIterator[bytes],
        stream: JsonStream,
    ) -> AsyncGenerator[bytes, None]:
        topic = request.path["topic_name"]
        pending: asyncio.Queue[_Sent | None] = asyncio.Queue(PENDING_MAX)

        async with self._backend.v3(request) as call:

            async def read() -> None:
                try:
                    for each in first:
                        await pending.put(await self._send(call, topic, each))
                    async for piece in pieces:
                        for each in _fed(stream, piece):
                            await pending.put(await self._send(call, topic, each))
                    _check_end(stream)
                except HttpError as error:
                    await pending.put(_Sent(None, error=error))
                except ClientDisconnected:
                    pass
                await pending.put(None)

            reading = asyncio.create_task(read())
            try:
                while (sent := await pending.get()) is not None:
                    yield dump_json(await _answered(call, topic, sent)) + b"\r\n"
            finally:
                reading.cancel()

    # A batch.

    async def _batch(self, request: Request) -> Answer:
        data = await request.body()
        if not data.strip():
            raise constraint("Request body is empty. Data is required.", 42208)
        entries = bodies.items(bodies.mapping(load_json(data)), "entries") or []
        names = [_entry_id(each) for each in entries]
        if len(set(names)) < len(names):
            raise constraint("Batch entry IDs are not distinct.", 42208)
        if not entries:
            raise constraint("Empty batch.", 42208)
        if len(entries) > self._backend.config["produce.batch.maximum.entries"]:
            raise constraint("Too many entries in batch.", 42208)
        topic = request.path["topic_name"]
        successes, failures = [], []
        async with self._backend.v3(request) as call:
            sent = [await self._sent(call, topic, each) for each in entries]
            for name, each in zip(names, sent, strict=True):
                answer = await _answered(call, topic, each)
                if answer["error_code"] == 200:
                    del answer["error_code"]
                    successes.append({"id": name, **answer})
                else:
                    failures.append({"id": name, **answer})
        return Answer(status=207, body={"successes": successes, "failures": failures})

    # Sending.

    async def _send(self, call: V3Call, topic: str, data: bytes) -> _Sent:
        try:
            body = load_json(data)
        except HttpError as error:
            return _Sent(None, error=error)
        return await self._sent(call, topic, body)

    async def _sent(self, call: V3Call, topic: str, body: Any) -> _Sent:
        try:
            record = read_produce_request(bodies.mapping(body))
            key = value = None
            key_schema = value_schema = None
            if record.key is not None:
                key, key_schema = await self._backend.encode(topic, *record.key, is_key=True)
            if record.value is not None:
                value, value_schema = await self._backend.encode(topic, *record.value, is_key=False)
            producer = call.clients.producer(topic)
            if record.partition is not None:
                await check_partitions(producer, topic, {record.partition})
            future = await producer.send(
                topic, value, key, record.partition, record.timestamp, record.headers or None
            )
        except HttpError as error:
            return _Sent(None, error=error)
        except KafkaError as error:
            return _Sent(None, error=_refused(error))
        return _Sent(future, key_schema, value_schema)


def _fed(stream: JsonStream, data: bytes) -> list[bytes]:
    try:
        return stream.feed(data)
    except InvalidStream as error:
        raise bad_json(str(error)) from None


def _check_end(stream: JsonStream) -> None:
    if not stream.is_complete:
        raise bad_json("it ends inside a record")


async def _settled(sent: _Sent) -> None:
    if sent.future is not None and not sent.future.done():
        with suppress(KafkaError):
            await sent.future


async def _answered(call: V3Call, topic: str, sent: _Sent) -> dict[str, Any]:
    await _settled(sent)
    return _stored(call, topic, sent)


def _stored(call: V3Call, topic: str, sent: _Sent) -> dict[str, Any]:
    """The answer for a record that is done."""
    if sent.future is None:
        return (sent.error or HttpError(500)).body
    error = sent.future.exception(0)
    if error is not None:
        return _refused(error).body
    metadata = sent.future.metadata()
    answer: dict[str, Any] = {
        "error_code": 200,
        "cluster_id": call.resources.cluster_id,
        "topic_name": topic,
        "partition_id": metadata.partition,
        "offset": metadata.offset,
        "timestamp": format_instant(metadata.timestamp),
    }
    if sent.key is not None:
        answer["key"] = _data(sent.key, metadata.serialized_key_size)
    if sent.value is not None:
        answer["value"] = _data(sent.value, metadata.serialized_value_size)
    return answer


def _data(schema: EncodedSchema, size: int) -> dict[str, Any]:
    found: dict[str, Any] = {"type": schema.format, "size": max(size, 0)}
    if schema.schema_id is not None:
        found["subject"] = schema.subject
        found["schema_id"] = schema.schema_id
        found["schema_version"] = schema.schema_version
    return found


def _refused(error: KafkaError) -> HttpError:
    return rest_error(error) or HttpError(500)


def _entry_id(entry: Mapping[str, Any]) -> str:
    name = entry.get("id")
    if not isinstance(name, str) or not 1 <= len(name) <= ID_LENGTH_MAX:
        raise constraint("Batch entry identifier is not a valid string.", 42208)
    return name
