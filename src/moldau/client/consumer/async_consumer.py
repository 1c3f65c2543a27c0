"""The consumer for asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any
from uuid import UUID

from moldau.client._records import ConsumerRecord
from moldau.client.callbacks import InlineCallbacks
from moldau.client.consumer.blocking_consumer import CLOSE_TIMEOUT_S
from moldau.client.consumer.core import ConsumerCore
from moldau.client.consumer.face import ConsumerFace, check_times
from moldau.client.consumer.guard import TaskGuard
from moldau.client.consumer.machine.consumer_records import EMPTY_RECORDS, ConsumerRecords
from moldau.client.consumer.membership_interface import GroupMembershipOperation
from moldau.client.consumer.settings import ConsumerSettings
from moldau.client.consumer.topic_queries import list_topics, partitions_for
from moldau.client.errors import IllegalStateError
from moldau.client.topics import (
    OffsetAndMetadata,
    OffsetAndTimestamp,
    OffsetsLike,
    PartitionInfo,
    PartitionLike,
    TimesLike,
    TopicPartition,
)

__all__ = ["AsyncConsumer"]

_ITERATION_S = 1.0


class AsyncConsumer(ConsumerFace):
    """Reads topics. One task at a time may use it; only `wakeup` may come from elsewhere.

    As `Consumer`; what may wait there is a coroutine here. Rebalance listeners and commit
    callbacks may be coroutine functions.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, **settings: Any) -> None:
        checked = ConsumerSettings.of(config, settings)
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

    async def poll(self, timeout: float = 0.0) -> ConsumerRecords:
        """Records, as soon as there are any; none if there are none within `timeout` seconds.

        Joins the group, takes part in rebalances and commits automatically on the way: call it
        again within `max.poll.interval.ms`.
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

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """Records without end, until `close`. One that was not given yet is not consumed."""
        while not self._guard.closed:
            records = await self.poll(_ITERATION_S)
            iteration = self._begin_iteration(records)
            try:
                for record in iteration:
                    yield record
            finally:
                self._end_iteration(iteration)

    async def unsubscribe(self) -> None:
        """Give up topics and partitions, and leave the group."""
        with self._guard:
            await self._core.unsubscribe(self._core.deadline(None))

    def _give_up_subscription(self) -> None:
        raise IllegalStateError("nothing to subscribe to", advice="await unsubscribe() instead")

    # Offsets.

    async def position(self, partition: PartitionLike, timeout: float | None = None) -> int:
        """The offset of the next record to be given."""
        with self._guard:
            core = self._core
            return await core.wakeup.wakeable(
                core.position(TopicPartition(*partition), core.deadline(timeout))
            )

    async def committed(
        self, partitions: Iterable[PartitionLike], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed; None where it has nothing."""
        with self._guard:
            core = self._core
            keys = [TopicPartition(*each) for each in partitions]
            return await core.wakeup.wakeable(core.committed(keys, core.deadline(timeout)))

    async def commit_sync(
        self,
        offsets: OffsetsLike | None = None,
        timeout: float | None = None,
    ) -> None:
        """Commit these offsets, or the current positions, and wait for it."""
        with self._guard:
            core = self._core
            core.require_group()
            deadline = core.deadline(timeout)
            await core.wakeup.wakeable(core.committer.commit_sync(self._offsets(offsets), deadline))

    async def offsets_for_times(
        self, timestamps: TimesLike, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each time (ms since 1970); None where there is none."""
        with self._guard:
            core = self._core
            return await core.wakeup.wakeable(
                core.finder.by_times(check_times(timestamps), core.deadline(timeout))
            )

    async def beginning_offsets(
        self, partitions: Iterable[PartitionLike], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition."""
        with self._guard:
            core = self._core
            return await core.wakeup.wakeable(
                core.finder.beginnings(partitions, core.deadline(timeout))
            )

    async def end_offsets(
        self, partitions: Iterable[PartitionLike], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset after the last record of each partition; with read_committed the last stable
        offset."""
        with self._guard:
            core = self._core
            return await core.wakeup.wakeable(core.finder.ends(partitions, core.deadline(timeout)))

    # Topics.

    async def partitions_for(self, topic: str, timeout: float | None = None) -> list[PartitionInfo]:
        """The partitions of a topic; none if there is no such topic."""
        with self._guard:
            core = self._core
            return await core.wakeup.wakeable(
                partitions_for(core.cluster, topic, core.deadline(timeout))
            )

    async def list_topics(self, timeout: float | None = None) -> dict[str, list[PartitionInfo]]:
        """All topics that may be seen, with their partitions."""
        with self._guard:
            core = self._core
            return await core.wakeup.wakeable(list_topics(core.cluster, core.deadline(timeout)))

    async def client_instance_id(self, timeout: float | None = None) -> UUID:
        """Under which the cluster knows this client's metrics (KIP-714)."""
        with self._guard:
            core = self._core
            return await core.wakeup.wakeable(core.client_instance_id(core.deadline(timeout)))

    # The end.

    async def close(
        self,
        timeout: float = CLOSE_TIMEOUT_S,
        operation: GroupMembershipOperation | str = GroupMembershipOperation.DEFAULT,
    ) -> None:
        """Commit if that is automatic, leave the group as `operation` says, and let go of
        everything. A second call does nothing."""
        if self._guard.closed:
            return
        how = GroupMembershipOperation(operation)
        with self._guard:
            core = self._core
            try:
                await core.close(core.deadline(timeout), how)
            finally:
                self._guard.closed = True

    async def __aenter__(self) -> AsyncConsumer:
        """Raises ConfigError if no name in `bootstrap.servers` resolves, as the first call does
        otherwise."""
        await self._core.cluster.bootstrap.resolve()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
