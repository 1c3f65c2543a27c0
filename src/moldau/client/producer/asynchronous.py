"""The producer for asyncio: everything happens on the loop that it was made on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack
from uuid import UUID

from moldau.client.errors import KafkaError, KafkaTimeoutError
from moldau.client.machine.producer_records import ProducerRecord
from moldau.client.metrics import KafkaMetric, MetricName
from moldau.client.other_clients import PRODUCER_NAMES, point_from
from moldau.client.producer._batch import DeliveryCallback, RecordFuture
from moldau.client.producer._send_path import Outgoing
from moldau.client.producer.at_exit import close_with_loop
from moldau.client.producer.core import ProducerCore
from moldau.client.producer.failures import FailureListener
from moldau.client.producer.settings import producer_settings
from moldau.client.topics import OffsetsLike, PartitionInfo

if TYPE_CHECKING:
    from moldau.client.config.keywords import ProducerKeywords
    from moldau.client.consumer import ConsumerGroupMetadata

__all__ = ["AsyncProducer"]

_keepers: set[AsyncGenerator[None, None]] = set()


@point_from(PRODUCER_NAMES)
class AsyncProducer:
    """Sends records to a Kafka cluster, as `Producer` does.

    `future = await producer.send(...)` appends a record, `metadata = await future` waits until it
    is acknowledged. Use it in an `async with` statement, or `close` it.
    """

    def __init__(
        self, config: Mapping[str, Any] | None = None, **settings: Unpack[ProducerKeywords]
    ) -> None:
        self._core = ProducerCore(producer_settings(config, settings))
        self._path = self._core.path
        self._intercepts = bool(self._core.interceptors)
        self._starting: asyncio.Task[None] | None = None
        self._started = False
        self._closed = False
        self._batches_seen = 0
        self._keeper: AsyncGenerator[None, None] | None = None

    async def start(self) -> None:
        """Start on the running loop; `async with` and the first call do this too.

        Raises ConfigError if no name in `bootstrap.servers` resolves.

        >>> await producer.start()
        """
        if self._started:
            return
        if self._starting is None:
            self._starting = asyncio.get_running_loop().create_task(self._core.start())
        try:
            await self._starting
        except KafkaError:
            # The next call may find the names.
            self._starting = None
            raise
        self._started = True
        if self._keeper is None:
            self._keeper = close_with_loop(self._core)
            # Held until it is closed: the loop closes only generators that somebody holds.
            _keepers.add(self._keeper)
            await anext(self._keeper)

    async def send(
        self,
        topic: str | ProducerRecord,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Any = None,
        on_delivery: DeliveryCallback | None = None,
    ) -> RecordFuture:
        """Append a record to a batch, which is sent in the background.

        Waits for at most `max.block.ms`, while the topic is not known or `buffer.memory` is full.
        An error of the record is raised by the future, which can be awaited, and
        `on_delivery(metadata, error)` is called in order within a partition.

        >>> future = await producer.send("orders", b"two beers", key=b"table 5")
        >>> print((await future).offset)
        """
        if not self._started:
            await self.start()
        future = self._path.send(topic, value, key, partition, timestamp, headers, on_delivery)
        if isinstance(future, Outgoing):
            return await self._send_slowly(future)
        if self._path.batch_count != self._batches_seen:
            # Whoever sends in a loop never waits for anything: let the sender have its turn.
            self._batches_seen = self._path.batch_count
            await asyncio.sleep(0)
        return future

    def send_nowait(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Any = None,
        on_delivery: DeliveryCallback | None = None,
    ) -> RecordFuture | None:
        """Append a record as `send` does, but only if that needs no waiting: else None.

        For callbacks of the loop, which cannot await. Of a record that gives None nothing was
        taken: its topic is not known yet, `buffer.memory` is full, or interceptors are configured.

        >>> future = producer.send_nowait("orders", b"two beers")
        >>> if future is not None: future.add_done_callback(print)
        """
        if not self._started or self._intercepts:
            return None
        future = self._path.send(topic, value, key, partition, timestamp, headers, on_delivery)
        return None if isinstance(future, Outgoing) else future

    async def _send_slowly(self, outgoing: Outgoing) -> RecordFuture:
        core = self._core
        until_ms = core.block_until_ms(outgoing)
        try:
            while True:
                future = self._path.retry(outgoing)
                if future is not None:
                    return future
                await core.await_room(outgoing, until_ms)
        except KafkaError as error:
            return core.refused(outgoing, error)
        finally:
            core.memory.release(outgoing)

    async def flush(self, timeout: float | None = None) -> None:
        """Send all batches now, and wait until they are done.

        >>> await producer.flush(timeout=10)
        """
        await self._core.flush(timeout)

    async def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The partitions of a topic; the cluster is asked if the topic is not known yet.

        >>> print(len(await producer.partitions_for("orders")))
        """
        await self.start()
        return await self._core.partitions_for(topic)

    def metrics(self) -> dict[MetricName, KafkaMetric]:
        """The producer's metrics, by Kafka's names.

        >>> rates = {name.name: metric.value for name, metric in producer.metrics().items()}
        """
        return self._core.registry.metrics()

    async def client_instance_id(self, timeout: float | None = None) -> UUID:
        """The id under which the cluster knows this client's metrics; always the same one.

        >>> print(await producer.client_instance_id(timeout=5))
        """
        await self.start()
        return await self._core.client_instance_id(timeout)

    def register_metric_for_subscription(self, metric: KafkaMetric) -> None:
        """Push an application metric with the client's own, if the cluster subscribes to it.

        >>> producer.register_metric_for_subscription(metric)
        """
        self._core.register_metric_for_subscription(metric)

    def unregister_metric_from_subscription(self, metric: KafkaMetric) -> None:
        """Stop pushing the metric.

        >>> producer.unregister_metric_from_subscription(metric)
        """
        self._core.unregister_metric_from_subscription(metric)

    def watch_failures(self, listener: FailureListener | None) -> None:
        """Call `listener(partition, error)` for each batch that fails, and each record that is not
        taken on: where the producer sends, before futures and callbacks know.

        >>> producer.watch_failures(lambda partition, error: print(partition, error))
        """
        self._core.failures.listener = listener

    # Transactions.

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """A transaction around an `async with` block: committed at its end, aborted if it raises.

        Calls `init_transactions` before the first one. If the commit times out, it may still
        succeed: call `commit_transaction` again to learn how it ended.

        >>> async with producer.transaction():
        ...     await producer.send("bills", b"5 EUR")
        """
        if self._core.transaction_calls.needs_init:
            await self.init_transactions()
        await self.begin_transaction()
        try:
            yield self
        except BaseException:
            await self._abort_if_open()
            raise
        if not self._core.transaction_calls.is_open:
            return
        try:
            await self.commit_transaction()
        except KafkaTimeoutError:
            raise
        except KafkaError:
            await self._abort_if_open()
            raise

    async def _abort_if_open(self) -> None:
        # What is raised already says more than why it could not be aborted.
        with suppress(KafkaError):
            if self._core.transaction_calls.is_open:
                await self.abort_transaction()

    async def init_transactions(self, timeout: float | None = None) -> None:
        """Call once, before the first transaction: fences other producers with the same
        transactional.id and waits until their transactions have ended.

        >>> await producer.init_transactions()
        """
        await self.start()
        await self._core.transaction_calls.init(timeout)

    async def begin_transaction(self) -> None:
        """Begin a transaction: records that are sent from now on belong to it.

        >>> await producer.begin_transaction()
        """
        await self._core.transaction_calls.begin()

    async def send_offsets_to_transaction(
        self,
        offsets: OffsetsLike,
        group_metadata: ConsumerGroupMetadata,
        timeout: float | None = None,
    ) -> None:
        """Commit a consumer's offsets together with the records of the transaction.

        >>> offsets = {TopicPartition("orders", 0): 42}
        >>> await producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        """
        await self._core.transaction_calls.send_offsets(offsets, group_metadata, timeout)

    async def commit_transaction(self, timeout: float | None = None) -> None:
        """Send the remaining records and commit; raises if a record of the transaction failed.

        >>> await producer.commit_transaction()
        """
        await self._core.transaction_calls.commit(timeout)

    async def abort_transaction(self, timeout: float | None = None) -> None:
        """Abort the transaction: consumers that read committed records never see its records.

        >>> await producer.abort_transaction()
        """
        await self._core.transaction_calls.abort(timeout)

    # The end.

    async def close(self, timeout: float | None = None) -> None:
        """Send the remaining records, and fail those not acknowledged within `timeout` seconds.

        >>> await producer.close(timeout=5)
        """
        if self._closed:
            return
        self._closed = True
        if self._starting is not None:
            with suppress(KafkaError):
                await self.start()
        # What was never started has nothing to send.
        await self._core.close(timeout if self._started else 0.0)
        if self._keeper is not None:
            _keepers.discard(self._keeper)
            await self._keeper.aclose()

    def __repr__(self) -> str:
        return f"<AsyncProducer {self._core.described(closed=self._closed)}>"

    async def __aenter__(self) -> AsyncProducer:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
