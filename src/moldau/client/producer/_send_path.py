# cython: annotation_typing=False
"""The way of one record into its batch: what every `send` runs through, and little else.

This is the hot path. A record whose topic is known and that finds memory is appended here without
waiting; for all others `send` gives an `Outgoing`, and the faces wait for what is missing.

Plain Python, and with `_send_path.pxd` beside it also the source of a compiled module with the same
names and results.
"""

from __future__ import annotations

from collections.abc import Callable
from time import time_ns
from typing import Any

from moldau.client.errors import (
    ClosedError,
    IllegalStateError,
    KafkaError,
    RecordTooLargeError,
)
from moldau.client.machine.metadata import ClusterMetadata
from moldau.client.machine.producer_records import (
    TIMESTAMP_MAX,
    ProducerRecord,
    check_place,
    normal_headers,
)
from moldau.client.producer._batch import DeliveryCallback, ProducerBatch, RecordFuture
from moldau.client.producer._murmur2 import partition_for_key
from moldau.client.producer.accumulator import Accumulator
from moldau.client.producer.machine.partitioners import (
    PartitionFunction,
    StickyPartition,
    partition_function,
)
from moldau.client.producer.machine.queues import PartitionQueue, TopicQueues
from moldau.client.producer.machine.transaction_state import State
from moldau.client.producer.machine.transactions import TransactionManager
from moldau.client.producer.sender import Sender
from moldau.client.producer.settings import ProducerSettings
from moldau.client.serialization import serialized
from moldau.clock import Clock

__all__ = ["Outgoing", "SendPath"]

# About what a record without headers takes beside key and value, -1 for each that is null.
_RECORD_OVERHEAD = 10
_IN_TRANSACTION = State.IN_TRANSACTION


class Outgoing:
    """A record that could not be appended at once: its topic is not known, or memory is full."""

    __slots__ = (
        "headers",
        "is_serialized",
        "key",
        "key_bytes",
        "memory_size",
        "on_delivery",
        "partition",
        "timestamp",
        "topic",
        "value",
        "value_bytes",
    )

    def __init__(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp: int | None,
        headers: Any,
        on_delivery: DeliveryCallback | None,
    ) -> None:
        self.topic = topic
        self.value = value
        self.key = key
        self.partition = partition
        self.timestamp = timestamp
        self.headers = headers
        self.on_delivery = on_delivery
        self.is_serialized = False
        self.key_bytes: bytes | None = None
        self.value_bytes: bytes | None = None
        #: What it holds of buffer.memory for a new batch.
        self.memory_size = 0


class SendPath:
    """See the module. Thread-safe."""

    def __init__(
        self,
        settings: ProducerSettings,
        accumulator: Accumulator,
        sender: Sender,
        transactions: TransactionManager | None,
        clock: Clock,
        *,
        intercept: Callable[[ProducerRecord, DeliveryCallback | None], Outgoing] | None,
        refuse: Callable[[Outgoing, KafkaError], RecordFuture],
    ) -> None:
        """Interceptors are asked by `intercept`, which is None without any. `refuse` gives the
        future of a record that is not taken on, or raises."""
        self._intercept = intercept
        self._refuse = refuse
        self._accumulator = accumulator
        self._topics = accumulator.topics
        self._lock = accumulator.lock
        self._acquire = accumulator.lock.acquire
        self._release = accumulator.lock.release
        self._sender = sender
        self._txn = transactions
        self._status = None if transactions is None else transactions.status
        self._transactional = transactions is not None and transactions.is_transactional
        self._serialize_key = settings.key_serializer
        self._serialize_value = settings.value_serializer
        self._plain = all(
            getattr(each, "plain", False)
            for each in (settings.key_serializer, settings.value_serializer)
        )
        self._ignore_keys = settings.partitioner_ignore_keys
        self._custom: PartitionFunction | None = (
            None if settings.partitioner is None else partition_function(settings.partitioner)
        )
        self._size_max = min(settings.max_request_size, settings.buffer_memory)
        self._max_request_size = settings.max_request_size
        self._buffer_memory = settings.buffer_memory
        self._linger_ms = settings.linger_ms
        self._clock = clock
        #: The last picture of the cluster, for partitioners of the user's.
        self.picture: ClusterMetadata | None = None
        self.closed = False
        #: How many batches were begun.
        self.batch_count = 0

    def send(
        self,
        topic: Any,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp: int | None,
        headers: Any,
        on_delivery: DeliveryCallback | None,
    ) -> RecordFuture | Outgoing:
        """Append a record, or say what waits for metadata or memory."""
        if type(topic) is not str or self._intercept is not None:
            return self._unusual(topic, value, key, partition, timestamp, headers, on_delivery)
        entry = self._topics.get(topic)
        if entry is None or self.closed:
            return Outgoing(topic, value, key, partition, timestamp, headers, on_delivery)
        key_bytes = key
        value_bytes = value
        if headers:
            headers = normal_headers(headers)
        if (
            not self._plain
            or (key is not None and type(key) is not bytes)
            or (value is not None and type(value) is not bytes)
        ):
            # Serializers may add to them.
            headers = headers or []
            key_bytes = serialized(self._serialize_key, topic, key, headers, "key")
            value_bytes = serialized(self._serialize_value, topic, value, headers, "value")
        if self._custom is not None and partition is None and entry.queues:
            partition = self._custom_partition(topic, key, key_bytes, value, value_bytes)
        if timestamp is None:
            timestamp = time_ns() // 1_000_000
        elif type(timestamp) is not int or timestamp < 0 or timestamp > TIMESTAMP_MAX:
            check_place(topic, partition, timestamp)
        txn = self._txn
        status = self._status
        future = None
        try:
            # The usual case is read here: a call for every record would cost as much as the rest.
            if (
                txn is not None
                and status is not None
                and (
                    status.last_error is not None
                    or (
                        self._transactional
                        and (status.pending is not None or status.state is not _IN_TRANSACTION)
                    )
                )
            ):
                txn.check_send()
            self._acquire()
            try:
                future = self._append(
                    entry, partition, timestamp, key_bytes, value_bytes, headers, on_delivery, 0
                )
            finally:
                self._release()
        except KafkaError as error:
            outgoing = Outgoing(topic, value, key, partition, timestamp, headers, on_delivery)
            return self._refuse(outgoing, error)
        if future is not None:
            return future
        outgoing = Outgoing(topic, value, key, partition, timestamp, headers, on_delivery)
        outgoing.is_serialized = True
        outgoing.key_bytes = key_bytes
        outgoing.value_bytes = value_bytes
        return outgoing

    def _unusual(
        self,
        topic: Any,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp: int | None,
        headers: Any,
        on_delivery: DeliveryCallback | None,
    ) -> RecordFuture | Outgoing:
        """A record that is an object, or that interceptors see first."""
        if isinstance(topic, ProducerRecord):
            if not (value is key is partition is timestamp is None) or headers:
                raise TypeError("a ProducerRecord has all fields: pass only on_delivery with it")
            record = topic
        else:
            record = ProducerRecord(topic, value, key, partition, timestamp, headers or [])
        if self._intercept is not None:
            return self._intercept(record, on_delivery)
        return self.send(
            record.topic,
            record.value,
            record.key,
            record.partition,
            record.timestamp,
            record.headers,
            on_delivery,
        )

    def _append(
        self,
        entry: TopicQueues,
        partition: int | None,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Any,
        on_delivery: DeliveryCallback | None,
        memory_size: int,
    ) -> RecordFuture | None:
        """Under the lock: into the open batch or a new one; None if there is no memory for it, or
        no such partition."""
        queues = entry.queues
        key_size = -1 if key is None else len(key)
        value_size = -1 if value is None else len(value)
        size = key_size + value_size + _RECORD_OVERHEAD
        sticky: StickyPartition | None = None
        if not queues:
            return None
        if partition is not None:
            number = partition
            if number >= len(queues) or number < 0:
                return None
        elif key is not None and not self._ignore_keys:
            number = partition_for_key(key, len(queues))
        else:
            sticky = entry.sticky
            number = sticky.partition
        if size > self._size_max:
            self._refuse_size(key, value, headers)
        queue = queues[number]
        batch = queue.open
        index = -1
        if batch is not None:
            builder = batch.builder
            index = builder.append(timestamp, key, value, headers)
        if index < 0 and sticky is not None and sticky.switched_at_boundary(size):
            queue = queues[sticky.partition]
            batch = queue.open
            if batch is not None:
                builder = batch.builder
                index = builder.append(timestamp, key, value, headers)
        if batch is None or index < 0:
            batch = self._new_batch(queue, key, value, headers, memory_size)
            if batch is None:
                return None
            builder = batch.builder
            index = builder.append(timestamp, key, value, headers)
            if self._transactional:
                # A batch belongs to one transaction: its end sends or drops all batches.
                self._add_to_transaction(queue)
        elif memory_size:
            self._accumulator.memory.give_back(memory_size)
        if sticky is not None:
            sticky.produced += size
        # Field by field, for a call of the constructor makes objects of all numbers first.
        future = RecordFuture.__new__(RecordFuture)
        future._batch = batch
        future._index = index
        future._timestamp = timestamp
        future._key_size = key_size
        future._value_size = value_size
        if on_delivery is not None:
            if batch.callbacks is None:
                batch.callbacks = []
            batch.callbacks.append((future, on_delivery))
        return future

    def _add_to_transaction(self, queue: PartitionQueue) -> None:
        if self._txn is not None and self._txn.add_partition(queue.key):
            self._sender.wake_by(0)

    def _new_batch(
        self,
        queue: PartitionQueue,
        key: bytes | None,
        value: bytes | None,
        headers: Any,
        memory_size: int,
    ) -> ProducerBatch | None:
        accumulator = self._accumulator
        record_size = accumulator.record_size_max(key, value, headers)
        if record_size > self._size_max:
            self._refuse_size(key, value, headers)
        needed = accumulator.batch_memory(record_size)
        if memory_size < needed:
            if not accumulator.memory.take(needed - memory_size):
                return None
        elif memory_size > needed:
            accumulator.memory.give_back(memory_size - needed)
        now_ms = self._clock.elapsed_ms()
        batch = accumulator.open_batch(queue, needed, now_ms)
        self.batch_count += 1
        # With another one before it, or full by its first record, it is ready at once.
        is_ready = len(queue.batches) > 1 or record_size >= needed
        self._sender.wake_by(0 if is_ready else now_ms + self._linger_ms)
        return batch

    def _refuse_size(self, key: bytes | None, value: bytes | None, headers: Any) -> None:
        size = self._accumulator.record_size_max(key, value, headers)
        if size > self._max_request_size:
            raise RecordTooLargeError(
                f"the message is {size} bytes when serialized, which is larger than "
                f"max.request.size, {self._max_request_size}",
                advice="raise max.request.size, or send less at once",
            )
        if size > self._buffer_memory:
            raise RecordTooLargeError(
                f"the message is {size} bytes when serialized, which is larger than "
                f"buffer.memory, {self._buffer_memory}",
                advice="raise buffer.memory, or send less at once",
            )

    def _custom_partition(
        self, topic: str, key: Any, key_bytes: bytes | None, value: Any, value_bytes: bytes | None
    ) -> int:
        custom, picture = self._custom, self.picture
        if custom is None or picture is None:
            raise IllegalStateError("no partitioner is configured")
        partition = custom(topic, key, key_bytes, value, value_bytes, picture)
        if partition < 0:
            raise ValueError(
                f"the partitioner generated an invalid partition number: {partition}; "
                "partition number should always be non-negative"
            )
        return partition

    # The long way.

    def retry(self, outgoing: Outgoing) -> RecordFuture | None:
        """Append a record that had to wait; None if it still does."""
        if self.closed:
            raise ClosedError("the producer was closed while send was in progress")
        topic = outgoing.topic
        entry = self._topics.get(topic)
        if entry is None or not entry.queues:
            return None
        if not outgoing.is_serialized:
            headers = normal_headers(outgoing.headers)
            outgoing.key_bytes = serialized(
                self._serialize_key, topic, outgoing.key, headers, "key"
            )
            outgoing.value_bytes = serialized(
                self._serialize_value, topic, outgoing.value, headers, "value"
            )
            outgoing.headers = headers
            if outgoing.timestamp is None:
                outgoing.timestamp = time_ns() // 1_000_000
            outgoing.is_serialized = True
        if self._custom is not None and outgoing.partition is None:
            outgoing.partition = self._custom_partition(
                topic, outgoing.key, outgoing.key_bytes, outgoing.value, outgoing.value_bytes
            )
        if self._txn is not None:
            self._txn.check_send()
        with self._lock:
            memory_size, outgoing.memory_size = outgoing.memory_size, 0
            future = self._append(
                entry,
                outgoing.partition,
                outgoing.timestamp or 0,
                outgoing.key_bytes,
                outgoing.value_bytes,
                outgoing.headers,
                outgoing.on_delivery,
                memory_size,
            )
            if future is None:
                outgoing.memory_size = memory_size
        return future

    def memory_needed(self, outgoing: Outgoing) -> int:
        """For a new batch that begins with this record."""
        accumulator = self._accumulator
        return accumulator.batch_memory(
            accumulator.record_size_max(outgoing.key_bytes, outgoing.value_bytes, outgoing.headers)
        )
