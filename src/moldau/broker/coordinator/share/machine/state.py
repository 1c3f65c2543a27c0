"""The state of one share partition, and its records."""

from __future__ import annotations

from dataclasses import dataclass, replace

from moldau.broker.coordinator.machine.decision import CoordinatorRecord
from moldau.broker.coordinator.share.machine.combiner import combine
from moldau.broker.coordinator.share.machine.values import (
    UNINITIALIZED_START_OFFSET,
    SharePartitionKey,
    StateBatch,
)
from moldau.wire.constants import NO_EPOCH
from moldau.wire.messages import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)

#: The times of a state whose snapshot is missing, as in Kafka.
TIMESTAMP_UNKNOWN = 0
UNINITIALIZED_EPOCH = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole state of a share partition at one moment."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]
    created_ms: int
    written_ms: int
    """Later than `created_ms` if the snapshot only repeats an older one."""

    def updated(self, value: ShareUpdateValue) -> Snapshot:
        start_offset = value.start_offset
        if start_offset == UNINITIALIZED_START_OFFSET:
            start_offset = self.start_offset
        return replace(
            self,
            start_offset=start_offset,
            delivery_complete_count=value.delivery_complete_count,
            leader_epoch=self.leader_epoch
            if value.leader_epoch == NO_EPOCH
            else value.leader_epoch,
            batches=combine(self.batches, _batches_of(value.state_batches), start_offset),
        )


@dataclass(frozen=True, slots=True)
class ShareEntry:
    """One share partition; replaced as a whole by replay.

    The highest epochs outlive a new initialisation, whose snapshot names no leader yet.
    """

    snapshot: Snapshot
    leader_epoch_max: int
    state_epoch_max: int
    update_count: int
    snapshot_offset: int
    """Where the last snapshot record is; everything older of this partition is redundant."""


def snapshot_from(value: ShareSnapshotValue) -> Snapshot:
    return Snapshot(
        value.snapshot_epoch,
        value.state_epoch,
        value.leader_epoch,
        value.start_offset,
        value.delivery_complete_count,
        _batches_of(value.state_batches),
        value.create_timestamp,
        value.write_timestamp,
    )


def snapshot_from_update(value: ShareUpdateValue) -> Snapshot:
    """The state if the snapshot before the update is missing."""
    return Snapshot(
        value.snapshot_epoch,
        UNINITIALIZED_EPOCH,
        value.leader_epoch,
        value.start_offset,
        value.delivery_complete_count,
        _batches_of(value.state_batches),
        TIMESTAMP_UNKNOWN,
        TIMESTAMP_UNKNOWN,
    )


def snapshot_record(key: SharePartitionKey, snapshot: Snapshot) -> CoordinatorRecord:
    return CoordinatorRecord(
        _snapshot_key(key),
        ShareSnapshotValue(
            snapshot_epoch=snapshot.snapshot_epoch,
            state_epoch=snapshot.state_epoch,
            leader_epoch=snapshot.leader_epoch,
            start_offset=snapshot.start_offset,
            delivery_complete_count=snapshot.delivery_complete_count,
            create_timestamp=snapshot.created_ms,
            write_timestamp=snapshot.written_ms,
            state_batches=[
                ShareSnapshotValue.StateBatch(
                    first_offset=batch.first_offset,
                    last_offset=batch.last_offset,
                    delivery_state=batch.delivery_state,
                    delivery_count=batch.delivery_count,
                )
                for batch in snapshot.batches
            ],
        ),
    )


def update_record(
    key: SharePartitionKey,
    *,
    snapshot_epoch: int,
    leader_epoch: int,
    start_offset: int,
    delivery_complete_count: int,
    batches: tuple[StateBatch, ...],
) -> CoordinatorRecord:
    return CoordinatorRecord(
        ShareUpdateKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition),
        ShareUpdateValue(
            snapshot_epoch=snapshot_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=delivery_complete_count,
            state_batches=[
                ShareUpdateValue.StateBatch(
                    first_offset=batch.first_offset,
                    last_offset=batch.last_offset,
                    delivery_state=batch.delivery_state,
                    delivery_count=batch.delivery_count,
                )
                for batch in batches
            ],
        ),
    )


def tombstone(key: SharePartitionKey) -> CoordinatorRecord:
    """Removes snapshot and updates alike."""
    return CoordinatorRecord(_snapshot_key(key), None)


def _snapshot_key(key: SharePartitionKey) -> ShareSnapshotKey:
    return ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)


def _batches_of(
    batches: list[ShareSnapshotValue.StateBatch] | list[ShareUpdateValue.StateBatch],
) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(
            batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count
        )
        for batch in batches
    )
