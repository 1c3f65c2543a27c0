"""API v2: consumer instances."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

from moldau.client import OffsetAndMetadata, TopicPartition
from moldau.http.machine.json_text import load_json
from moldau.http.machine.routes import Parameter, Route
from moldau.http.request import Answer, Request
from moldau.services.rest.backend import Backend
from moldau.services.rest.instances import InstanceOptions
from moldau.services.rest.machine import bodies
from moldau.services.rest.machine.errors import (
    constraint,
    format_mismatch,
    invalid_consumer_config,
    partition_not_found,
)
from moldau.services.rest.machine.formats import SCHEMA_FORMATS, no_schemas
from moldau.services.rest.machine.instants import parse_instant
from moldau.services.rest.v2.media import CONSUMED, METADATA, RECORDS, V2, format_of

__all__ = ["ConsumerHandlers"]

_FORMATS: Final = ("BINARY", "JSON", *SCHEMA_FORMATS)
_INT_MAX: Final = 2**31 - 1
_PLACE: Final = {
    "type": "object",
    "required": ["topic", "partition"],
    "properties": {
        "topic": {"type": "string"},
        "partition": {"type": "integer", "format": "int32"},
    },
}
_OFFSET: Final = {
    "type": "object",
    "required": ["topic", "partition", "offset"],
    "properties": {
        "topic": {"type": "string"},
        "partition": {"type": "integer", "format": "int32"},
        "offset": {"type": "integer", "format": "int64"},
        "metadata": {"type": "string", "nullable": True},
    },
}
_PARTITIONS: Final = {
    "type": "object",
    "required": ["partitions"],
    "properties": {"partitions": {"type": "array", "items": _PLACE}},
}
_OFFSETS: Final = {
    "type": "object",
    "properties": {"offsets": {"type": "array", "items": _OFFSET}},
}
_NEW: Final = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "format": {"type": "string", "enum": [each.lower() for each in _FORMATS]},
        "auto.offset.reset": {"type": "string", "enum": ["earliest", "latest"]},
        "auto.commit.enable": {"type": "string", "enum": ["true", "false"]},
        "fetch.min.bytes": {"type": "integer", "minimum": -1, "maximum": 10_000_000},
        "consumer.request.timeout.ms": {"type": "integer", "minimum": 0},
    },
}
_SUBSCRIPTION: Final = {
    "type": "object",
    "properties": {
        "topics": {"type": "array", "items": {"type": "string"}},
        "topic_pattern": {"type": "string"},
    },
}
_DONE: Final = Answer(status=204)


class ConsumerHandlers:
    """See the module."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def routes(self) -> list[Route]:
        one = "/consumers/{group}/instances/{instance}"
        none: dict[int, Mapping[str, Any] | None] = {204: None}
        found: dict[int, Mapping[str, Any] | None] = {200: {"type": "object"}}

        def route(
            method: str,
            path: str,
            handler: Any,
            summary: str,
            responses: dict[int, Mapping[str, Any] | None],
            body: Mapping[str, Any] | None = None,
            *,
            optional: bool = False,
        ) -> Route:
            return Route(
                method=method, path=path, handler=handler, summary=summary, tag="v2 consumers",
                produces=METADATA, responses=responses, body=body, body_required=not optional,
                consumes=CONSUMED if body is not None else (),
            )  # fmt: skip

        return [
            route("POST", "/consumers/{group}", self._create, "Make an instance", found, _NEW,
                  optional=True),
            route("DELETE", one, self._delete, "Delete an instance", none),
            route("POST", f"{one}/subscription", self._subscribe, "Subscribe", none, _SUBSCRIPTION),
            route("GET", f"{one}/subscription", self._subscription, "Show topics", found),
            route("DELETE", f"{one}/subscription", self._unsubscribe, "Unsubscribe", none),
            route("POST", f"{one}/assignments", self._assign, "Assign partitions", none,
                  _PARTITIONS),
            route("GET", f"{one}/assignments", self._assignments, "Show partitions", found),
            route("POST", f"{one}/positions", self._seek, "Move to offsets", none, _OFFSETS),
            route("POST", f"{one}/positions/beginning", self._seek_to_beginning,
                  "Move to the beginning", none, _PARTITIONS),
            route("POST", f"{one}/positions/end", self._seek_to_end, "Move to the end", none,
                  _PARTITIONS),
            route("POST", f"{one}/offsets", self._commit,
                  "Commit offsets, or without a body what was returned", {200: {"type": "array"}},
                  _OFFSETS, optional=True),
            route("GET", f"{one}/offsets", self._committed,
                  "Show committed offsets of the partitions in the body", found),
            Route(
                method="GET", path=f"{one}/records", handler=self._records, tag="v2 consumers",
                summary="Read records", produces=RECORDS, responses={200: {"type": "array"}},
                parameters=(
                    Parameter(name="timeout", description="Wait at most so many ms.",
                              schema={"type": "integer", "format": "int64"}),
                    Parameter(name="max_bytes", description="Return about so many bytes.",
                              schema={"type": "integer", "format": "int64"}),
                ),
            ),
        ]  # fmt: skip

    # The life of an instance.

    async def _create(self, request: Request) -> Any:
        data = await request.body()
        options = _options(bodies.mapping(load_json(data))) if data.strip() else InstanceOptions()
        if options.format in SCHEMA_FORMATS and self._backend.schemas is None:
            raise no_schemas(options.format)
        group = request.path["group"]
        made = self._backend.instances.create(group, options, request.principal)
        path = f"/consumers/{quote(group, safe='')}/instances/{quote(made.name, safe='')}"
        return {"instance_id": made.name, "base_uri": self._backend.base_url(request) + path}

    async def _delete(self, request: Request) -> Answer:
        await self._backend.instances.delete(
            request.path["group"], request.path["instance"], request.principal
        )
        return _DONE

    # What it reads.

    async def _subscribe(self, request: Request) -> Answer:
        body = bodies.mapping(await request.json())
        topics, pattern = bodies.texts(body, "topics"), bodies.text(body, "topic_pattern")
        async with self._use(request) as instance:
            if topics:
                instance.consumer.subscribe(topics)
            elif topics is not None:
                await instance.consumer.unsubscribe()
            elif pattern is not None:
                try:
                    instance.consumer.subscribe(re.compile(pattern))
                except (re.error, RecursionError, OverflowError) as error:
                    raise invalid_consumer_config(f"topic_pattern: {error}") from None
            instance.forget()
        return _DONE

    async def _subscription(self, request: Request) -> Any:
        async with self._use(request) as instance:
            return {"topics": sorted(instance.consumer.subscription())}

    async def _unsubscribe(self, request: Request) -> Answer:
        async with self._use(request) as instance:
            await instance.consumer.unsubscribe()
            instance.forget()
        return _DONE

    async def _assign(self, request: Request) -> Answer:
        places = _places(bodies.mapping(await request.json()))
        async with self._use(request) as instance:
            if places:
                instance.consumer.assign(places)
            else:
                await instance.consumer.unsubscribe()
            instance.forget()
        return _DONE

    async def _assignments(self, request: Request) -> Any:
        async with self._use(request) as instance:
            assigned = sorted(instance.consumer.assignment())
            return {
                "partitions": [{"topic": topic, "partition": number} for topic, number in assigned]
            }

    # Where it reads.

    async def _seek(self, request: Request) -> Answer:
        body = bodies.mapping(await request.json())
        offsets = _offsets(body)
        times = _times(body)
        async with self._use(request) as instance:
            if times:
                found = await instance.consumer.offsets_for_times(times)
                for place, at in found.items():
                    if at is None:
                        instance.consumer.seek_to_end([place])
                    else:
                        instance.consumer.seek(place, at.offset)
            for place, (offset, metadata) in offsets.items():
                instance.consumer.seek(place, OffsetAndMetadata(offset, metadata))
            instance.forget([*offsets, *times])
        return _DONE

    async def _seek_to_beginning(self, request: Request) -> Answer:
        places = _places(bodies.mapping(await request.json()))
        async with self._use(request) as instance:
            instance.consumer.seek_to_beginning(places)
            instance.forget(places)
        return _DONE

    async def _seek_to_end(self, request: Request) -> Answer:
        places = _places(bodies.mapping(await request.json()))
        async with self._use(request) as instance:
            instance.consumer.seek_to_end(places)
            instance.forget(places)
        return _DONE

    async def _commit(self, request: Request) -> Any:
        data = await request.body()
        async with self._use(request) as instance:
            if not data.strip():
                await instance.commit_returned()
                return []
            # The offset is that of the last record that was processed, as in the original.
            offsets = {
                place: OffsetAndMetadata(offset + 1, metadata)
                for place, (offset, metadata) in _offsets(bodies.mapping(load_json(data))).items()
            }
            if offsets:
                await instance.consumer.commit_sync(offsets)
            return []

    async def _committed(self, request: Request) -> Any:
        data = await request.body()
        if not data.strip():
            raise partition_not_found()
        places = _places(bodies.mapping(load_json(data)))
        async with self._use(request) as instance:
            found = await instance.consumer.committed(places) if places else {}
            return {
                "offsets": [
                    {
                        "topic": place.topic,
                        "partition": place.partition,
                        "offset": at.offset,
                        "metadata": at.metadata,
                    }
                    for place, at in found.items()
                    if at is not None
                ]
            }

    # Records.

    async def _records(self, request: Request) -> Answer:
        timeout_ms = request.number("timeout", -1, kind="long") or -1
        bytes_max = request.number("max_bytes", -1, kind="long") or -1
        config = self._backend.config
        async with self._use(request) as instance:
            options = instance.options
            wanted = format_of(request.media_type)
            if wanted is not None and wanted != options.format:
                raise format_mismatch()
            wait_ms = options.request_timeout_ms
            if wait_ms is None:
                wait_ms = config["consumer.request.timeout.ms"]
            bytes_min = options.fetch_min_bytes
            if bytes_min is None:
                bytes_min = config["fetch.min.bytes"]
            limit = config["consumer.request.max.bytes"]
            records = await instance.read(
                timeout_s=(wait_ms if timeout_ms <= 0 else min(wait_ms, timeout_ms)) / 1000,
                bytes_min=_INT_MAX if bytes_min < 0 else bytes_min,
                bytes_max=limit if bytes_max <= 0 else min(bytes_max, limit),
                stopping=request.stopping,
            )
            answer = [
                {
                    "topic": each.topic,
                    "key": await self._decode(each.topic, options.format, each.key, is_key=True),
                    "value": await self._decode(
                        each.topic, options.format, each.value, is_key=False
                    ),
                    "partition": each.partition,
                    "offset": each.offset,
                }
                for each in records
            ]
        named = f"application/vnd.kafka.{options.format.lower()}.v2+json"
        return Answer(body=answer, media_type=named if request.media_type == V2 else None)

    async def _decode(self, topic: str, format: str, data: bytes | None, *, is_key: bool) -> Any:
        return await self._backend.decode(topic, format, data, is_key=is_key)

    def _use(self, request: Request) -> Any:
        return self._backend.instances.use(
            request.path["group"], request.path["instance"], request.principal
        )


def _options(body: Mapping[str, Any]) -> InstanceOptions:
    format = (bodies.text(body, "format") or "binary").upper()
    if format not in _FORMATS:
        raise constraint("Invalid format type.")
    commit = body.get("auto.commit.enable")
    if isinstance(commit, bool):
        commit = str(commit).lower()
    elif commit is not None:
        commit = bodies.text(body, "auto.commit.enable")
    bytes_min = _either(body, "fetch.min.bytes", "responseMinBytes")
    if bytes_min is not None and not -1 <= bytes_min <= 10_000_000:
        raise constraint(
            "Invalid consumer configuration. It does not abide by the constraints: Invalid value "
            f"{bytes_min} for configuration fetch.min.bytes: Value must be between -1 and 10000000",
            40001,
        )
    wait_ms = _either(body, "consumer.request.timeout.ms", "requestWaitMs")
    return InstanceOptions(
        name=bodies.text(body, "id") or bodies.text(body, "name"),
        format=format,
        auto_offset_reset=bodies.text(body, "auto.offset.reset"),
        auto_commit_enable=commit,
        fetch_min_bytes=bytes_min,
        # Bounded by the limit of a request, so that an instance is never held for longer.
        request_timeout_ms=None if wait_ms is None else max(0, min(wait_ms, 50_000)),
    )


def _either(body: Mapping[str, Any], name: str, other: str) -> int | None:
    found = bodies.integer(body, name)
    return found if found is not None else bodies.integer(body, other)


def _place(body: Mapping[str, Any]) -> TopicPartition:
    bodies.required(body, "topic")
    bodies.required(body, "partition")
    number = bodies.integer(body, "partition")
    if number is None or number < 0:
        raise constraint(f"partition must be greater than or equal to 0 (was {number})")
    topic = bodies.text(body, "topic")
    if not topic:
        raise constraint("topic must not be empty (was )")
    return TopicPartition(topic, number)


def _places(body: Mapping[str, Any]) -> list[TopicPartition]:
    return [_place(each) for each in bodies.items(body, "partitions") or ()]


def _offsets(body: Mapping[str, Any]) -> dict[TopicPartition, tuple[int, str]]:
    found = {}
    for each in bodies.items(body, "offsets") or ():
        bodies.required(each, "offset")
        offset = bodies.integer(each, "offset", bits=63)
        if offset is None or not 0 <= offset < 2**63 - 1:
            raise constraint(f"offset must be greater than or equal to 0 (was {offset})")
        found[_place(each)] = (offset, bodies.text(each, "metadata") or "")
    return found


def _times(body: Mapping[str, Any]) -> dict[TopicPartition, int]:
    found = {}
    for each in _entries(body):
        moment = parse_instant(str(bodies.required(each, "timestamp")))
        if moment is None or moment < 0:
            raise constraint(f"timestamp must be an ISO 8601 time (was {each['timestamp']})")
        found[_place(each)] = moment
    return found


def _entries(body: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return bodies.items(body, "timestamps") or ()
