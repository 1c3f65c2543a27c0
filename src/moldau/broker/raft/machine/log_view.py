"""What the quorum machine sees of its own log, and where a replica's log leaves it."""

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
        """The epoch of the last record, 0 where there is none."""
        ...

    @property
    def snapshots(self) -> Sequence[SnapshotId]:
        """Oldest first; the oldest ends where the log starts or after."""
        ...

    def end_of_epoch(self, epoch: int) -> EndOfEpoch:
        """The greatest epoch not above `epoch` that the log knows, and where it ends; the log's
        own end when it knows none."""
        ...


def position_of(log: LogView, offset: int, last_epoch: int) -> EndOfEpoch | SnapshotId | None:
    """None if a log that ends at (`offset`, `last_epoch`) is a beginning of `log`.

    Else where it diverges, or the snapshot it has to begin with because the log does not reach
    back so far.
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
    """Where to cut `log`, which the leader says ends its common part at `diverging` or before."""
    if diverging.epoch == 0:
        return min(diverging.end_offset, log.end_offset)
    own = log.end_of_epoch(diverging.epoch)
    if own.epoch == diverging.epoch:
        return min(own.end_offset, diverging.end_offset)
    return own.end_offset
