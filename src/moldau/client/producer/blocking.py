"""The blocking producer: for threads, and safe to share between them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack
from uuid import UUID
from weakref import WeakSet

from moldau.client.config.keywords import ProducerKeywords
from moldau.client.errors import KafkaError, KafkaTimeoutError
from moldau.client.loop_thread import LoopThread
from moldau.client.metrics import KafkaMetric, MetricName
from moldau.client.other_clients import PRODUCER_NAMES, point_from
from moldau.client.producer._batch import DeliveryCallback, RecordFuture
from moldau.client.producer._send_path import Outgoing
from moldau.client.producer.at_exit import watch
from moldau.client.producer.core import ProducerCore
from moldau.client.producer.machine.records import ProducerRecord
from moldau.client.producer.settings import producer_settings
from moldau.client.topics import OffsetsLike, PartitionInfo

if TYPE_CHECKING:
    from moldau.client.consumer import ConsumerGroupMetadata

__all__ = ["Producer"]

_producers: WeakSet[Producer] = WeakSet()


def _after_fork() -> None:
    """In the child nobody sends what is put into batches: `send` leaves its short way."""
    for producer in list(_producers):
        producer._path.closed = True


os.register_at_fork(after_in_child=_after_fork)


@point_from(PRODUCER_NAMES)
class Producer:
    """Sends records to a Kafka cluster.

    Settings have Kafka's names, in a mapping (`"linger.ms"`) or as keyword arguments
    (`linger_ms`). `send` appends a record to a batch and returns; a thread of the producer's sends
    the batches. Use it in a `with` statement, or `close` it.
    """

    def __init__(
        self, config: Mapping[str, Any] | None = None, **settings: Unpack[ProducerKeywords]
    ) -> None:
        self._core = ProducerCore(producer_settings(config, settings))
        self._path = self._core.path
        self._thread = LoopThread(f"moldau-producer {self._core.settings.client_id}")
        self._closed = False
        try:
            self._thread.call(self._core.start())
        except BaseException:
            self._thread.stop()
            raise
        _producers.add(self)
        # What was sent still goes out.
        name = f"Producer {self._core.settings.client_id!r}"
        self._thread.ended_with(self, name, self._core.close)
        watch(self)

    def send(
        self,
        topic: str | ProducerRecord,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Any = None,
        on_delivery: DeliveryCallback | None = None,
    ) -> RecordFuture:
        """Take a record on; it is sent later, with others.

        Blocks for at most `max.block.ms`, while the topic is not known or `buffer.memory` is full.
        What goes wrong with the record is in the future, and `on_delivery(metadata, error)` is
        called in the producer's thread, in order within a partition.

        >>> future = producer.send("orders", b"two beers", key=b"table 5")
        >>> print(future.result(timeout=10).offset)
        """
        future = self._path.send(topic, value, key, partition, timestamp, headers, on_delivery)
        if isinstance(future, Outgoing):
            return self._send_slowly(future)
        return future

    def _send_slowly(self, outgoing: Outgoing) -> RecordFuture:
        core = self._core
        self._thread.check_process()
        until_ms = core.block_until_ms(outgoing)
        try:
            while True:
                future = self._path.retry(outgoing)
                if future is not None:
                    return future
                if core.lacks_memory(outgoing):
                    self._thread.check()
                    core.wait_for_memory(outgoing, until_ms)
                else:
                    self._thread.call(core.await_room(outgoing, until_ms))
        except KafkaError as error:
            return core.refused(outgoing, error)
        finally:
            core.release(outgoing)

    def flush(self, timeout: float | None = None) -> None:
        """Send everything now, and wait until it is done.

        >>> producer.flush(timeout=10)
        """
        self._thread.call(self._core.flush(timeout))

    def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The partitions of a topic, which is asked for if it is not known.

        >>> print(len(producer.partitions_for("orders")))
        """
        return self._thread.call(self._core.partitions_for(topic))

    def metrics(self) -> dict[MetricName, KafkaMetric]:
        """What the producer has measured, by Kafka's names.

        >>> rates = {name.name: metric.value for name, metric in producer.metrics().items()}
        """
        return self._core.registry.metrics()

    def client_instance_id(self, timeout: float | None = None) -> UUID:
        """The id under which the cluster knows this client's metrics; always the same one.

        >>> print(producer.client_instance_id(timeout=5))
        """
        return self._thread.call(self._core.client_instance_id(timeout))

    def register_metric_for_subscription(self, metric: KafkaMetric) -> None:
        """Push a metric of the application's with the client's own, where the cluster wants it.

        >>> producer.register_metric_for_subscription(metric)
        """
        self._core.register_metric_for_subscription(metric)

    def unregister_metric_from_subscription(self, metric: KafkaMetric) -> None:
        """Push it no longer.

        >>> producer.unregister_metric_from_subscription(metric)
        """
        self._core.unregister_metric_from_subscription(metric)

    # Transactions.

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """A transaction around a `with` block: committed at its end, aborted if it raises.

        Calls `init_transactions` before the first one. If the commit times out, it may still
        succeed: call `commit_transaction` again to learn how it ended.

        >>> with producer.transaction():
        ...     producer.send("bills", b"5 EUR")
        """
        if self._core.needs_init:
            self.init_transactions()
        self.begin_transaction()
        try:
            yield self
        except BaseException:
            self._abort_if_open()
            raise
        if not self._core.in_transaction:
            return
        try:
            self.commit_transaction()
        except KafkaTimeoutError:
            raise
        except KafkaError:
            self._abort_if_open()
            raise

    def _abort_if_open(self) -> None:
        # What is raised already says more than why it could not be aborted.
        with suppress(KafkaError):
            if self._core.in_transaction:
                self.abort_transaction()

    def init_transactions(self, timeout: float | None = None) -> None:
        """Before the first transaction, once: fences other producers with the same
        transactional.id and waits for the end of what they left.

        >>> producer.init_transactions()
        """
        self._thread.call(self._core.init_transactions(timeout))

    def begin_transaction(self) -> None:
        """Begin a transaction: what is sent from now on belongs to it.

        >>> producer.begin_transaction()
        """
        self._thread.call(self._core.begin_transaction())

    def send_offsets_to_transaction(
        self,
        offsets: OffsetsLike,
        group_metadata: ConsumerGroupMetadata,
        timeout: float | None = None,
    ) -> None:
        """Commit a consumer's offsets together with what is sent in the transaction.

        >>> offsets = {TopicPartition("orders", 0): 42}
        >>> producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        """
        self._thread.call(self._core.send_offsets_to_transaction(offsets, group_metadata, timeout))

    def commit_transaction(self, timeout: float | None = None) -> None:
        """Send what is left and commit; raises if a record of the transaction failed.

        >>> producer.commit_transaction()
        """
        self._thread.call(self._core.commit_transaction(timeout))

    def abort_transaction(self, timeout: float | None = None) -> None:
        """Drop what the transaction has sent; readers of committed records never see it.

        >>> producer.abort_transaction()
        """
        self._thread.call(self._core.abort_transaction(timeout))

    # The end.

    def close(self, timeout: float | None = None) -> None:
        """Send what is left, and fail what is not done within `timeout` seconds. In a delivery
        callback nothing is waited for.

        >>> producer.close(timeout=5)
        """
        if self._closed:
            return
        self._closed = True
        if self._thread.on_it:
            # In a delivery callback: nothing can be waited for here, so what is left fails.
            closing = self._thread.loop.create_task(self._core.close(0.0))
            closing.add_done_callback(lambda _: self._thread.stop())
            return
        try:
            self._thread.call(self._core.close(timeout))
        finally:
            self._thread.stop()

    def leave(self, timeout: float) -> tuple[ProducerCore, Future[None]] | None:
        """Begin to close at the end of the process."""
        if self._closed:
            return None
        self._closed = True
        try:
            return self._core, self._thread.submit(self._core.close(timeout))
        except KafkaError:
            return None

    def __repr__(self) -> str:
        return f"<Producer {self._core.described(closed=self._closed)}>"

    def __enter__(self) -> Producer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
