"""A producer, whichever face it has: the parts put together, and what they do when asked.

The faces differ in how they wait: `Producer` in the thread that calls, `AsyncProducer` in its task.
Invariants: a record that was taken on gets an answer, also if the client is closed; what is
wrong with a record before it is taken on is in its future, as in Java, unless the call itself makes
no sense, which is raised.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any
from uuid import UUID

from moldau.client.cluster import ClusterClient
from moldau.client.errors import (
    ClosedError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    SerializationError,
)
from moldau.client.interceptors import Interceptors
from moldau.client.machine.metadata import ClusterMetadata
from moldau.client.machine.producer_records import ProducerRecord, RecordMetadata, check_place
from moldau.client.metrics import (
    PRODUCER,
    KafkaMetric,
    Metrics,
    NetworkMetrics,
    ProducerMetrics,
    add_app_info,
)
from moldau.client.producer._batch import RecordFuture, failed_future
from moldau.client.producer._send_path import Outgoing, SendPath
from moldau.client.producer.accumulator import Accumulator
from moldau.client.producer.delivery import tell
from moldau.client.producer.failures import FailedSends
from moldau.client.producer.machine.queues import AccumulatorLimits, PartitionQueue
from moldau.client.producer.machine.transactions import TransactionManager
from moldau.client.producer.memory_wait import MemoryWait
from moldau.client.producer.sender import Sender
from moldau.client.producer.settings import ProducerSettings
from moldau.client.producer.time_spent import spent
from moldau.client.producer.topic_wait import TopicWait
from moldau.client.producer.transaction_calls import TransactionCalls
from moldau.client.telemetry import TelemetryReporter
from moldau.client.topics import PartitionInfo, TopicPartition

__all__ = ["ProducerCore"]


class ProducerCore:
    """See the module. Coroutines run on the loop; `send` and what belongs to it anywhere."""

    def __init__(self, settings: ProducerSettings) -> None:
        self.settings = settings
        self.registry = Metrics.of(settings.values, client_id=settings.client_id)
        add_app_info(self.registry)
        self.metrics = ProducerMetrics(self.registry)
        self.cluster = ClusterClient(
            settings.network, observer=NetworkMetrics(self.registry, PRODUCER)
        )
        self.cluster.allow_auto_topic_creation = True
        self.transactions = (
            TransactionManager(settings.transactional_id, settings.transaction_timeout_ms)
            if settings.enable_idempotence
            else None
        )
        self.accumulator = Accumulator(
            AccumulatorLimits(
                batch_size=settings.batch_size,
                linger_ms=settings.linger_ms,
                buffer_memory=settings.buffer_memory,
                delivery_timeout_ms=settings.delivery_timeout_ms,
                max_request_size=settings.max_request_size,
                compression=settings.compression,
                compression_level=settings.compression_level,
                adaptive=settings.partitioner_adaptive,
                availability_timeout_ms=settings.partitioner_availability_timeout_ms,
            ),
            backoff=self.cluster.backoff,
            random=self.cluster.random,
            gate=None if self.transactions is None else self.transactions.sequences,
        )
        self.failures = FailedSends(self.metrics)
        self.sender = Sender(
            settings,
            self.cluster,
            self.accumulator,
            self.transactions,
            self.metrics,
            self.failures,
        )
        #: How many records were not acknowledged when it was closed.
        self.lost_at_close = 0
        #: Closing leaves an open transaction as it is: somebody else ends it, or its timeout.
        self.keeps_transaction = False
        self.interceptors = settings.interceptors
        self.path = SendPath(
            settings,
            self.accumulator,
            self.sender,
            self.transactions,
            self.cluster.clock,
            intercept=self._intercepted if self.interceptors else None,
            refuse=self.refused,
        )
        self.telemetry = TelemetryReporter.of(settings.values, self.cluster, self.registry)
        self.memory = MemoryWait(
            settings, self.accumulator, self.sender, self.path, self.metrics, self.cluster.clock
        )
        self._topics = TopicWait(self.cluster, self.accumulator, self.metrics)
        self.transaction_calls = TransactionCalls(
            settings,
            self.cluster,
            self.transactions,
            self.accumulator,
            self.sender,
            self.path,
            self.metrics,
        )
        self._add_gauges()

    def _add_gauges(self) -> None:
        accumulator = self.accumulator
        self.metrics.add_gauges(
            {
                "buffer-total-bytes": lambda: self.settings.buffer_memory,
                "buffer-available-bytes": lambda: accumulator.memory.free,
                "waiting-threads": lambda: len(accumulator.memory.waiters),
                "requests-in-flight": lambda: self.sender.in_flight_count,
                "metadata-age": lambda: (self.cluster.metadata_age_ms or 0) / 1000,
            }
        )

    async def start(self) -> None:
        """Raises ConfigError if the cluster's addresses are none."""
        await self.cluster.bootstrap.resolve()
        self.sender.start()
        self.cluster.on_metadata.append(self._on_metadata)

    def _on_metadata(self, picture: ClusterMetadata) -> None:
        self.path.picture = picture
        idle = self.accumulator.table.idle_topics(
            self.cluster.clock.elapsed_ms(), self.settings.metadata_max_idle_ms
        )
        if idle and self.cluster.wanted_topics is not None:
            with self.accumulator.lock:
                self.accumulator.table.put_away(idle)
            self.cluster.wanted_topics.difference_update(idle)

    # Records.

    def _intercepted(self, record: ProducerRecord, on_delivery: Any) -> Outgoing:
        """A record as the interceptors left it; they are called at its end."""
        left: ProducerRecord = self.interceptors.passed("on_send", record)

        def acknowledged(metadata: RecordMetadata | None, error: Exception | None) -> None:
            self.interceptors.tell("on_acknowledgement", metadata, error)
            if on_delivery is not None:
                on_delivery(metadata, error)

        return Outgoing(
            left.topic,
            left.value,
            left.key,
            left.partition,
            left.timestamp,
            left.headers,
            acknowledged,
        )

    def block_until_ms(self, outgoing: Outgoing) -> int:
        """When a record that waits is given up. Raises for a call that makes no sense."""
        if self.path.closed:
            raise ClosedError("the producer is closed")
        check_place(outgoing.topic, outgoing.partition, outgoing.timestamp)
        return self.cluster.clock.elapsed_ms() + self.settings.max_block_ms

    def lacks_memory(self, outgoing: Outgoing) -> bool:
        """Whether a record waits for memory and for nothing else."""
        return (
            outgoing.is_serialized
            and outgoing.memory_size == 0
            and not self._lacks_partition(outgoing)
        )

    def _lacks_partition(self, outgoing: Outgoing) -> bool:
        entry = self.accumulator.topics.get(outgoing.topic)
        count = 0 if entry is None else len(entry.queues)
        return count == 0 or (outgoing.partition is not None and outgoing.partition >= count)

    async def await_room(self, outgoing: Outgoing, until_ms: int) -> None:
        """Until it makes sense to try again: the partition is known, and there is memory."""
        if self._lacks_partition(outgoing):
            left_ms = max(0, until_ms - self.cluster.clock.elapsed_ms())
            await self._topics.wait(outgoing.topic, outgoing.partition, left_ms)
        elif outgoing.is_serialized and outgoing.memory_size == 0:
            await self.memory.wait_on_loop(outgoing, until_ms)

    def refused(self, outgoing: Outgoing, error: KafkaError) -> RecordFuture:
        """The future of a record that was not taken on; raises what is not to be found there."""
        if self._is_raised(error):
            self.interceptors.tell("on_acknowledgement", None, error)
            raise error
        partition = -1 if outgoing.partition is None else outgoing.partition
        self.failures.add(TopicPartition(outgoing.topic, partition), 1, error)
        future = failed_future(PartitionQueue(outgoing.topic, partition, None), error)
        if outgoing.on_delivery is not None:
            tell(outgoing.on_delivery, future)
        if self.transactions is not None:
            with suppress(IllegalStateError):
                self.transactions.status.to_error_state(error)
        return future

    def _is_raised(self, error: KafkaError) -> bool:
        if isinstance(error, (SerializationError, ClosedError, IllegalStateError)):
            return True
        # Java raises what an earlier error forbids, but not that a producer is fenced.
        manager = self.transactions
        return (
            error.__cause__ is not None
            and manager is not None
            and (error.__cause__ is manager.status.last_error)
        )

    async def partitions_for(self, topic: str) -> list[PartitionInfo]:
        check_place(topic, None, None)
        await self._topics.wait(topic, None, self.settings.max_block_ms)
        picture = self.cluster.metadata
        found = (
            picture.info(TopicPartition(topic, each)) for each in picture.topics[topic].partitions
        )
        return [each for each in found if each is not None]

    async def flush(self, timeout: float | None = None) -> None:
        """Until everything that was sent before is done."""
        with spent(self.metrics, "flush"):
            await self._flush(timeout)

    async def _flush(self, timeout: float | None) -> None:
        done = asyncio.Event()
        loop = asyncio.get_running_loop()
        with self.accumulator.lock:
            flush = self.accumulator.begin_flush(lambda: loop.call_soon_threadsafe(done.set))
        if flush is None:
            return
        self.sender.wake_now()
        try:
            async with asyncio.timeout(timeout):
                await done.wait()
        except TimeoutError:
            raise KafkaTimeoutError(f"flush was not done within {timeout} s") from None
        finally:
            with self.accumulator.lock:
                self.accumulator.end_flush(flush)

    async def client_instance_id(self, timeout: float | None) -> UUID:
        """The id under which the cluster knows this client's metrics; always the same one."""
        if self.telemetry is None:
            raise IllegalStateError(
                "this client pushes no metrics", advice="set enable.metrics.push to true"
            )
        limit_ms = self.settings.max_block_ms if timeout is None else int(timeout * 1000)
        return await self.telemetry.client_instance_id(timeout_ms=limit_ms)

    def register_metric_for_subscription(self, metric: KafkaMetric) -> None:
        if self.telemetry is not None and metric.metric_name not in self.registry.metrics():
            self.telemetry.register(metric)

    def unregister_metric_from_subscription(self, metric: KafkaMetric) -> None:
        if self.telemetry is not None:
            self.telemetry.unregister(metric)

    # The end.

    def described(self, *, closed: bool) -> str:
        """For the `repr` of a producer."""
        state = "closed" if closed else f"{self.unacknowledged_count()} records to be acknowledged"
        return f"{self.settings.client_id!r} at {self.cluster.bootstrap}, {state}"

    def unacknowledged_count(self) -> int:
        """How many records were taken on and are not done."""
        with self.accumulator.lock:
            batches = list(self.accumulator.incomplete)
        return sum(
            each.record_count or (each.builder.record_count if each.builder is not None else 0)
            for each in batches
        )

    async def close(self, timeout: float | None = None) -> None:
        """Take on nothing more, send what is left, and fail what is not done in time."""
        self.path.closed = True
        with self.accumulator.lock:
            self.accumulator.close()
        deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
        try:
            if timeout is None or timeout > 0:
                await self._until_quiet(deadline)
                await self._abort_ongoing(deadline)
        except TimeoutError:
            pass
        finally:
            self._force_close()
            if self.telemetry is not None:
                await self.telemetry.close()
            await self.cluster.close()
            self._close_plugins()
            self.registry.close()

    def _close_plugins(self) -> None:
        """What the user gave may hold something: each is closed, whatever the others do."""
        self.interceptors.close()
        settings = self.settings
        serializers = (settings.key_serializer, settings.value_serializer)
        owners = [getattr(each, "__self__", each) for each in serializers]
        Interceptors([settings.partitioner, *owners]).close()

    async def _until_quiet(self, deadline: float | None) -> None:
        quiet = asyncio.Event()

        def look() -> None:
            if self.sender.is_quiet:
                quiet.set()

        self.sender.on_step = look
        self.sender.wake_now()
        loop = asyncio.get_running_loop()
        left = None if deadline is None else max(0.0, deadline - loop.time())
        async with asyncio.timeout(left):
            await quiet.wait()

    async def _abort_ongoing(self, deadline: float | None) -> None:
        manager = self.transactions
        if manager is None or not manager.status.has_ongoing_transaction or self.keeps_transaction:
            return
        with suppress(KafkaError):
            if not manager.status.is_completing:
                with self.accumulator.lock:
                    manager.begin_abort(self.transaction_calls.features())
            await self._until_quiet(deadline)

    def _force_close(self) -> None:
        error = ClosedError(
            "the producer was closed before the record was acknowledged: it may or may not have "
            "been written",
            advice="flush() first, or close() with a longer timeout",
        )
        self.sender.stop()
        self.lost_at_close = self.unacknowledged_count()
        if self.transactions is not None:
            self.transactions.close(ClosedError("the producer was closed"))
        self.sender.fail_rest(error)
