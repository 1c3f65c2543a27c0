"""BatchLog: the metadata log as decoded batches, from the append to the commit.

A batch is decoded when it is appended, and stays in memory until it is committed, so that it is
decoded once.

Invariants: every committed batch is returned by `commit` once, in the order of the log; a response
of the leader is checked as a whole before any of it is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moldau.broker.metrics.quorum import QuorumTimes
from moldau.broker.raft.log import RaftLog
from moldau.broker.raft.machine.batches import (
    MetadataBatch,
    decode_metadata_batches,
    encode_controls,
)
from moldau.broker.raft.machine.quorum.events import QuorumChange
from moldau.broker.raft.machine.recent_batches import RecentBatches
from moldau.broker.raft.machine.voter_history import VoterHistory
from moldau.broker.raft.machine.voters import VoterSet
from moldau.broker.raft.snapshots import Snapshot, SnapshotId
from moldau.times import WallMs
from moldau.wire.messages import KRaftVersionRecord, VotersRecord


class BatchLog:
    def __init__(self, log: RaftLog) -> None:
        self._log = log
        self._recent = RecentBatches()
        #: Everything before it was returned by `commit`, or is in a snapshot.
        self.delivered_offset = log.start_offset
        #: Measures the log, on a node with metrics.
        self.times: QuorumTimes | None = None

    def load(
        self, static_voters: VoterSet, newest_snapshot: tuple[SnapshotId, Snapshot] | None
    ) -> VoterHistory:
        """Read the log after the newest snapshot: the voters at each offset."""
        history = VoterHistory(static_voters)
        if newest_snapshot is not None:
            snapshot_id, snapshot = newest_snapshot
            self.delivered_offset = snapshot_id.end_offset
            history.reset(snapshot_id.end_offset - 1, snapshot.kraft_version, snapshot.voters)
        for batch in self._log.read(self.delivered_offset):
            self._recent.add(batch)
            for change in quorum_changes(batch):
                history.add(change.offset, change.kraft_version, change.voters)
        return history

    def read(self, from_offset: int) -> Iterator[MetadataBatch]:
        """Every batch that ends after `from_offset`, in order, committed or not."""
        recent = self._recent.start_offset
        if recent is None or recent > from_offset:
            for batch in self._log.read(from_offset):
                if batch.base_offset == recent:
                    break
                yield batch
            else:
                return
        yield from self._recent.from_offset(from_offset)

    def changes_since(self, offset: int) -> tuple[QuorumChange, ...]:
        return tuple(change for batch in self.read(offset) for change in quorum_changes(batch))

    def append(
        self, data: bytes, *, epoch: int, now_ms: WallMs, batch: MetadataBatch | None
    ) -> None:
        """Append one encoded batch; `batch` is the same decoded, if it is at hand."""
        before = self._log.end_offset
        self._log.append(data, epoch=epoch, now_ms=now_ms)
        if self.times is not None:
            self.times.appended(before, self._log.end_offset)
        if batch is None:
            self._recent.clear()
        else:
            self._recent.add(batch)

    def append_controls(self, controls: list[Any], *, epoch: int, now_ms: WallMs) -> None:
        log = self._log
        data = encode_controls(controls, base_offset=log.end_offset, epoch=epoch, now_ms=now_ms)
        log.append(data, epoch=epoch, now_ms=now_ms)
        for batch in decode_metadata_batches(data, "the leader's own batch"):
            self._recent.add(batch)

    def append_fetched(self, records: bytes | memoryview, *, now_ms: WallMs) -> None:
        """Append a leader's batches; ApiError or DamagedBatch if they do not fit the log."""
        before = self._log.end_offset
        try:
            batches = list(decode_metadata_batches(records, "the leader's response"))
            self._log.append_fetched(records, now_ms=now_ms)
            if self.times is not None:
                self.times.fetched(before, self._log.end_offset)
        except Exception:
            self._recent.clear()
            raise
        for batch in batches:
            if before <= batch.base_offset and batch.next_offset <= self._log.end_offset:
                self._recent.add(batch)

    def truncate_to(self, offset: int, *, now_ms: WallMs) -> None:
        self._recent.truncate_to(offset)
        self._log.truncate_to(offset, now_ms=now_ms)

    def commit(self, offset: int) -> list[MetadataBatch]:
        """The batches that are committed by that."""
        self._log.commit(offset)
        if self.times is not None:
            self.times.committed(offset)
        batches = []
        if self.delivered_offset < offset:
            for batch in self.read(self.delivered_offset):
                if batch.base_offset >= offset:
                    break
                batches.append(batch)
        self.delivered_offset = offset
        self._recent.forget_before(offset)
        return batches

    def begin_at(self, offset: int) -> None:
        """A snapshot has replaced everything before `offset`, which is now all that there is."""
        self._recent.clear()
        self.delivered_offset = offset


def quorum_changes(batch: MetadataBatch) -> list[QuorumChange]:
    changes = []
    for index, control in enumerate(batch.controls):
        offset = batch.base_offset + index
        if isinstance(control, KRaftVersionRecord):
            changes.append(QuorumChange(offset=offset, kraft_version=control.kraft_version))
        elif isinstance(control, VotersRecord):
            voters = VoterSet.from_record(control)
            changes.append(QuorumChange(offset=offset, voters=voters))
    return changes
