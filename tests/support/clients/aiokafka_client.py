"""aiokafka, the asyncio client; a private loop makes its calls blocking."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from support.clients.base import Row

T = TypeVar("T")


class AiokafkaClient:
    codecs: Sequence[str] = ("none", "gzip", "snappy", "lz4", "zstd")

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._loop = asyncio.new_event_loop()
        self._admin = self._run(self._start_admin())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(asyncio.wait_for(work, 60))

    async def _start_admin(self) -> AIOKafkaAdminClient:
        admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
        await admin.start()
        return admin

    def create_topic(self, topic: str, config: dict[str, str]) -> None:
        new = NewTopic(topic, 1, 1, topic_configs=config)
        answer = self._run(self._admin.create_topics([new]))
        assert [error[1] for error in answer.topic_errors] == [0], answer

    def topics(self) -> set[str]:
        return set(self._run(self._admin.list_topics()))

    def produce(self, topic: str, codec: str, rows: Sequence[Row]) -> None:
        async def work() -> None:
            producer = AIOKafkaProducer(
                bootstrap_servers=self._bootstrap, linger_ms=50, acks="all",
                compression_type=None if codec == "none" else codec,
            )  # fmt: skip
            await producer.start()
            sent = [
                await producer.send(topic, row.value, row.key, 0, row.timestamp, list(row.headers))
                for row in rows
            ]
            await asyncio.gather(*sent)
            await producer.stop()

        self._run(work())

    async def _consumer(self, topic: str) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(bootstrap_servers=self._bootstrap)
        await consumer.start()
        consumer.assign([TopicPartition(topic, 0)])
        return consumer

    def read(self, topic: str, *, offset: int, count: int) -> list[Row]:
        async def work() -> list[Row]:
            consumer = await self._consumer(topic)
            consumer.seek(TopicPartition(topic, 0), offset)
            records = [await consumer.getone() for _ in range(count)]
            await consumer.stop()
            return [
                Row(record.key, record.value, record.timestamp, tuple(record.headers),
                    record.offset)
                for record in records
            ]  # fmt: skip

        return self._run(work())

    def offset_at(self, topic: str, timestamp: int) -> int:
        async def work() -> int:
            consumer, partition = await self._consumer(topic), TopicPartition(topic, 0)
            found = await consumer.offsets_for_times({partition: timestamp})
            await consumer.stop()
            return int(found[partition].offset)

        return self._run(work())

    def beginning(self, topic: str) -> int:
        async def work() -> int:
            consumer, partition = await self._consumer(topic), TopicPartition(topic, 0)
            low = await consumer.beginning_offsets([partition])
            await consumer.stop()
            return int(low[partition])

        return self._run(work())

    def alter_config(self, topic: str, key: str, value: str) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs={key: value})
        for answer in self._run(self._admin.alter_configs([resource])):
            assert [result[0] for result in answer.resources] == [0], answer

    def config(self, topic: str, key: str) -> str:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        [answer] = self._run(self._admin.describe_configs([resource]))
        entries = answer.resources[0][4]
        return str(next(entry[1] for entry in entries if entry[0] == key))

    def delete_records(self, topic: str, before: int) -> None:
        wanted = {TopicPartition(topic, 0): RecordsToDelete(before_offset=before)}
        self._run(self._admin.delete_records(wanted))

    def delete_topic(self, topic: str) -> None:
        self._run(self._admin.delete_topics([topic]))

    def close(self) -> None:
        self._run(self._admin.close())
        self._loop.close()
