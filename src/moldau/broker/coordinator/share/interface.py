"""How share-partition leaders and the group coordinator reach the stored state of share partitions.

The state lives with the share coordinator, keyed by group, topic and partition. `Persister` is what
its users see, wherever the coordinator runs; `broker/share` finds it, and tries again while it
moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from moldau.broker.coordinator.share.machine.values import (
    SharePartitionKey,
    ShareState,
    ShareStateSummary,
    StateBatch,
)
from moldau.wire.constants import NO_EPOCH


class Persister(Protocol):
    """Each call is one share partition; all raise ApiError.

    FENCED_STATE_EPOCH: the group was reset or recreated since; FENCED_LEADER_EPOCH: a newer leader
    has read the state; INVALID_REQUEST: never initialised, or deleted; UNKNOWN_TOPIC_OR_PARTITION:
    the topic is gone; coordinator errors: after retries.
    """

    async def initialize_state(
        self, key: SharePartitionKey, *, state_epoch: int, start_offset: int
    ) -> None:
        """Reset the state to `start_offset`, with no batches."""
        ...

    async def read_state(self, key: SharePartitionKey, *, leader_epoch: int) -> ShareState:
        """The whole state; leaders with a lower epoch are fenced from now on."""
        ...

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
        """Merge the batches into the state; a start offset of -1 leaves the stored one."""
        ...

    async def delete_state(self, key: SharePartitionKey) -> None:
        """Forget the partition; that there is nothing to forget is no error."""
        ...

    async def read_summary(
        self, key: SharePartitionKey, *, leader_epoch: int = NO_EPOCH
    ) -> ShareStateSummary: ...
