"""A producer, whichever face it has: the parts put together, and what they do when asked.

The faces differ in how they wait: `Producer` in the thread that calls, `AsyncProducer` in its task.
What always holds: a record that was taken on gets an answer, also if the client is closed; what is
wrong with a record before it is taken on is in its future, as in Java, unless the call itself makes
no sense, which is raised.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import perf_counter_ns
from typing import Any
from uuid import UUID

from moldau.client.cluster import ClusterClient
from moldau.client.deadline import Deadline
from moldau.client.errors import (
    BufferExhaustedError,
    ClosedError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    NotKafkaError,
    SerializationError,
    UnknownTopicOrPartitionError,
    error_for,
)
from moldau.client.interceptors import Interceptors
from moldau.client.machine.arguments import checked_offsets
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
from moldau.client.producer.machine.queues import AccumulatorLimits, MemoryWaiter, PartitionQueue
from moldau.client.producer.machine.transaction_state import Operation, State
from moldau.client.producer.machine.transactions import Features, TransactionManager
from moldau.client.producer.sender import Sender
from moldau.client.producer.settings import ProducerSettings
from moldau.client.telemetry import TelemetryReporter
from moldau.client.topics import OffsetsLike, PartitionInfo, TopicPartition
from moldau.wire.errors import ErrorCode

__all__ = ["ProducerCore"]

_CLOSED_IN_SEND = "the producer was closed while send was in progress"
_FAILS_AT_ONCE = (ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


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
        self.sender = Sender(
            settings, self.cluster, self.accumulator, self.transactions, self.metrics
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
        self._add_gauges()

    def _add_gauges(self) -> None:
        accumulator = self.accumulator
        self.metrics.add_gauges(
            {
                "buffer-total-bytes": lambda: self.settings.buffer_memory,
                "buffer-available-bytes": lambda: accumulator.free,
                "waiting-threads": lambda: len(accumulator.waiters),
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
        idle = self.accumulator.idle_topics(
            self.cluster.clock.elapsed_ms(), self.settings.metadata_max_idle_ms
        )
        if idle and self.cluster.wanted_topics is not None:
            with self.accumulator.lock:
                self.accumulator.put_away(idle)
            self.cluster.wanted_topics.difference_update(idle)

    # Records.

    def _intercepted(self, record: ProducerRecord, on_delivery: Any) -> Outgoing:
        """A record as the interceptors left it; they are told of its end."""
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
            await self.await_metadata(outgoing.topic, outgoing.partition, left_ms)
        elif outgoing.is_serialized and outgoing.memory_size == 0:
            await self._await_memory(outgoing, until_ms)

    async def _await_memory(self, outgoing: Outgoing, until_ms: int) -> None:
        loop = asyncio.get_running_loop()
        home = threading.get_ident()
        woken = loop.create_future()

        def set_woken() -> None:
            if not woken.done():
                woken.set_result(None)

        def wake() -> None:
            # Mostly in the loop's own thread, which need not be woken by a byte in a pipe.
            if threading.get_ident() == home:
                set_woken()
            else:
                loop.call_soon_threadsafe(set_woken)

        waiter = self._line_up(outgoing, wake)
        if waiter is None:
            return
        start_ns = perf_counter_ns()
        left_ms = max(0, until_ms - self.cluster.clock.elapsed_ms())
        alarm = loop.call_later(left_ms / 1000, set_woken)
        try:
            await woken
        except asyncio.CancelledError:
            with self.accumulator.lock:
                self.accumulator.withdraw(waiter)
            raise
        finally:
            alarm.cancel()
        self._take_granted(outgoing, waiter, start_ns)

    def wait_for_memory(self, outgoing: Outgoing, until_ms: int) -> None:
        """As `await_room` for a record that `lacks_memory`, in a thread that may block: a full
        buffer makes it wait once for every batch, and a coroutine on the loop would cost more than
        the batch itself."""
        woken = threading.Lock()
        woken.acquire()
        waiter = self._line_up(outgoing, woken.release)
        if waiter is None:
            return
        start_ns = perf_counter_ns()
        left_s = max(0, until_ms - self.cluster.clock.elapsed_ms()) / 1000
        try:
            woken.acquire(timeout=min(left_s, threading.TIMEOUT_MAX))
            self._take_granted(outgoing, waiter, start_ns)
        except BaseException:
            # Interrupted, by Ctrl-C for one: what was granted meanwhile must not be lost.
            with self.accumulator.lock:
                if outgoing.memory_size == 0:
                    self.accumulator.withdraw(waiter)
            raise

    def _line_up(self, outgoing: Outgoing, wake: Callable[[], Any]) -> MemoryWaiter | None:
        """Wait for memory behind those who do already; None if there was enough."""
        accumulator = self.accumulator
        size = self.path.memory_needed(outgoing)
        with accumulator.lock:
            if accumulator.take_memory(size):
                outgoing.memory_size = size
                return None
            if accumulator.closed:
                # Nobody would wake it any more.
                raise ClosedError(_CLOSED_IN_SEND)
            waiter = MemoryWaiter(size, wake)
            accumulator.waiters.append(waiter)
            # What waits for more records is to be sent now.
            self.sender.wake_by(0)
        return waiter

    def _take_granted(self, outgoing: Outgoing, waiter: MemoryWaiter, start_ns: int) -> None:
        """The end of a wait for memory; raises if there is none."""
        accumulator = self.accumulator
        self.metrics.waited_for_memory(perf_counter_ns() - start_ns)
        with accumulator.lock:
            if waiter.granted:
                outgoing.memory_size = waiter.size
                return
            accumulator.withdraw(waiter)
        if self.path.closed:
            raise ClosedError(_CLOSED_IN_SEND)
        raise self._exhausted(waiter.size)

    def refused(self, outgoing: Outgoing, error: KafkaError) -> RecordFuture:
        """The future of a record that was not taken on; raises what is not to be found there."""
        if self._is_raised(error):
            self.interceptors.tell("on_acknowledgement", None, error)
            raise error
        partition = -1 if outgoing.partition is None else outgoing.partition
        self.metrics.failed(outgoing.topic, 1)
        future = failed_future(PartitionQueue(outgoing.topic, partition, None), error)
        if outgoing.on_delivery is not None:
            tell(outgoing.on_delivery, future)
        if self.transactions is not None:
            with suppress(IllegalStateError):
                self.transactions.status.to_error_state(error)
        return future

    def release(self, outgoing: Outgoing) -> None:
        """Give back what a record holds that did not need it after all."""
        if outgoing.memory_size:
            with self.accumulator.lock:
                size, outgoing.memory_size = outgoing.memory_size, 0
                self.accumulator.give_back(size)

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

    def _exhausted(self, size: int) -> BufferExhaustedError:
        self.metrics.memory_exhausted()
        return BufferExhaustedError(
            f"failed to allocate {size} bytes within max.block.ms, {self.settings.max_block_ms} ms:"
            f" {self.accumulator.free} of {self.settings.buffer_memory} bytes are free"
        )

    async def await_metadata(self, topic: str, partition: int | None, timeout_ms: int) -> None:
        """Until a topic, and a partition of it, is known; raises KafkaTimeoutError."""
        with self._spent("metadata-wait"):
            await self._await_metadata(topic, partition, timeout_ms)

    async def _await_metadata(self, topic: str, partition: int | None, timeout_ms: int) -> None:
        deadline = Deadline(self.cluster.clock, timeout_ms)
        started_ms = self.cluster.clock.elapsed_ms()
        with self.accumulator.lock:
            self.accumulator.topic(topic).used_ms = self.cluster.clock.elapsed_ms()
        failures = 0
        while True:
            count = self.cluster.metadata.partition_count(topic)
            if count and (partition is None or partition < count):
                with self.accumulator.lock:
                    self.accumulator.update_leaders(self.cluster.metadata)
                return
            # Asked twice: the first broker may not have heard yet of partitions that are new.
            if count and failures >= 2 and self._answered_after(started_ms):
                raise UnknownTopicOrPartitionError(
                    f"topic {topic} has no partition {partition}: it has {count}, numbered from 0",
                    advice="leave partition out, or create more with Admin.create_partitions",
                )
            code = self.cluster.metadata.errors.get(topic)
            if code in _FAILS_AT_ONCE and failures:
                if self.cluster.wanted_topics is not None:
                    self.cluster.wanted_topics.discard(topic)
                raise error_for(code, f"topic {topic}")
            if deadline.passed or (failures and deadline.left_ms() == 0):
                raise self._no_metadata(topic, partition, timeout_ms, code)
            if failures:
                delay_ms = self.cluster.backoff.delay_ms(failures, self.cluster.random)
                await asyncio.sleep(min(delay_ms, deadline.left_ms()) / 1000)
            failures += 1
            try:
                await asyncio.wait_for(
                    self.cluster.refresh([topic]), max(1, deadline.left_ms()) / 1000
                )
            except (ClosedError, NotKafkaError):
                raise
            except (KafkaError, TimeoutError):
                continue

    def _answered_after(self, moment_ms: int) -> bool:
        """Whether the cluster has described its topics since then."""
        age_ms = self.cluster.metadata_age_ms
        return age_ms is not None and self.cluster.clock.elapsed_ms() - age_ms >= moment_ms

    def _no_metadata(
        self, topic: str, partition: int | None, timeout_ms: int, code: ErrorCode | None
    ) -> KafkaTimeoutError:
        count = self.cluster.metadata.partition_count(topic)
        if count and partition is not None:
            return KafkaTimeoutError(
                f"Partition {partition} of topic {topic} with partition count {count} is not "
                f"present in metadata after {timeout_ms} ms."
            )
        text = f"Topic {topic} not present in metadata after {timeout_ms} ms."
        if not self.cluster.metadata.nodes:
            shown = ", ".join(f"{host}:{port}" for host, port in self.settings.network.bootstrap)
            return KafkaTimeoutError(text, advice=f"is a broker running at {shown}?")
        error = KafkaTimeoutError(text, advice="create the topic, or check its name")
        if code is not None:
            error.__cause__ = error_for(code, f"topic {topic}")
        return error

    async def partitions_for(self, topic: str) -> list[PartitionInfo]:
        check_place(topic, None, None)
        await self.await_metadata(topic, None, self.settings.max_block_ms)
        picture = self.cluster.metadata
        found = (
            picture.info(TopicPartition(topic, each)) for each in picture.topics[topic].partitions
        )
        return [each for each in found if each is not None]

    async def flush(self, timeout: float | None = None) -> None:
        """Until everything that was sent before is done."""
        with self._spent("flush"):
            await self._flush(timeout)

    @contextmanager
    def _spent(self, what: str) -> Iterator[None]:
        start_ns = perf_counter_ns()
        try:
            yield
        finally:
            self.metrics.spent(what, perf_counter_ns() - start_ns)

    async def _flush(self, timeout: float | None) -> None:
        done = asyncio.Event()
        loop = asyncio.get_running_loop()
        with self.accumulator.lock:
            flush = self.accumulator.begin_flush(lambda: loop.call_soon_threadsafe(done.set))
        if flush is None:
            return
        self.sender.wake_now()
        try:
            await asyncio.wait_for(done.wait(), timeout)
        except TimeoutError:
            raise KafkaTimeoutError(f"flush was not done within {timeout} s") from None
        finally:
            with self.accumulator.lock:
                self.accumulator.end_flush(flush)

    # Transactions.

    def _manager(self) -> TransactionManager:
        if self.transactions is None or not self.transactions.is_transactional:
            raise IllegalStateError(
                "cannot use transactional methods without enabling transactions",
                advice="set transactional.id",
            )
        if self.path.closed:
            raise ClosedError("the producer is closed")
        return self.transactions

    @property
    def needs_init(self) -> bool:
        """Whether `init_transactions` has not been called yet."""
        return self._manager().status.state is State.UNINITIALIZED

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, so that it can be committed or aborted."""
        return self.transactions is not None and self.transactions.status.has_ongoing_transaction

    async def init_transactions(self, timeout: float | None) -> None:
        with self._spent("txn-init"):
            await self._finish(self._manager().initialize(), timeout)

    async def begin_transaction(self) -> None:
        with self._spent("txn-begin"):
            self._manager().begin()

    async def send_offsets_to_transaction(
        self, offsets: OffsetsLike, group_metadata: Any, timeout: float | None
    ) -> None:
        manager = self._manager()
        if group_metadata is None:
            raise ValueError("group_metadata must not be None: pass consumer.group_metadata()")
        if not hasattr(group_metadata, "generation_id"):
            raise TypeError(f"pass consumer.group_metadata(), not {group_metadata!r}")
        found = checked_offsets(offsets)
        if group_metadata.generation_id > 0 and not group_metadata.member_id:
            raise ValueError(f"{group_metadata} has a generation but no member id")
        if found:
            with self._spent("txn-send-offsets"):
                await self._finish(manager.send_offsets(found, group_metadata), timeout)

    async def commit_transaction(self, timeout: float | None) -> None:
        with self._spent("txn-commit"):
            manager, features = self._manager(), self._features()
            with self.accumulator.lock:
                operation = manager.begin_commit(features)
            await self._finish(operation, timeout)

    async def abort_transaction(self, timeout: float | None) -> None:
        with self._spent("txn-abort"):
            manager, features = self._manager(), self._features()
            with self.accumulator.lock:
                operation = manager.begin_abort(features)
            await self._finish(operation, timeout)

    def _features(self) -> Features:
        epoch, levels = self.cluster.finalized_features()
        return epoch, levels.get("transaction.version", 0)

    async def _finish(self, operation: Operation, timeout: float | None) -> None:
        """Wait for an operation for `max.block.ms`; later it may be called again."""
        limit_ms = self.settings.max_block_ms if timeout is None else max(0, int(timeout * 1000))
        if not operation.done:
            done = asyncio.Event()
            operation.listeners.append(done.set)
            self.sender.wake_now()
            try:
                await asyncio.wait_for(done.wait(), limit_ms / 1000)
            except TimeoutError:
                limit = "max.block.ms, " if timeout is None else ""
                raise KafkaTimeoutError(
                    f"{operation.name} was not done within {limit}{limit_ms} ms",
                    advice="call it again to continue waiting",
                ) from None
        operation.acknowledged = True
        if operation.error is not None:
            raise operation.error

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
        await asyncio.wait_for(quiet.wait(), left)

    async def _abort_ongoing(self, deadline: float | None) -> None:
        manager = self.transactions
        if manager is None or not manager.status.has_ongoing_transaction or self.keeps_transaction:
            return
        with suppress(KafkaError):
            if not manager.status.is_completing:
                with self.accumulator.lock:
                    manager.begin_abort(self._features())
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
