"""API v3: reading records without a consumer instance, by long poll or as server-sent events.

Nothing is kept between requests: an answer has a cursor in its `next` link, an event in its id, and
any proxy continues there. So it works behind a load balancer, and an EventSource resumes by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from moldau.client import ConsumerRecord, OffsetSpec, TopicPartition
from moldau.client.admin import AsyncAdmin
from moldau.http.machine.errors import HttpError
from moldau.http.machine.json_text import dump_json
from moldau.http.machine.routes import Parameter, Route
from moldau.http.request import Answer, Request
from moldau.services.rest.backend import Backend, V3Call
from moldau.services.rest.clients import Consumer
from moldau.services.rest.machine.cursors import format_cursor, parse_cursor
from moldau.services.rest.machine.errors import partition_not_found
from moldau.services.rest.machine.formats import PLAIN_FORMATS, SCHEMA_FORMATS
from moldau.services.rest.machine.instants import format_instant, parse_instant
from moldau.services.rest.v3.routing import CLUSTER, resource

__all__ = ["ConsumeHandlers"]

EVENTS: Final = "text/event-stream"
HEARTBEAT_S: Final = 15.0
STEP_S: Final = 0.5
FETCH_S: Final = 2.0
RECORDS_DEFAULT: Final = 500
BYTES_DEFAULT: Final = 8 * 1024 * 1024
_FORMATS: Final = (*PLAIN_FORMATS, *SCHEMA_FORMATS)
_NUMBER: Final = {"type": "integer", "format": "int32", "minimum": 0}

Record = ConsumerRecord[bytes | None, bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Query:
    start: str | int
    timestamp: int | None
    cursor: Mapping[int, int] | None
    records_max: int
    bytes_max: int
    timeout_ms: int
    key_format: str
    value_format: str
    isolation_level: str


class ConsumeHandlers:
    """See the module."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def routes(self) -> list[Route]:
        topic = f"{CLUSTER}/topics/{{topic_name}}/partitions"
        formats = {"type": "string", "enum": list(_FORMATS)}
        isolation = {"type": "string", "enum": ["read_uncommitted", "read_committed"]}
        parameters = (
            Parameter(name="offset", description="A number, earliest (default) or latest."),
            Parameter(name="timestamp", description="From this time: ISO 8601 or milliseconds."),
            Parameter(name="cursor", description="As the last answer's next link has it."),
            Parameter(name="max_records", schema=_NUMBER, description="At most so many."),
            Parameter(name="max_bytes", schema=_NUMBER, description="About so many bytes."),
            Parameter(name="timeout_ms", schema=_NUMBER, description="Wait so long for records."),
            Parameter(name="key_format", schema=formats, description="How keys are shown."),
            Parameter(name="value_format", schema=formats, description="How values are shown."),
            Parameter(name="isolation_level", schema=isolation),
        )
        return [
            Route(
                method="GET", path=f"{topic}/{part}/records", handler=self._read, tag="v3 records",
                summary=f"Read records of {what}", parameters=parameters, timeout_ms=0,
                description="With Accept: text/event-stream records follow as server-sent events.",
                produces=("application/json", f"{EVENTS}; qs=0.5"),
                responses={200: resource("RecordList")},
            )
            for part, what in (("-", "a topic"), ("{partition_id:int}", "a partition"))
        ]  # fmt: skip

    async def _read(self, request: Request) -> Answer:
        query = self._query(request)
        if request.media_type == EVENTS:
            # Errors before the first event have a status.
            async with self._backend.v3(request) as call:
                starts = await _starts(call.clients.admin, request, query)
            return Answer(
                chunks=self._events(request, query, starts.offsets),
                headers={"Cache-Control": "no-cache"},
            )
        async with self._backend.v3(request) as call:
            starts = await _starts(call.clients.admin, request, query)
            topic = request.path["topic_name"]
            async with call.clients.consumer(query.isolation_level) as consumer:
                _place(consumer, topic, starts.offsets)
                records = await self._poll(request, consumer, query, waits=starts.has_records)
            positions = _moved(starts.offsets, records)
            data = [await self._shown(call, query, each) for each in records]
            url = call.resources.url(
                "topics", topic, "partitions", request.path.get("partition_id", "-"), "records"
            )
            return Answer(body=_listed(request, url, data, positions))

    async def _poll(
        self, request: Request, consumer: Consumer, query: _Query, *, waits: bool
    ) -> list[Record]:
        """What there is, as soon as there is any; `waits`: there is, so a fetch is waited for."""
        loop = asyncio.get_running_loop()
        until = loop.time() + max(query.timeout_ms / 1000, FETCH_S if waits else 0.0)
        while True:
            left = until - loop.time()
            records = list(await consumer.poll(max(0.0, min(left, STEP_S))))
            if records or left <= 0 or request.stopping.is_set():
                return _cut(records, query)

    async def _events(
        self, request: Request, query: _Query, starts: dict[int, int]
    ) -> AsyncGenerator[bytes, None]:
        """Until the client goes, the service stops, or it has lasted long enough."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._backend.config["streaming.connection.max.duration.ms"] / 1000
        gone = asyncio.ensure_future(request.disconnected())
        topic, positions = request.path["topic_name"], dict(starts)
        try:
            async with (
                self._backend.v3(request) as call,
                call.clients.consumer(query.isolation_level) as consumer,
            ):
                _place(consumer, topic, starts)
                quiet_since = loop.time()
                yield b"retry: 1000\nid: %s\n\n" % format_cursor(positions).encode()
                while not gone.done() and not request.stopping.is_set() and loop.time() < until:
                    records = list(await consumer.poll(STEP_S))
                    if records:
                        yield await self._framed(call, query, records, positions)
                    elif loop.time() - quiet_since < HEARTBEAT_S:
                        continue
                    else:
                        yield b": waiting\n\n"
                    quiet_since = loop.time()
        finally:
            gone.cancel()

    async def _framed(
        self, call: V3Call, query: _Query, records: list[Record], positions: dict[int, int]
    ) -> bytes:
        frames = []
        for each in records:
            positions[each.partition] = each.offset + 1
            data = dump_json(await self._shown(call, query, each))
            name = format_cursor(positions).encode()
            frames.append(b"id: %s\nevent: record\ndata: %s\n\n" % (name, data))
        return b"".join(frames)

    async def _shown(self, call: V3Call, query: _Query, record: Record) -> dict[str, Any]:
        return {
            "kind": "KafkaRecord",
            "cluster_id": call.resources.cluster_id,
            "topic_name": record.topic,
            "partition_id": record.partition,
            "offset": record.offset,
            "timestamp": format_instant(record.timestamp),
            "headers": [
                {"name": name, "value": await self._plain(value)} for name, value in record.headers
            ],
            "key": await self._data(record.topic, query.key_format, record.key, is_key=True),
            "value": await self._data(record.topic, query.value_format, record.value, is_key=False),
        }

    async def _plain(self, value: bytes | None) -> Any:
        return await self._backend.decode("", "BINARY", value, is_key=False)

    async def _data(
        self, topic: str, format: str, data: bytes | None, *, is_key: bool
    ) -> dict[str, Any] | None:
        """What does not have the format is shown as binary: one record does not hide the rest."""
        if data is None:
            return None
        try:
            return {
                "type": format,
                "data": await self._backend.decode(topic, format, data, is_key=is_key),
            }
        except HttpError as error:
            if error.error_code != 40801:
                raise
            return {"type": "BINARY", "data": await self._plain(data)}

    def _query(self, request: Request) -> _Query:
        """Raises HttpError."""
        config = self._backend.config
        start = request.text("offset") or "earliest"
        timestamp, cursor = request.text("timestamp"), request.text("cursor")
        resumed = request.headers.get("last-event-id")
        moment = parse_instant(timestamp) if timestamp else None
        if timestamp and (moment is None or moment < 0):
            raise HttpError(400, f"timestamp {timestamp} is not an ISO 8601 time or milliseconds")
        if start not in ("earliest", "latest") and not (
            start.isascii() and start.isdecimal() and len(start) <= 18
        ):
            raise HttpError(400, f"offset {start} is neither a number nor earliest nor latest")
        positions = resumed or cursor
        return _Query(
            start=int(start) if start.isdecimal() else start,
            timestamp=moment,
            cursor=parse_cursor(positions) if positions else None,
            records_max=_bounded(
                request, "max_records", RECORDS_DEFAULT, config["consume.records.max"]
            ),
            bytes_max=_bounded(
                request, "max_bytes", BYTES_DEFAULT, config["consumer.request.max.bytes"]
            ),
            timeout_ms=_bounded(request, "timeout_ms", 0, config["consume.timeout.ms.max"]),
            key_format=_format(request, "key_format"),
            value_format=_format(request, "value_format"),
            isolation_level=_isolation(request),
        )


def _bounded(request: Request, name: str, default: int, most: int) -> int:
    value = request.number(name, default)
    if value is None or value < 0:
        raise HttpError(400, f"{name} must not be negative")
    return min(value, most)


def _format(request: Request, name: str) -> str:
    found = (request.text(name) or "BINARY").upper()
    if found not in _FORMATS:
        raise HttpError(400, f"{name} {found[:50]} is none of {', '.join(_FORMATS)}")
    return found


def _isolation(request: Request) -> str:
    found = request.text("isolation_level") or "read_uncommitted"
    if found not in ("read_uncommitted", "read_committed"):
        raise HttpError(400, "isolation_level is read_uncommitted or read_committed")
    return found


class _Starts(NamedTuple):
    """The offset to begin at, by partition, and whether there are records to read."""

    offsets: dict[int, int]
    has_records: bool


async def _starts(admin: AsyncAdmin, request: Request, query: _Query) -> _Starts:
    """Raises HttpError for an offset beyond the end."""
    topic = request.path["topic_name"]
    known = (await admin.describe_topics([topic]))[topic].partitions
    numbers = [each.partition for each in known]
    wanted = request.path.get("partition_id")
    if wanted is not None:
        if wanted not in numbers:
            raise partition_not_found()
        numbers = [wanted]
    places = [TopicPartition(topic, each) for each in numbers]
    firsts = await admin.list_offsets(dict.fromkeys(places, OffsetSpec.earliest()))
    ends = await admin.list_offsets(dict.fromkeys(places, OffsetSpec.latest()))
    by_time = {}
    if query.timestamp is not None and query.cursor is None:
        spec = OffsetSpec.for_timestamp(query.timestamp)
        by_time = dict(await admin.list_offsets(dict.fromkeys(places, spec)))
    found, has_records = {}, False
    for place in places:
        first, end = firsts[place].offset, ends[place].offset
        start: int | str = query.start
        if query.cursor is not None:
            start = query.cursor.get(place.partition, first)
        elif place in by_time:
            start = by_time[place].offset if by_time[place].offset >= 0 else end
        if start == "latest":
            start = end
        # Records that have expired since are skipped.
        start = max(first, start) if isinstance(start, int) else first
        if start > end:
            raise HttpError(
                400,
                f"offset {start} of partition {place.partition} is beyond its end, {end}",
                error_code=40002,
            )
        found[place.partition] = start
        has_records = has_records or start < end
    return _Starts(found, has_records)


def _place(consumer: Consumer, topic: str, starts: Mapping[int, int]) -> None:
    places = {TopicPartition(topic, partition): offset for partition, offset in starts.items()}
    consumer.assign(places)
    for place, offset in places.items():
        consumer.seek(place, offset)


def _cut(records: list[Record], query: _Query) -> list[Record]:
    found: list[Record] = []
    size = 0
    for each in records[: query.records_max]:
        size += max(each.serialized_key_size, 0) + max(each.serialized_value_size, 0)
        if found and size > query.bytes_max:
            break
        found.append(each)
    return found


def _moved(starts: Mapping[int, int], records: Iterable[Record]) -> dict[int, int]:
    positions = dict(starts)
    for each in records:
        positions[each.partition] = each.offset + 1
    return positions


def _listed(
    request: Request, url: str, data: list[dict[str, Any]], positions: Mapping[int, int]
) -> dict[str, Any]:
    kept = {
        name: values[0]
        for name, values in request.query.items()
        if name not in ("cursor", "offset", "timestamp")
    }
    query = urlencode({**kept, "cursor": format_cursor(positions)}, safe=":,")
    return {
        "kind": "KafkaRecordList",
        "metadata": {"self": url, "next": f"{url}?{query}"},
        "data": data,
    }
