"""kafka-python, a client in pure Python."""

from __future__ import annotations

from collections.abc import Sequence

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic

from support.clients.base import Row


class KafkaPythonClient:
    codecs: Sequence[str] = ("none", "gzip", "snappy", "lz4", "zstd")

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap)

    def create_topic(self, topic: str, config: dict[str, str]) -> None:
        self._admin.create_topics([NewTopic(topic, 1, 1, topic_configs=config)])

    def topics(self) -> set[str]:
        return set(self._admin.list_topics())

    def produce(self, topic: str, codec: str, rows: Sequence[Row]) -> None:
        compression = None if codec == "none" else codec
        producer = KafkaProducer(
            bootstrap_servers=self._bootstrap, compression_type=compression, linger_ms=50
        )
        sent = [
            producer.send(topic, value=row.value, key=row.key, headers=list(row.headers),
                          partition=0, timestamp_ms=row.timestamp)
            for row in rows
        ]  # fmt: skip
        for future in sent:
            future.get(timeout=30)
        producer.close()

    def _consumer(self) -> KafkaConsumer:
        return KafkaConsumer(bootstrap_servers=self._bootstrap, consumer_timeout_ms=30_000)

    def read(self, topic: str, *, offset: int, count: int) -> list[Row]:
        consumer, partition = self._consumer(), TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek(partition, offset)
        rows: list[Row] = []
        for record in consumer:
            headers = tuple(record.headers)
            rows.append(Row(record.key, record.value, record.timestamp, headers, record.offset))
            if len(rows) == count:
                break
        consumer.close()
        return rows

    def offset_at(self, topic: str, timestamp: int) -> int:
        consumer, partition = self._consumer(), TopicPartition(topic, 0)
        found = consumer.offsets_for_times({partition: timestamp})[partition]
        consumer.close()
        return int(found.offset)

    def beginning(self, topic: str) -> int:
        consumer, partition = self._consumer(), TopicPartition(topic, 0)
        low = consumer.beginning_offsets([partition])[partition]
        consumer.close()
        return int(low)

    def alter_config(self, topic: str, key: str, value: str) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs={key: value})
        self._admin.alter_configs([resource])

    def config(self, topic: str, key: str) -> str:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        described = self._admin.describe_configs([resource], config_filter="all")
        return _value_in(described, key)

    def delete_records(self, topic: str, before: int) -> None:
        self._admin.delete_records({TopicPartition(topic, 0): before})

    def delete_topic(self, topic: str) -> None:
        self._admin.delete_topics([topic])

    def close(self) -> None:
        self._admin.close()


def _value_in(described: object, key: str) -> str:
    """The answer nests by resource type and name, then config key."""
    while isinstance(described, dict) and key not in described:
        described = next(iter(described.values()))
    assert isinstance(described, dict)
    entry = described[key]
    return str(entry["value"] if isinstance(entry, dict) else entry)
