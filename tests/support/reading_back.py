"""What is in a topic, read with librdkafka: independent of our own consumer."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from support.waiting import eventually

__all__ = ["read_messages", "read_values"]


def read_messages(
    bootstrap: str, topic: str, *, partitions: int = 1, committed_only: bool = False
) -> dict[int, list[Any]]:
    """All messages up to the end of each partition, by partition.

    A commit is answered before its markers are written, so `committed_only` waits until no
    transaction is open.
    """
    if committed_only:
        eventually(
            lambda: _is_decided(bootstrap, topic, partitions), what=f"all of {topic} is decided"
        )
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reading-back",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
            "isolation.level": "read_committed" if committed_only else "read_uncommitted",
            "log_level": 0,
        }
    )
    found: dict[int, list[Any]] = {index: [] for index in range(partitions)}
    unfinished = set(found)
    deadline = time.monotonic() + 60
    try:
        # Asking for the beginning would take librdkafka half a second.
        consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
        while unfinished:
            assert time.monotonic() < deadline, f"{topic} could not be read to its end"
            message = consumer.poll(0.5)
            if message is None:
                continue
            error = message.error()
            if error is None:
                found[message.partition()].append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                unfinished.discard(message.partition())
    finally:
        consumer.close()
    return found


def _is_decided(bootstrap: str, topic: str, partitions: int) -> bool:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    wanted = {TopicPartition(topic, index): OffsetSpec.latest() for index in range(partitions)}
    stable, ends = (
        [
            future.result().offset
            for future in admin.list_offsets(wanted, isolation_level=level).values()
        ]
        for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
    )
    return stable == ends


def read_values(
    bootstrap: str, topic: str, *, partitions: int = 1, committed_only: bool = False
) -> list[bytes | None]:
    """The values, one partition after the other."""
    found = read_messages(bootstrap, topic, partitions=partitions, committed_only=committed_only)
    return [message.value() for index in sorted(found) for message in found[index]]
