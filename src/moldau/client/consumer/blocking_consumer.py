"""The consumer for threads.

What always holds: whatever may wait runs on the client's own loop, and callbacks of the application
run in the calling thread meanwhile; records are taken and decoded in the calling thread.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Iterator, Mapping
from typing import Any, Self, TypeVar, Unpack
from uuid import UUID

from moldau.client.callbacks import BlockingCalls
from moldau.client.config.keywords import ConsumerKeywords
from moldau.client.consumer.core import ConsumerCore
from moldau.client.consumer.face import ConsumerFace, check_times
from moldau.client.consumer.guard import ThreadGuard
from moldau.client.consumer.machine.consumer_records import EMPTY_RECORDS, ConsumerRecords
from moldau.client.consumer.membership_interface import GroupMembershipOperation
from moldau.client.consumer.settings import ConsumerSettings
from moldau.client.consumer.topic_queries import list_topics, partitions_for
from moldau.client.consumer_record import ConsumerRecord
from moldau.client.loop_thread import LoopThread
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

__all__ = ["Consumer"]

T = TypeVar("T")

CLOSE_TIMEOUT_S = 30.0
POLL_TIMEOUT_S = 1.0
_ITERATION_S = 1.0


class Consumer(ConsumerFace[K, V]):
    """Reads topics. One thread at a time may use it; only `wakeup` may come from another.

    Settings are Kafka's, as a mapping or as keyword arguments with underscores. Timeouts are
    seconds; without one `default.api.timeout.ms` is the limit.
    """

    def __init__(
        self, config: Mapping[str, Any] | None = None, **settings: Unpack[ConsumerKeywords]
    ) -> None:
        checked = ConsumerSettings.of(config, settings)
        self._guard = ThreadGuard()
        self._thread = LoopThread(checked.client_id)
        self._calls = BlockingCalls(self._thread)
        try:
            self._core = ConsumerCore(checked, self._calls, self._thread.soon)
            self._thread.call(self._core.cluster.bootstrap.resolve())
        except BaseException:
            self._thread.stop()
            raise
        self._thread.ended_with(self, f"Consumer {checked.client_id!r}", self._core.abandon)

    def poll(self, timeout: float = POLL_TIMEOUT_S) -> ConsumerRecords[K, V]:
        """Records, as soon as there are any; none if there are none within `timeout` seconds.

        Joins the group, takes part in rebalances and commits automatically on the way: call it
        again within `max.poll.interval.ms`.

        >>> for record in consumer.poll(1.0):
        ...     print(record.value)
        """
        with self._guard:
            core = self._core
            self._give_back()
            busy = core.enter_poll()
            try:
                if not busy:
                    records = core.collect()
                    if records is not EMPTY_RECORDS:
                        return records
                deadline = core.deadline(timeout)
                while True:
                    self._calls.call(core.step(deadline))
                    records = core.collect()
                    if records is not EMPTY_RECORDS or deadline.passed:
                        return records
            finally:
                core.leave_poll()

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        """Records without end, until `close`. One that was not given yet is not consumed."""
        while not self._guard.closed:
            records = self.poll(_ITERATION_S)
            iteration = self._begin_iteration(records)
            try:
                yield from iteration
            finally:
                self._end_iteration(iteration)

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return self._calls.call(self._core.wakeup.wakeable(work))

    def unsubscribe(self) -> None:
        """Give up topics and partitions, and leave the group.

        >>> consumer.unsubscribe()
        """
        with self._guard:
            self._calls.call(self._core.unsubscribe(self._core.deadline(None)))

    def _give_up_subscription(self) -> None:
        self.unsubscribe()

    # Offsets.

    def position(self, partition: PartitionLike, timeout: float | None = None) -> int:
        """The offset of the next record to be given.

        >>> print(consumer.position(TopicPartition("orders", 0)))
        """
        with self._guard:
            core = self._core
            return self._wait(core.position(checked_partition(partition), core.deadline(timeout)))

    def committed(
        self, partitions: Iterable[PartitionLike], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed; None where it has nothing.

        >>> print(consumer.committed([TopicPartition("orders", 0)]))
        """
        with self._guard:
            keys = checked_partitions(partitions)
            return self._wait(self._core.committed(keys, self._core.deadline(timeout)))

    def commit_sync(
        self,
        offsets: OffsetsLike | None = None,
        timeout: float | None = None,
    ) -> None:
        """Commit these offsets, or the current positions, and wait for it.

        >>> consumer.commit_sync({TopicPartition("orders", 0): 42})
        """
        with self._guard:
            core = self._core
            core.require_group()
            deadline = core.deadline(timeout)
            self._wait(core.committer.commit_sync(self._offsets(offsets), deadline))

    def offsets_for_times(
        self, timestamps: TimesLike, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each time (ms since 1970); None where there is none.

        >>> found = consumer.offsets_for_times({TopicPartition("orders", 0): 1_700_000_000_000})
        """
        with self._guard:
            core = self._core
            return self._wait(core.finder.by_times(check_times(timestamps), core.deadline(timeout)))

    def beginning_offsets(
        self, partitions: Iterable[PartitionLike], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition.

        >>> print(consumer.beginning_offsets([TopicPartition("orders", 0)]))
        """
        with self._guard:
            core = self._core
            return self._wait(
                core.finder.beginnings(checked_partitions(partitions), core.deadline(timeout))
            )

    def end_offsets(
        self, partitions: Iterable[PartitionLike], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset after the last record of each partition; with read_committed the last stable
        offset.

        >>> print(consumer.end_offsets([TopicPartition("orders", 0)]))
        """
        with self._guard:
            core = self._core
            return self._wait(
                core.finder.ends(checked_partitions(partitions), core.deadline(timeout))
            )

    # Topics.

    def partitions_for(self, topic: str, timeout: float | None = None) -> list[PartitionInfo]:
        """The partitions of a topic; none if there is no such topic.

        >>> print(len(consumer.partitions_for("orders")))
        """
        with self._guard:
            core = self._core
            return self._wait(partitions_for(core.cluster, topic, core.deadline(timeout)))

    def list_topics(self, timeout: float | None = None) -> dict[str, list[PartitionInfo]]:
        """All topics that may be seen, with their partitions.

        >>> print(sorted(consumer.list_topics()))
        """
        with self._guard:
            core = self._core
            return self._wait(list_topics(core.cluster, core.deadline(timeout)))

    def client_instance_id(self, timeout: float | None = None) -> UUID:
        """Under which the cluster knows this client's metrics (KIP-714).

        >>> print(consumer.client_instance_id(timeout=5))
        """
        with self._guard:
            return self._wait(self._core.client_instance_id(self._core.deadline(timeout)))

    # The end.

    def close(
        self,
        timeout: float = CLOSE_TIMEOUT_S,
        operation: GroupMembershipOperation | str = GroupMembershipOperation.DEFAULT,
    ) -> None:
        """Commit if that is automatic, leave the group as `operation` says, and let go of
        everything. A second call does nothing.

        >>> consumer.close(timeout=5)
        """
        if self._guard.closed:
            return
        how = GroupMembershipOperation(operation)
        with self._guard:
            core = self._core
            try:
                self._calls.call(core.close(core.deadline(timeout), how))
            finally:
                self._guard.closed = True
                self._thread.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
