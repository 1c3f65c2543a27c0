"""confluent-kafka, that is librdkafka."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from support.clients.base import Row

SECONDS_MAX = 30


class ConfluentClient:
    codecs: Sequence[str] = ("none", "gzip", "snappy", "lz4", "zstd")

    def __init__(self, bootstrap: str) -> None:
        self._config = {"bootstrap.servers": bootstrap}
        self._admin = AdminClient(self._config)

    def create_topic(self, topic: str, config: dict[str, str]) -> None:
        self._admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result(SECONDS_MAX)

    def topics(self) -> set[str]:
        return set(self._admin.list_topics(timeout=SECONDS_MAX).topics)

    def produce(self, topic: str, codec: str, rows: Sequence[Row]) -> None:
        failures: list[object] = []
        producer = Producer(self._config | {"compression.type": codec, "linger.ms": 50})
        for row in rows:
            producer.produce(
                topic, row.value, row.key, 0, timestamp=row.timestamp, headers=list(row.headers),
                on_delivery=lambda error, _: failures.append(error) if error else None,
            )  # fmt: skip
        assert producer.flush(SECONDS_MAX) == 0
        assert failures == []

    def _consumer(self) -> Consumer:
        return Consumer(self._config | {"group.id": "unused", "enable.auto.commit": False})

    def read(self, topic: str, *, offset: int, count: int) -> list[Row]:
        consumer = self._consumer()
        consumer.assign([TopicPartition(topic, 0, offset)])
        rows: list[Row] = []
        while len(rows) < count:
            message = consumer.poll(SECONDS_MAX)
            assert message is not None, f"{len(rows)} of {count} records came"
            assert message.error() is None, message.error()
            headers = tuple(message.headers() or ())
            rows.append(Row(message.key(), message.value(), message.timestamp()[1], headers,
                            message.offset()))  # fmt: skip
        consumer.close()
        return rows

    def offset_at(self, topic: str, timestamp: int) -> int:
        consumer = self._consumer()
        [found] = consumer.offsets_for_times([TopicPartition(topic, 0, timestamp)], SECONDS_MAX)
        consumer.close()
        return int(found.offset)

    def beginning(self, topic: str) -> int:
        consumer = self._consumer()
        low, _ = consumer.get_watermark_offsets(TopicPartition(topic, 0), SECONDS_MAX)
        consumer.close()
        return int(low)

    def alter_config(self, topic: str, key: str, value: str) -> None:
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        self._admin.incremental_alter_configs([resource])[resource].result(SECONDS_MAX)

    def config(self, topic: str, key: str) -> str:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        entries = self._admin.describe_configs([resource])[resource].result(SECONDS_MAX)
        return str(entries[key].value)

    def delete_records(self, topic: str, before: int) -> None:
        partition = TopicPartition(topic, 0, before)
        self._admin.delete_records([partition])[partition].result(SECONDS_MAX)

    def delete_topic(self, topic: str) -> None:
        self._admin.delete_topics([topic])[topic].result(SECONDS_MAX)

    def close(self) -> None:
        pass
