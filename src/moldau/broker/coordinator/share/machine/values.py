"""What is stored of a share partition, as its leader, its coordinator and their messages say it."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from moldau.wire.uuids import uuid_to_text

UNINITIALIZED_START_OFFSET = -1
UNINITIALIZED_DELIVERY_COMPLETE_COUNT = -1


class SharePartitionKey(NamedTuple):
    """One partition as one share group consumes it."""

    group_id: str
    topic_id: UUID
    partition: int

    def __str__(self) -> str:
        """Kafka's coordinator key: its hash names the partition of `__share_group_state`."""
        return f"{self.group_id}:{uuid_to_text(self.topic_id)}:{self.partition}"


class StateBatch(NamedTuple):
    """Records `first_offset` to `last_offset`, which share a state: 0 available, 2 acknowledged,
    4 archived."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


class ShareState(NamedTuple):
    state_epoch: int
    start_offset: int
    """`UNINITIALIZED_START_OFFSET`: the group's share.auto.offset.reset decides."""
    batches: tuple[StateBatch, ...] = ()


class ShareStateSummary(NamedTuple):
    """Where a share partition stands, without its records' states.

    A partition that was never initialized has the defaults.
    """

    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = UNINITIALIZED_START_OFFSET
    delivery_complete_count: int = UNINITIALIZED_DELIVERY_COMPLETE_COUNT
