"""A canary: writes a record to each partition of its topic and reads it back, as a client does.

It shows what clients see: whether a write is acknowledged and comes back, and how long that takes
end to end. Its topic has as many partitions as there are brokers, so every broker is probed.
Bounded: one probe at a time, which ends at the timeout.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from moldau.client import Admin, Consumer, NewTopic, Producer
from moldau.client.errors import KafkaError, TopicExistsError
from moldau.client.topics import TopicPartition

__all__ = ["Canary", "Probe"]

_RETENTION_MS: Final = 600_000
_REPLICATION_FACTOR_MAX: Final = 3


class Probe(NamedTuple):
    """One record written and read. `latency_ms` is None if it did not come back in time."""

    partition: int
    latency_ms: float | None
    problem: str = ""

    @property
    def good(self) -> bool:
        return self.latency_ms is not None


class Canary:
    """Made once; `probe` is called again and again, from one thread."""

    def __init__(self, config: Mapping[str, Any], topic: str, *, timeout_ms: int) -> None:
        self._topic = topic
        self._timeout_ms = timeout_ms
        self._config = dict(config)
        self._producer: Producer | None = None
        self._consumer: Consumer | None = None
        self._partitions: list[TopicPartition] = []

    def probe(self) -> list[Probe]:
        """Write to every partition and wait for what comes back."""
        try:
            self._open()
        except KafkaError as error:
            self.close()
            return [Probe(-1, None, f"{type(error).__name__}: {error}")]
        if self._producer is None or self._consumer is None:
            return []
        sent: dict[bytes, tuple[int, float]] = {}
        problems: dict[int, str] = {}
        for place in self._partitions:
            key = uuid.uuid4().bytes
            sent[key] = place.partition, time.perf_counter()
            try:
                self._producer.send(self._topic, b"", key=key, partition=place.partition)
            except KafkaError as error:
                problems[place.partition] = f"{type(error).__name__}: {error}"
        return self._collect(self._consumer, sent, problems)

    def _collect(
        self,
        consumer: Consumer,
        sent: dict[bytes, tuple[int, float]],
        problems: dict[int, str],
    ) -> list[Probe]:
        deadline = time.perf_counter() + self._timeout_ms / 1000
        found: list[Probe] = []
        while sent and (left := deadline - time.perf_counter()) > 0:
            try:
                records = consumer.poll(min(left, 0.5))
            except KafkaError as error:
                problems |= {place: str(error) for place, _ in sent.values()}
                break
            now = time.perf_counter()
            for record in records:
                known = sent.pop(bytes(record.key or b""), None)
                if known is not None:
                    found.append(Probe(known[0], (now - known[1]) * 1000))
        for partition, _ in sent.values():
            late = f"not read back within {self._timeout_ms} ms"
            found.append(Probe(partition, None, problems.get(partition, late)))
        return found

    def _open(self) -> None:
        if self._consumer is not None:
            return
        timeout = self._timeout_ms / 1000
        with Admin(self._config | {"client.id": "moldau-canary"}) as admin:
            nodes = list(admin.describe_cluster(timeout=timeout).nodes)
            if self._topic not in admin.list_topics(timeout=timeout):
                topic = NewTopic(
                    self._topic,
                    len(nodes),
                    min(len(nodes), _REPLICATION_FACTOR_MAX),
                    configs={"retention.ms": str(_RETENTION_MS)},
                )
                with suppress(TopicExistsError):
                    admin.create_topics([topic], timeout=timeout)
        self._producer = Producer(
            self._config
            | {
                "client.id": "moldau-canary",
                "acks": "all",
                "linger.ms": "0",
                "delivery.timeout.ms": str(max(self._timeout_ms, 1_000)),
                "request.timeout.ms": str(max(self._timeout_ms // 2, 500)),
                "max.block.ms": str(self._timeout_ms),
            }
        )
        consumer = Consumer(
            self._config
            | {"client.id": "moldau-canary", "auto.offset.reset": "latest",
               "enable.auto.commit": "false"}
        )  # fmt: skip
        self._consumer = consumer
        count = len(consumer.partitions_for(self._topic, timeout=timeout))
        self._partitions = [TopicPartition(self._topic, index) for index in range(count)]
        consumer.assign(self._partitions)
        consumer.seek_to_end(self._partitions)
        for place in self._partitions:
            consumer.position(place, timeout=timeout)

    def close(self) -> None:
        consumer, self._consumer = self._consumer, None
        producer, self._producer = self._producer, None
        if consumer is not None:
            consumer.close(timeout=1)
        if producer is not None:
            producer.close(timeout=1)
