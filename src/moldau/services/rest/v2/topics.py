"""API v2: topics, partitions, brokers, and producing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moldau.client import OffsetSpec, TopicPartition
from moldau.client.admin import ConfigResource, TopicPartitionInfo
from moldau.client.errors import KafkaError, UnknownTopicOrPartitionError
from moldau.client.producer import RecordFuture
from moldau.http.machine.errors import HttpError
from moldau.http.machine.json_text import dump_json
from moldau.http.machine.routes import Route
from moldau.http.request import Answer, Request
from moldau.services.rest.backend import Backend
from moldau.services.rest.clients import ClientSet
from moldau.services.rest.machine import bodies
from moldau.services.rest.machine.errors import (
    constraint,
    message_of,
    partition_not_found,
    produce_error_code,
    too_many_records,
    topic_not_found,
)
from moldau.services.rest.machine.formats import PLAIN_FORMATS, EncodedSchema, plain_encoder
from moldau.services.rest.schema_formats import ResolvedSchema
from moldau.services.rest.sending import Outgoing, check_partitions, send_all
from moldau.services.rest.v2.media import CONSUMED, METADATA, PRODUCED, format_of

__all__ = ["TopicHandlers"]

_RECORD: Final = {
    "type": "object",
    "properties": {
        "key": {"nullable": True},
        "value": {"nullable": True},
        "partition": {"type": "integer", "format": "int32", "nullable": True},
    },
}
PRODUCE_BODY: Final = {
    "type": "object",
    "required": ["records"],
    "properties": {
        "key_schema": {"type": "string"},
        "key_schema_id": {"type": "integer"},
        "value_schema": {"type": "string"},
        "value_schema_id": {"type": "integer"},
        "records": {"type": "array", "minItems": 1, "items": _RECORD},
    },
}
PRODUCE_ANSWER: Final = {
    "type": "object",
    "properties": {
        "offsets": {"type": "array", "items": {"type": "object"}},
        "key_schema_id": {"type": "integer", "nullable": True},
        "value_schema_id": {"type": "integer", "nullable": True},
    },
}
_OFFSET: Final = b'{"partition":%d,"offset":%d,"error_code":null,"error":null}'


class TopicHandlers:
    """See the module."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def routes(self) -> list[Route]:
        def get(path: str, handler: Any, summary: str, schema: Mapping[str, Any]) -> Route:
            return Route(
                method="GET", path=path, handler=handler, summary=summary, tag="v2",
                produces=METADATA, responses={200: schema},
            )  # fmt: skip

        def post(path: str, handler: Any, summary: str) -> Route:
            return Route(
                method="POST", path=path, handler=handler, summary=summary, tag="v2",
                consumes=PRODUCED, produces=METADATA, body=PRODUCE_BODY,
                responses={200: PRODUCE_ANSWER},
            )  # fmt: skip

        topic, partition = "/topics/{topic}", "/topics/{topic}/partitions/{partition:int}"
        found = {"type": "object"}
        return [
            get("/topics", self._list, "List topics", {"type": "array"}),
            get(topic, self._show, "Show a topic", found),
            post(topic, self._produce, "Produce records to a topic"),
            get(f"{topic}/partitions", self._partitions, "List partitions", {"type": "array"}),
            get(partition, self._partition, "Show a partition", found),
            post(partition, self._produce, "Produce records to a partition"),
            get(f"{partition}/offsets", self._offsets, "First and last offset", found),
            get("/brokers", self._brokers, "List brokers", found),
            Route(
                method="POST", path="/", handler=lambda request: {}, summary="Nothing, for probes",
                tag="v2", consumes=(*CONSUMED, "*/*"), body_required=False, produces=METADATA,
                responses={200: found},
            ),
        ]  # fmt: skip

    # Metadata.

    async def _list(self, request: Request) -> Any:
        with self._backend.clients.of(request.principal) as clients:
            return sorted(await clients.admin.list_topics(list_internal=True))

    async def _show(self, request: Request) -> Any:
        name = request.path["topic"]
        with self._backend.clients.of(request.principal) as clients:
            partitions = await _described(clients, name)
            resource = ConfigResource.topic(name)
            configs = (await clients.admin.describe_configs([resource]))[resource]
            return {
                "name": name,
                "configs": {each: configs[each].value for each in sorted(configs)},
                "partitions": [_partition(each) for each in partitions],
            }

    async def _partitions(self, request: Request) -> Any:
        with self._backend.clients.of(request.principal) as clients:
            found = await _described(clients, request.path["topic"])
            return [_partition(each) for each in found]

    async def _partition(self, request: Request) -> Any:
        with self._backend.clients.of(request.principal) as clients:
            found = await _described(clients, request.path["topic"])
            for each in found:
                if each.partition == request.path["partition"]:
                    return _partition(each)
            raise partition_not_found()

    async def _offsets(self, request: Request) -> Any:
        await self._partition(request)
        place = TopicPartition(request.path["topic"], request.path["partition"])
        with self._backend.clients.of(request.principal) as clients:
            first = await clients.admin.list_offsets({place: OffsetSpec.earliest()})
            last = await clients.admin.list_offsets({place: OffsetSpec.latest()})
            return {"beginning_offset": first[place].offset, "end_offset": last[place].offset}

    async def _brokers(self, request: Request) -> Any:
        with self._backend.clients.of(request.principal) as clients:
            found = await clients.admin.describe_cluster()
            return {"brokers": sorted(each.id for each in found.nodes)}

    # Producing.

    async def _produce(self, request: Request) -> Any:
        body = bodies.mapping(await request.json())
        records = body.get("records")
        if not isinstance(records, list) or not records:
            raise constraint("records must not be empty (was [])")
        if len(records) > self._backend.config["produce.records.max"]:
            raise too_many_records(self._backend.config["produce.records.max"])
        topic, format = request.path["topic"], format_of(request.consumed_type) or "BINARY"
        default = request.path.get("partition")
        key_schema = value_schema = None
        if format in PLAIN_FORMATS:
            outgoing = _plain(format, records, default)
        else:
            outgoing, key_schema, value_schema = await self._with_schemas(
                topic, format, body, records, default
            )
        with self._backend.clients.of(request.principal) as clients:
            producer = clients.producer(topic)
            await check_partitions(producer, topic, {each[2] for each in outgoing})
            results = await send_all(producer, topic, outgoing)
        return Answer(
            body=b'{"offsets":[%s],"key_schema_id":%s,"value_schema_id":%s}'
            % (_results(results), _id(key_schema), _id(value_schema))
        )

    async def _with_schemas(
        self,
        topic: str,
        format: str,
        body: Mapping[str, Any],
        records: list[Any],
        default: int | None,
    ) -> tuple[list[Outgoing], EncodedSchema | None, EncodedSchema | None]:
        resolved: list[ResolvedSchema | None] = []
        for name in ("key", "value"):
            schema = _schema(body, name)
            resolved.append(
                await self._backend.resolve(topic, format, schema, is_key=name == "key")
                if schema
                else None
            )
        outgoing: list[Outgoing] = []
        for index, each in enumerate(records):
            record = bodies.mapping(each, f"records[{index}]")
            key, value = (
                _encoded(record, name, schema)
                for name, schema in zip(("key", "value"), resolved, strict=True)
            )
            partition = bodies.integer(record, "partition")
            if partition is None:
                partition = default
            outgoing.append((value, key, partition, None, None))
        key_schema, value_schema = (None if each is None else each.schema for each in resolved)
        return outgoing, key_schema, value_schema


def _encoded(record: Mapping[str, Any], name: str, schema: ResolvedSchema | None) -> bytes | None:
    data = record.get(name)
    if data is None:
        return None
    if schema is None:
        raise _schema_missing(name)
    return schema.encode(data)


def _plain(format: str, records: list[Any], default: int | None) -> list[Outgoing]:
    encode = plain_encoder(format)
    outgoing: list[Outgoing] = []
    for index, record in enumerate(records):
        if type(record) is not dict:
            bodies.mapping(record, f"records[{index}]")
        partition = record.get("partition")
        if partition is None:
            partition = default
        elif type(partition) is not int:
            bodies.integer(record, "partition")
        value, key = record.get("value"), record.get("key")
        outgoing.append(
            (
                None if value is None else encode(value),
                None if key is None else encode(key),
                partition,
                None,
                None,
            )
        )
    return outgoing


def _schema(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    text = bodies.text(body, f"{name}_schema")
    if text is not None:
        found["schema"] = text
    number = bodies.integer(body, f"{name}_schema_id")
    if number is not None:
        found["schema_id"] = number
        # Both may be given: the id says which of the registered ones the text is.
        found.pop("schema", None)
    return found


def _schema_missing(name: str) -> HttpError:
    code = 42201 if name == "key" else 42202
    return constraint(f"Request includes {name}s but does not include {name} schema", code)


def _results(results: list[RecordFuture | KafkaError]) -> bytes:
    """Records of one batch have consecutive offsets, so only its first one is asked for its own."""
    lines = []
    batch: object = None
    partition = base = 0
    for each in results:
        if isinstance(each, KafkaError):
            failed = {
                "partition": None,
                "offset": None,
                "error_code": produce_error_code(each),
                "error": message_of(each),
            }
            lines.append(dump_json(failed))
            continue
        found, index = each.where()
        if found is not batch:
            metadata = each.metadata()
            batch, partition, base = found, metadata.partition, metadata.offset - index
        lines.append(_OFFSET % (partition, base + index))
    return b",".join(lines)


def _id(schema: EncodedSchema | None) -> bytes:
    return b"null" if schema is None or schema.schema_id is None else b"%d" % schema.schema_id


async def _described(clients: ClientSet, topic: str) -> tuple[TopicPartitionInfo, ...]:
    try:
        return (await clients.admin.describe_topics([topic]))[topic].partitions
    except UnknownTopicOrPartitionError:
        raise topic_not_found() from None


def _partition(found: TopicPartitionInfo) -> dict[str, Any]:
    leader = found.leader.id if found.leader is not None else -1
    in_sync = {each.id for each in found.isr}
    return {
        "partition": found.partition,
        "leader": leader,
        "replicas": [
            {"broker": each.id, "leader": each.id == leader, "in_sync": each.id in in_sync}
            for each in found.replicas
        ],
    }
