"""RaftListener: where a quorum node publishes commits, snapshots and leaders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from moldau.broker.raft.machine.batches import MetadataBatch
from moldau.broker.raft.snapshots import Snapshot, SnapshotId


class RaftListener(Protocol):
    """The metadata layer. All calls come from the event loop, in the order of the log."""

    def on_committed(self, batches: Sequence[MetadataBatch]) -> None:
        """Each committed batch once."""
        ...

    def on_snapshot(self, snapshot_id: SnapshotId, snapshot: Snapshot) -> None:
        """The snapshot replaces everything that was committed before."""
        ...

    def on_leader(self, epoch: int, leader_id: int) -> None:
        """`leader_id` is -1 while none is known; if it is this node, `append` may be called."""
        ...

    def on_step_down(self, epoch: int) -> None:
        """What was appended in `epoch` and is not committed may never be."""
        ...

    def on_failure(self, error: BaseException) -> None:
        """The node has stopped taking part in the quorum."""
        ...
