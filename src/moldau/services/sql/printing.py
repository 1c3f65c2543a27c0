"""PRINT: the records of a topic as texts, as they arrive."""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import AsyncGenerator
from typing import Any, Final

from moldau.client import Consumer
from moldau.client.consumer_record import ConsumerRecord
from moldau.client.errors import KafkaError, SerializationError
from moldau.client.topics import TopicPartition
from moldau.data.errors import DataError
from moldau.serde.errors import RegistryError
from moldau.serde.json_forms import JsonFormDeserializer
from moldau.serde.registry_client import SchemaRegistryClient
from moldau.services.sql.core import PreparedQuery, SqlCore
from moldau.services.sql.machine.errors import BAD_STATEMENT, KsqlHttpError
from moldau.services.sql.machine.record_formats import FormatGuess, Printer
from moldau.sql.syntax.statements import PrintTopic

__all__ = ["TopicPrinter"]

_POLL_S: Final = 0.5
#: How a registry's types are named here.
_FORMATS: Final = {"AVRO": "AVRO", "PROTOBUF": "PROTOBUF", "JSON": "JSON_SR"}


class _Schemas:
    """Bytes that name a schema, as JSON."""

    def __init__(self, registry: SchemaRegistryClient | None, topic: str, *, is_key: bool) -> None:
        self._registry = registry
        self._topic = topic
        self._is_key = is_key
        self._readers: dict[str, JsonFormDeserializer] = {}

    def __call__(self, data: bytes) -> tuple[str, str] | None:
        if self._registry is None:
            return None
        try:
            kind = self._registry.schema_by_id(int.from_bytes(data[1:5])).schema.schema_type
            if kind not in self._readers:
                self._readers[kind] = JsonFormDeserializer(
                    kind, registry=self._registry, is_key=self._is_key
                )
            value: Any = self._readers[kind].deserialize(self._topic, data)
            return _FORMATS.get(kind, kind), json.dumps(value, ensure_ascii=False)
        except (RegistryError, SerializationError, DataError, KafkaError, ValueError):
            return None


class TopicPrinter:
    """One PRINT. `open` and `lines` are called from the loop; the consumer works in threads."""

    def __init__(self, core: SqlCore, prepared: PreparedQuery, stopping: asyncio.Event) -> None:
        if not isinstance(prepared.query, PrintTopic):
            raise KsqlHttpError(400, "not PRINT", error_code=BAD_STATEMENT, statement=prepared.text)
        self._statement = prepared.query
        self._core = core
        self._prepared = prepared
        self._stopping = stopping
        self._consumer: Consumer[bytes, bytes] | None = None
        topic, registry = self._statement.topic, core.registry_client
        self._printer = Printer(
            FormatGuess(is_key=True, schemas=_Schemas(registry, topic, is_key=True)),
            FormatGuess(is_key=False, schemas=_Schemas(registry, topic, is_key=False)),
        )

    async def open(self) -> None:
        """KsqlHttpError if there is no such topic."""
        await asyncio.to_thread(self._open)

    def _open(self) -> None:
        topic = self._statement.topic
        count = self._core.topics.partitions(topic)
        if count is None:
            raise KsqlHttpError(
                400, self._missing(topic), error_code=BAD_STATEMENT, statement=self._prepared.text
            )
        settings = self._core.config.client_settings()
        properties = self._prepared.session.properties
        reset = str(properties.get("auto.offset.reset", "latest"))
        if self._statement.from_beginning:
            reset = "earliest"
        consumer = Consumer(settings, auto_offset_reset=reset, enable_auto_commit=False)
        partitions = [TopicPartition(topic, index) for index in range(count)]
        consumer.assign(partitions)
        for each in partitions:
            # Now: what is written after the answer has begun is shown.
            consumer.position(each)
        self._consumer = consumer

    def _missing(self, topic: str) -> str:
        known = list(self._core.topics.counts())
        similar = [each for each in known if each.lower() == topic.lower()]
        similar += [each for each in difflib.get_close_matches(topic, known) if each not in similar]
        hint = "".join(f"\n\tprint {each};" for each in similar)
        return (
            f"Could not find topic '{topic}', or the KSQL user does not have permissions to list "
            "the topic. Topic names are case-sensitive."
            + (f"\nDid you mean:{hint}" if similar else "")
        )

    async def lines(self) -> AsyncGenerator[str, None]:
        """Lines of the formats, and of records, each with its newline."""
        left = self._statement.limit
        every = max(1, self._statement.interval or 1)
        seen = 0
        while not self._stopping.is_set():
            for record in await asyncio.to_thread(self._poll):
                seen += 1
                if (seen - 1) % every:
                    continue
                lines = self._printer.lines(
                    key=record.key,
                    value=record.value,
                    timestamp=max(0, record.timestamp),
                    partition=record.partition,
                )
                yield "".join(f"{line}\n" for line in lines)
                if left is not None:
                    left -= 1
                    if left <= 0:
                        return

    def _poll(self) -> list[ConsumerRecord[bytes, bytes]]:
        return [] if self._consumer is None else list(self._consumer.poll(_POLL_S))

    async def close(self) -> None:
        if self._consumer is not None:
            await asyncio.to_thread(self._consumer.close)
