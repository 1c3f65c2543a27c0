"""The log as the quorum machine sees it, and where a replica's log diverges from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from moldau.broker.raft.machine.rpcs import EndOfEpoch
from moldau.broker.raft.machine.snapshot_id import SnapshotId

BOOTSTRAP_SNAPSHOT = SnapshotId(0, 0)


class LogView(Protocol):
    @property
    def end_offset(self) -> int: ...

    @property
    def start_offset(self) -> int: ...

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, 0 if there is none."""
        ...

    @property
    def snapshots(self) -> Sequence[SnapshotId]:
        """Oldest first; the oldest ends where the log starts or after."""
        ...

    def end_of_epoch(self, epoch: int) -> EndOfEpoch:
        """The highest epoch in the log that is not above `epoch`, and where it ends; the log's end
        if there is none."""
        ...


def position_of(log: LogView, offset: int, last_epoch: int) -> EndOfEpoch | SnapshotId | None:
    """None if a log that ends at (`offset`, `last_epoch`) is a beginning of `log`.

    Otherwise where it diverges, or the snapshot to begin with if the log starts later.
    """
    newest = log.snapshots[-1] if log.snapshots else None
    if offset == 0 and newest is not None and newest != BOOTSTRAP_SNAPSHOT:
        return newest
    if offset == 0 and log.start_offset == 0:
        return None
    oldest = log.snapshots[0] if log.snapshots else None
    if oldest is not None and newest is not None:
        at_start = offset == log.start_offset and last_epoch != oldest.epoch
        if offset < log.start_offset or at_start or last_epoch < oldest.epoch:
            return newest
    end = log.end_of_epoch(last_epoch)
    if end.epoch != last_epoch or end.end_offset < offset:
        return end
    return None


def truncation_offset(log: LogView, diverging: EndOfEpoch) -> int:
    """Where to truncate `log`, which agrees with the leader's at most up to `diverging`."""
    if diverging.epoch == 0:
        return min(diverging.end_offset, log.end_offset)
    own = log.end_of_epoch(diverging.epoch)
    if own.epoch == diverging.epoch:
        return min(own.end_offset, diverging.end_offset)
    return own.end_offset
