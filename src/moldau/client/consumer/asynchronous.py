"""The consumer for asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self, Unpack
from uuid import UUID

from moldau.client.callbacks import InlineCallbacks
from moldau.client.consumer.core import ConsumerCore
from moldau.client.consumer.face import (
    CLOSE_TIMEOUT_S,
    ITERATION_S,
    POLL_TIMEOUT_S,
    ConsumerFace,
    check_times,
)
from moldau.client.consumer.guard import TaskGuard
from moldau.client.consumer.machine.consumer_records import EMPTY_RECORDS, ConsumerRecords
from moldau.client.consumer.membership_interface import GroupMembershipOperation
from moldau.client.consumer.settings import consumer_settings
from moldau.client.consumer.topic_queries import list_topics, partitions_for
from moldau.client.consumer_record import ConsumerRecord
from moldau.client.errors import IllegalStateError
from moldau.client.machine.arguments import checked_partition, checked_partitions
from moldau.client.topics import (
    OffsetAndMetadata,
    OffsetAndTimestamp,
    OffsetsLike,
    PartitionInfo,
    PartitionLike,
    TimesLike,
    TopicPartition,
)
from moldau.client.type_parameters import K, V

if TYPE_CHECKING:
    from moldau.client.config.keywords import ConsumerKeywords

__all__ = ["AsyncConsumer"]


class AsyncConsumer(ConsumerFace[K, V]):
    """Reads topics. One task at a time may use it; only `wakeup` may come from elsewhere.

    As `Consumer`; what may wait there is a coroutine here. Rebalance listeners and commit
    callbacks may be coroutine functions.
    """

    def __init__(
        self, config: Mapping[str, Any] | None = None, **settings: Unpack[ConsumerKeywords]
    ) -> None:
        checked = consumer_settings(config, settings)
        self._guard = TaskGuard()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread_id = 0
        self._core = ConsumerCore(checked, InlineCallbacks(), self._soon)

    def _soon(self, callback: Callable[..., None], *arguments: Any) -> None:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._thread_id = threading.get_ident()
        if threading.get_ident() == self._thread_id:
            self._loop.call_soon(callback, *arguments)
        else:
            self._loop.call_soon_threadsafe(callback, *arguments)

    async def poll(self, timeout: float = POLL_TIMEOUT_S) -> ConsumerRecords[K, V]:
        """Return records as soon as there are any, or none after `timeout` seconds.

        Joins the group, takes part in rebalances and commits automatically on the way: call it
        again within `max.poll.interval.ms`.

        >>> for record in await consumer.poll(1.0):
        ...     print(record.value)
        """
        with self._guard:
            core = self._core
            # Other tasks get their turn also while there is no end of records, and before any are
            # taken: who is cancelled here has lost none.
            await asyncio.sleep(0)
            self._give_back()
            busy = core.enter_poll()
            try:
                if not busy:
                    records = core.collect()
                    if records is not EMPTY_RECORDS:
                        return records
                deadline = core.deadline(timeout)
                while True:
                    await core.step(deadline)
                    records = core.collect()
                    if records is not EMPTY_RECORDS or deadline.passed:
                        return records
            finally:
                core.leave_poll()

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord[K, V]]:
        """Iterate over records until `close`. A record is consumed once it was returned."""
        while not self._guard.closed:
            records = await self.poll(ITERATION_S)
            iteration = self._begin_iteration(records)
            try:
                for record in iteration:
                    yield record
            finally:
                self._end_iteration(iteration)

    async def unsubscribe(self) -> None:
        """Drop the subscription or assignment, and leave the group.

        >>> await consumer.unsubscribe()
        """
        with self._guard:
            await self._core.unsubscribe(self._core.deadline(None))

    def _give_up_subscription(self) -> None:
        raise IllegalStateError("nothing to subscribe to", advice="await unsubscribe() instead")

    # Offsets.

    async def position(self, partition: PartitionLike, timeout: float | None = None) -> int:
        """The offset of the next record that `poll` returns.

        >>> print(await consumer.position(TopicPartition("orders", 0)))
        """
        with self._guard:
            core = self._core
            return await core.wakeup.wakeable(
                core.position(checked_partition(partition), core.deadline(timeout))
            )

    async def committed(
        self, partitions: Iterable[PartitionLike], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The committed offsets of the group; None for partitions without one.

        >>> print(await consumer.committed([TopicPartition("orders", 0)]))
        """
        with self._guard:
            core = self._core
            keys = checked_partitions(partitions)
            return await core.wakeup.wakeable(core.committed(keys, core.deadline(timeout)))

    async def commit_sync(
        self,
        offsets: OffsetsLike | None = None,
        timeout: float | None = None,
    ) -> None:
        """Commit these offsets, or the current positions, and wait for the result.

        >>> await consumer.commit_sync({TopicPartition("orders", 0): 42})
        """
        with self._guard:
            core = self._core
            core.require_group()
            deadline = core.deadline(timeout)
            await core.wakeup.wakeable(core.committer.commit_sync(self._offsets(offsets), deadline))

    async def offsets_for_times(
        self, timestamps: TimesLike, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each time (ms since 1970); None where there is none.

        >>> times = {TopicPartition("orders", 0): 1_700_000_000_000}
        >>> found = await consumer.offsets_for_times(times)
        """
        with self._guard:
            core = self._core
            return await core.wakeup.wakeable(
                core.finder.by_times(check_times(timestamps), core.deadline(timeout))
            )

    async def beginning_offsets(
        self, partitions: Iterable[PartitionLike], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition.

        >>> print(await consumer.beginning_offsets([TopicPartition("orders", 0)]))
        """
        with self._guard:
            core = self._core
            return await core.wakeup.wakeable(
                core.finder.beginnings(checked_partitions(partitions), core.deadline(timeout))
            )

    async def end_offsets(
        self, partitions: Iterable[PartitionLike], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset after the last record of each partition; with read_committed the last stable
        offset.

        >>> print(await consumer.end_offsets([TopicPartition("orders", 0)]))
        """
        with self._guard:
            core = self._core
            return await core.wakeup.wakeable(
                core.finder.ends(checked_partitions(partitions), core.deadline(timeout))
            )

    # Topics.

    async def partitions_for(self, topic: str, timeout: float | None = None) -> list[PartitionInfo]:
        """The partitions of a topic; none if there is no such topic.

        >>> print(len(await consumer.partitions_for("orders")))
        """
        with self._guard:
            core = self._core
            return await core.wakeup.wakeable(
                partitions_for(core.cluster, topic, core.deadline(timeout))
            )

    async def list_topics(self, timeout: float | None = None) -> dict[str, list[PartitionInfo]]:
        """All topics that the client is authorized to see, with their partitions.

        >>> print(sorted(await consumer.list_topics()))
        """
        with self._guard:
            core = self._core
            return await core.wakeup.wakeable(list_topics(core.cluster, core.deadline(timeout)))

    async def client_instance_id(self, timeout: float | None = None) -> UUID:
        """The id under which the cluster knows this client's metrics (KIP-714).

        >>> print(await consumer.client_instance_id(timeout=5))
        """
        with self._guard:
            core = self._core
            return await core.wakeup.wakeable(core.client_instance_id(core.deadline(timeout)))

    # The end.

    async def close(
        self,
        timeout: float = CLOSE_TIMEOUT_S,
        operation: GroupMembershipOperation | str = GroupMembershipOperation.DEFAULT,
    ) -> None:
        """Commit if auto commit is on, leave the group as `operation` specifies, and release all
        resources. A second call does nothing.

        >>> await consumer.close(timeout=5)
        """
        if self._guard.closed:
            return
        how = GroupMembershipOperation(operation)
        with self._guard:
            core = self._core
            try:
                await core.close(core.deadline(timeout), how)
            finally:
                self._guard.closed = True
                self._release()

    async def __aenter__(self) -> Self:
        """Raises ConfigError if no name in `bootstrap.servers` resolves, as the first call does
        otherwise."""
        await self._core.cluster.bootstrap.resolve()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
