"""All share partitions of one `__share_group_state` partition: requests in, decisions out.

Invariants: only replay changes the state; a read with a higher leader epoch, or an initialization
with a higher state epoch, fences all requests with a lower one from then on.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from moldau.broker.coordinator.machine.decision import (
    Action,
    CoordinatorRecord,
    Decision,
    Outbox,
    Timer,
)
from moldau.broker.coordinator.machine.topics import ClusterTopics
from moldau.broker.coordinator.share.machine.combiner import combine
from moldau.broker.coordinator.share.machine.config import ShareCoordinatorConfig
from moldau.broker.coordinator.share.machine.state import (
    UNINITIALIZED_EPOCH,
    ShareEntry,
    Snapshot,
    snapshot_from,
    snapshot_from_update,
    snapshot_record,
    tombstone,
    update_record,
)
from moldau.broker.coordinator.share.machine.values import (
    UNINITIALIZED_DELIVERY_COMPLETE_COUNT,
    UNINITIALIZED_START_OFFSET,
    SharePartitionKey,
    ShareState,
    ShareStateSummary,
    StateBatch,
)
from moldau.invariant import invariant
from moldau.times import WallMs
from moldau.wire.constants import NO_EPOCH, NO_OFFSET
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    Message,
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)


@dataclass(frozen=True, slots=True)
class ColdSnapshotTimer(Timer):
    pass


@dataclass(frozen=True, slots=True)
class PruneTimer(Timer):
    pass


@dataclass(frozen=True, slots=True)
class PruneUpTo(Action):
    """Action: no record below the offset is needed any more."""

    offset: int


class ShareShard:
    def __init__(self, config: ShareCoordinatorConfig, topics: ClusterTopics) -> None:
        self._config = config
        self._topics = topics
        self.entries: dict[SharePartitionKey, ShareEntry] = {}
        self._last_snapshot_offset = NO_OFFSET

    # Replicated state.

    def replay(self, offset: int, producer_id: int, key: Message, value: Message | None) -> None:
        if isinstance(key, ShareSnapshotKey):
            invariant(value is None or isinstance(value, ShareSnapshotValue), "keys name values")
            self._replay_snapshot(offset, _key_of(key), value)  # type: ignore[arg-type]
        elif isinstance(key, ShareUpdateKey) and isinstance(value, ShareUpdateValue):
            self._replay_update(_key_of(key), value)

    def replay_end_transaction(self, producer_id: int, committed: bool) -> None:
        """Nothing here is written in transactions."""

    def _replay_snapshot(
        self, offset: int, key: SharePartitionKey, value: ShareSnapshotValue | None
    ) -> None:
        self._last_snapshot_offset = offset
        if value is None:
            self.entries.pop(key, None)
            return
        before = self.entries.get(key)
        update_count = 0 if before is None else before.update_count
        if update_count >= self._config.share_coordinator_snapshot_update_records_per_snapshot:
            update_count = 0
        self.entries[key] = ShareEntry(
            snapshot_from(value),
            max(value.leader_epoch, NO_EPOCH if before is None else before.leader_epoch_max),
            max(value.state_epoch, NO_EPOCH if before is None else before.state_epoch_max),
            update_count,
            offset,
        )

    def _replay_update(self, key: SharePartitionKey, value: ShareUpdateValue) -> None:
        before = self.entries.get(key)
        if before is None:
            self.entries[key] = ShareEntry(
                snapshot_from_update(value), value.leader_epoch, NO_EPOCH, 1, NO_OFFSET
            )
            return
        self.entries[key] = replace(
            before,
            snapshot=before.snapshot.updated(value),
            leader_epoch_max=max(value.leader_epoch, before.leader_epoch_max),
            update_count=before.update_count + 1,
        )

    # Time.

    def on_loaded(self, now_ms: WallMs) -> Decision[None]:
        out = Outbox(now_ms)
        self._schedule_cold_snapshots(out)
        self._schedule_pruning(out)
        return out.decision(None)

    def on_timer(self, timer: Any, now_ms: WallMs) -> Decision[None]:
        out = Outbox(now_ms)
        if isinstance(timer, ColdSnapshotTimer):
            self._snapshot_cold_partitions(out)
            self._schedule_cold_snapshots(out)
            return out.decision(None, atomic=False)
        invariant(isinstance(timer, PruneTimer), f"{timer!r} is no timer of this shard")
        offset = self.redundant_offset
        if offset > 0:
            out.act(PruneUpTo(offset))
        self._schedule_pruning(out)
        # What is deleted must be superseded by something committed.
        return out.decision(None)

    def on_written(self, continuation: Any, error: ErrorCode, now_ms: WallMs) -> Decision[None]:
        invariant(False, "no decision of this shard has a continuation")
        return Decision(None)

    @property
    def redundant_offset(self) -> int:
        """Every record below is superseded."""
        return min(
            (entry.snapshot_offset for entry in self.entries.values()),
            default=self._last_snapshot_offset,
        )

    def _snapshot_cold_partitions(self, out: Outbox) -> None:
        snapshots = [entry.snapshot for entry in self.entries.values()]
        if all(snapshot.created_ms != snapshot.written_ms for snapshot in snapshots):
            # Nothing was written since the last ones: new snapshots would free nothing.
            return
        interval_ms = self._config.share_coordinator_cold_partition_snapshot_interval_ms
        for key, entry in self.entries.items():
            snapshot = entry.snapshot
            if out.now_ms - snapshot.written_ms >= interval_ms:
                out.write(
                    snapshot_record(
                        key,
                        replace(
                            snapshot,
                            snapshot_epoch=snapshot.snapshot_epoch + 1,
                            written_ms=out.now_ms,
                        ),
                    )
                )

    def _schedule_cold_snapshots(self, out: Outbox) -> None:
        out.schedule(
            ColdSnapshotTimer(), self._config.share_coordinator_cold_partition_snapshot_interval_ms
        )

    def _schedule_pruning(self, out: Outbox) -> None:
        out.schedule(PruneTimer(), self._config.share_coordinator_state_topic_prune_interval_ms)

    # Requests, each for one share partition.

    def initialize_state(
        self, key: SharePartitionKey, *, state_epoch: int, start_offset: int, now_ms: WallMs
    ) -> Decision[None]:
        _check_partition(key)
        entry = self.entries.get(key)
        _check_state_epoch(entry, state_epoch)
        self._check_topic(key)
        # Before the first offset is known nothing can be counted as delivered.
        unknown = start_offset == UNINITIALIZED_START_OFFSET
        if unknown and entry is not None:
            known_offset = entry.snapshot.start_offset
            if known_offset != UNINITIALIZED_START_OFFSET:
                # Asked for again because the first answer was late: since then members have
                # acknowledged records, which must not be forgotten.
                return Decision(None)
        snapshot = Snapshot(
            snapshot_epoch=0 if entry is None else entry.snapshot.snapshot_epoch + 1,
            state_epoch=state_epoch,
            leader_epoch=UNINITIALIZED_EPOCH,
            start_offset=start_offset,
            delivery_complete_count=UNINITIALIZED_DELIVERY_COMPLETE_COUNT if unknown else 0,
            batches=(),
            created_ms=now_ms,
            written_ms=now_ms,
        )
        return Decision(None, (snapshot_record(key, snapshot),))

    def read_state(
        self, key: SharePartitionKey, *, leader_epoch: int, now_ms: WallMs
    ) -> Decision[ShareState]:
        entry = self._initialized(key, "Read")
        if entry.leader_epoch_max > leader_epoch:
            raise _fenced_leader(entry, leader_epoch)
        self._check_topic(key)
        snapshot = entry.snapshot
        state = ShareState(snapshot.state_epoch, snapshot.start_offset, snapshot.batches)
        if leader_epoch in (NO_EPOCH, entry.leader_epoch_max):
            return Decision(state)
        record = self._state_record(
            key,
            entry,
            leader_epoch=leader_epoch,
            start_offset=snapshot.start_offset,
            delivery_complete_count=snapshot.delivery_complete_count,
            batches=(),
            now_ms=now_ms,
        )
        return Decision(state, (record,))

    def write_state(
        self,
        key: SharePartitionKey,
        *,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
        now_ms: WallMs,
    ) -> Decision[None]:
        entry = self._initialized(key, "Write")
        if any(batch.last_offset < batch.first_offset for batch in batches):
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"a state batch of {key} ends before it begins"
            )
        if leader_epoch != NO_EPOCH and entry.leader_epoch_max > leader_epoch:
            raise _fenced_leader(entry, leader_epoch)
        _check_state_epoch(entry, state_epoch)
        self._check_topic(key)
        record = self._state_record(
            key,
            entry,
            # Only reading makes a leader; a write leaves the epoch as it is.
            leader_epoch=entry.snapshot.leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=delivery_complete_count,
            batches=batches,
            now_ms=now_ms,
        )
        return Decision(None, (record,))

    def delete_state(self, key: SharePartitionKey) -> Decision[None]:
        _check_partition(key)
        self._check_topic(key)
        if key not in self.entries:
            return Decision(None)
        return Decision(None, (tombstone(key),))

    def read_summary(self, key: SharePartitionKey) -> Decision[ShareStateSummary]:
        _check_partition(key)
        self._check_topic(key)
        entry = self.entries.get(key)
        if entry is None:
            return Decision(ShareStateSummary())
        snapshot = entry.snapshot
        summary = ShareStateSummary(
            snapshot.state_epoch,
            snapshot.leader_epoch,
            snapshot.start_offset,
            snapshot.delivery_complete_count,
        )
        return Decision(summary)

    def forget_topics(self, topic_ids: Collection[UUID]) -> Decision[None]:
        """Delete the states of deleted topics, which can no longer be reached."""
        records = tuple(tombstone(key) for key in self.entries if key.topic_id in topic_ids)
        return Decision(None, records, atomic=False)

    # Parts of them.

    def _state_record(
        self,
        key: SharePartitionKey,
        entry: ShareEntry,
        *,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
        now_ms: WallMs,
    ) -> CoordinatorRecord:
        before = entry.snapshot
        limit = self._config.share_coordinator_snapshot_update_records_per_snapshot
        if entry.update_count < limit:
            return update_record(
                key,
                snapshot_epoch=before.snapshot_epoch,
                leader_epoch=leader_epoch,
                start_offset=start_offset,
                delivery_complete_count=delivery_complete_count,
                batches=combine((), batches, start_offset),
            )
        if start_offset == UNINITIALIZED_START_OFFSET:
            start_offset = before.start_offset
        snapshot = Snapshot(
            snapshot_epoch=before.snapshot_epoch + 1,
            state_epoch=before.state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=delivery_complete_count,
            batches=combine(before.batches, batches, start_offset),
            created_ms=now_ms,
            written_ms=now_ms,
        )
        return snapshot_record(key, snapshot)

    def _initialized(self, key: SharePartitionKey, operation: str) -> ShareEntry:
        _check_partition(key)
        entry = self.entries.get(key)
        if entry is None:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"{operation} operation on uninitialized share partition not allowed.",
            )
        return entry

    def _check_topic(self, key: SharePartitionKey) -> None:
        facts = self._topics.topic_by_id(key.topic_id)
        if facts is None or facts.partition_count <= key.partition:
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"no topic has the partition of {key}",
            )


def _key_of(key: ShareSnapshotKey | ShareUpdateKey) -> SharePartitionKey:
    return SharePartitionKey(key.group_id, key.topic_id, key.partition)


def _check_partition(key: SharePartitionKey) -> None:
    if key.partition < 0:
        raise ApiError(ErrorCode.INVALID_REQUEST, "The partition id cannot be a negative number.")


def _check_state_epoch(entry: ShareEntry | None, state_epoch: int) -> None:
    if entry is not None and state_epoch != NO_EPOCH and entry.state_epoch_max > state_epoch:
        raise ApiError(
            ErrorCode.FENCED_STATE_EPOCH,
            f"state epoch {state_epoch} is over, the current one is {entry.state_epoch_max}",
        )


def _fenced_leader(entry: ShareEntry, leader_epoch: int) -> ApiError:
    return ApiError(
        ErrorCode.FENCED_LEADER_EPOCH,
        f"leader epoch {leader_epoch} is over, epoch {entry.leader_epoch_max} has read the state",
    )
