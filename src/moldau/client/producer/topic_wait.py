"""Records that wait until their topic, or a partition of it, is known."""

from __future__ import annotations

import asyncio

from moldau.client.cluster import ClusterClient
from moldau.client.deadline import Deadline
from moldau.client.errors import (
    AuthenticationError,
    ClosedError,
    KafkaError,
    KafkaTimeoutError,
    NotKafkaError,
    UnknownTopicOrPartitionError,
)
from moldau.client.errors.topics import topic_error
from moldau.client.metrics import ProducerMetrics
from moldau.client.producer.accumulator import Accumulator
from moldau.client.producer.time_spent import spent
from moldau.times import ElapsedMs
from moldau.wire.errors import ErrorCode

__all__ = ["TopicWait"]

_FAILS_AT_ONCE = (ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


class TopicWait:
    """See the module."""

    def __init__(
        self, cluster: ClusterClient, accumulator: Accumulator, metrics: ProducerMetrics
    ) -> None:
        self._cluster = cluster
        self._accumulator = accumulator
        self._metrics = metrics

    async def wait(self, topic: str, partition: int | None, timeout_ms: int) -> None:
        """Until a topic, and a partition of it, is known; raises KafkaTimeoutError."""
        with spent(self._metrics, "metadata-wait"):
            await self._wait(topic, partition, timeout_ms)

    async def _wait(self, topic: str, partition: int | None, timeout_ms: int) -> None:
        deadline = Deadline(self._cluster.clock, timeout_ms)
        started_ms = self._cluster.clock.elapsed_ms()
        with self._accumulator.lock:
            self._accumulator.table.topic(topic).used_ms = self._cluster.clock.elapsed_ms()
        failures = 0
        while True:
            count = self._cluster.metadata.partition_count(topic)
            if count and (partition is None or partition < count):
                with self._accumulator.lock:
                    self._accumulator.table.update_leaders(self._cluster.metadata)
                return
            # Asked twice: the first broker may not know new partitions yet.
            if count and failures >= 2 and self._answered_after(started_ms):
                raise UnknownTopicOrPartitionError(
                    f"topic {topic} has no partition {partition}: it has {count}, numbered from 0",
                    advice="leave partition out, or create more with Admin.create_partitions",
                )
            code = self._cluster.metadata.errors.get(topic)
            if code in _FAILS_AT_ONCE and failures:
                if self._cluster.wanted_topics is not None:
                    self._cluster.wanted_topics.discard(topic)
                raise topic_error(code, topic)
            if deadline.passed or (failures and deadline.left_ms() == 0):
                raise self._no_metadata(topic, partition, timeout_ms, code)
            if failures:
                delay_ms = self._cluster.backoff.delay_ms(failures, self._cluster.random)
                await asyncio.sleep(min(delay_ms, deadline.left_ms()) / 1000)
            failures += 1
            try:
                async with asyncio.timeout(max(1, deadline.left_ms()) / 1000):
                    await self._cluster.refresh([topic])
            except (AuthenticationError, ClosedError, NotKafkaError):
                raise
            except (KafkaError, TimeoutError):
                continue

    def _answered_after(self, moment_ms: ElapsedMs) -> bool:
        """Whether the cluster has described its topics since then."""
        age_ms = self._cluster.metadata_age_ms
        return age_ms is not None and self._cluster.clock.elapsed_ms() - age_ms >= moment_ms

    def _no_metadata(
        self, topic: str, partition: int | None, timeout_ms: int, code: ErrorCode | None
    ) -> KafkaTimeoutError:
        count = self._cluster.metadata.partition_count(topic)
        if count and partition is not None:
            return KafkaTimeoutError(
                f"Partition {partition} of topic {topic} with partition count {count} is not "
                f"present in metadata after {timeout_ms} ms."
            )
        text = f"Topic {topic} not present in metadata after {timeout_ms} ms."
        if not self._cluster.metadata.nodes:
            shown = ", ".join(f"{host}:{port}" for host, port in self._cluster.settings.bootstrap)
            return KafkaTimeoutError(text, advice=f"is a broker running at {shown}?")
        error = KafkaTimeoutError(text, advice="create the topic, or check its name")
        if code is not None:
            error.__cause__ = topic_error(code, topic)
        return error
