"""The share coordinator as the rest of the broker sees it: one attempt of each `Persister` call.

Finds the shard of a share partition and runs the decision there. The broker passes it the
partitions of `__share_group_state` that it leads, and deleted topics. Invariant: the topic's
records are deleted only below the oldest snapshot that is still needed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from uuid import UUID

from moldau.broker.coordinator.machine.decision import Action, Decision
from moldau.broker.coordinator.machine.hashing import partition_for
from moldau.broker.coordinator.machine.log import CoordinatorLog
from moldau.broker.coordinator.machine.topics import ClusterTopics
from moldau.broker.coordinator.runtime import CoordinatorRuntime, R
from moldau.broker.coordinator.share.machine.config import ShareCoordinatorConfig
from moldau.broker.coordinator.share.machine.shard import PruneUpTo, ShareShard
from moldau.broker.coordinator.share.machine.values import (
    SharePartitionKey,
    ShareState,
    ShareStateSummary,
    StateBatch,
)
from moldau.clock import Clock, LoopClock
from moldau.invariant import invariant
from moldau.times import WallMs
from moldau.wire.constants import NO_EPOCH
from moldau.wire.errors import ApiError


class ShareCoordinator:
    """Implements `Persister` without retries: the caller has to find the coordinator again."""

    def __init__(
        self,
        config: ShareCoordinatorConfig,
        *,
        partition_count: Callable[[], int],
        topics: ClusterTopics,
        delete_records: Callable[[int, int], object],
        report_bug: Callable[[Exception], None],
        clock: Clock | None = None,
    ) -> None:
        """`partition_count` is how many partitions the state topic has, or will have;
        `delete_records(partition, offset)` deletes its records below the offset, or ApiError."""
        self._partition_count = partition_count
        self._delete_records = delete_records
        self._pruned_offsets: dict[int, int] = {}
        self._runtime: CoordinatorRuntime[ShareShard] = CoordinatorRuntime(
            family="share",
            make_shard=lambda: ShareShard(config, topics),
            clock=clock or LoopClock(),
            write_timeout_ms=config.share_coordinator_write_timeout_ms,
            load_buffer_size=config.share_coordinator_load_buffer_size,
            report_bug=report_bug,
            perform=self._perform,
        )

    def partition_for(self, key: SharePartitionKey | str) -> int:
        """The partition of the state topic; the key as FindCoordinator spells it, or its parts."""
        return partition_for(str(key), self._partition_count())

    # Leadership.

    @property
    def runtime(self) -> CoordinatorRuntime[ShareShard]:
        """For metrics."""
        return self._runtime

    def on_elected(self, partition: int, leader_epoch: int, log: CoordinatorLog) -> None:
        """This broker leads the partition of the state topic from this epoch on."""
        self._runtime.load(partition, leader_epoch, log)

    def on_resigned(self, partition: int, leader_epoch: int | None = None) -> None:
        """Another broker leads it, or it is gone."""
        self._pruned_offsets.pop(partition, None)
        self._runtime.unload(partition, leader_epoch)

    async def on_topics_deleted(self, topic_ids: Collection[UUID]) -> None:
        """Forget the state of partitions that are gone."""
        for index in self._runtime.partitions:
            try:
                await self._runtime.run(index, lambda shard, now_ms: shard.forget_topics(topic_ids))
            except ApiError:
                # Leadership is moving or the log has failed: a few unused records stay.
                continue

    async def loaded(self) -> None:
        """Wait until every partition led here has been loaded."""
        await self._runtime.loaded()

    def close(self) -> None:
        self._runtime.close()

    def _perform(self, partition: int, action: Action) -> None:
        invariant(isinstance(action, PruneUpTo), f"{action!r} is no action of share shards")
        if not isinstance(action, PruneUpTo) or (
            self._pruned_offsets.get(partition, 0) >= action.offset
        ):
            return
        try:
            self._delete_records(partition, action.offset)
        except ApiError:
            # The partition has moved, or its disk fails; the next round tries again.
            return
        self._pruned_offsets[partition] = action.offset

    # One share partition at a time.

    async def initialize_state(
        self, key: SharePartitionKey, *, state_epoch: int, start_offset: int
    ) -> None:
        await self._run(
            key,
            lambda shard, now_ms: shard.initialize_state(
                key, state_epoch=state_epoch, start_offset=start_offset, now_ms=now_ms
            ),
        )

    async def read_state(self, key: SharePartitionKey, *, leader_epoch: int) -> ShareState:
        return await self._run(
            key,
            lambda shard, now_ms: shard.read_state(key, leader_epoch=leader_epoch, now_ms=now_ms),
        )

    async def write_state(
        self,
        key: SharePartitionKey,
        *,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> None:
        await self._run(
            key,
            lambda shard, now_ms: shard.write_state(
                key,
                state_epoch=state_epoch,
                leader_epoch=leader_epoch,
                start_offset=start_offset,
                delivery_complete_count=delivery_complete_count,
                batches=batches,
                now_ms=now_ms,
            ),
        )

    async def delete_state(self, key: SharePartitionKey) -> None:
        await self._run(key, lambda shard, now_ms: shard.delete_state(key))

    async def read_summary(
        self, key: SharePartitionKey, *, leader_epoch: int = NO_EPOCH
    ) -> ShareStateSummary:
        """Kafka sends the leader epoch along and does not look at it; so it is here."""
        return await self._run(key, lambda shard, now_ms: shard.read_summary(key))

    async def _run(
        self, key: SharePartitionKey, decide: Callable[[ShareShard, WallMs], Decision[R]]
    ) -> R:
        return await self._runtime.run(self.partition_for(key), decide)
