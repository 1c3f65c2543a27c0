"""A metadata log in memory, for quorum machines without a shell.

Records are payloads of any type; a VoterSet is the control record of that name.
"""

from __future__ import annotations

import pickle
import random
from dataclasses import dataclass
from typing import Any

from moldau.broker.raft.machine.quorum import events as e
from moldau.broker.raft.machine.rpcs import EndOfEpoch
from moldau.broker.raft.machine.snapshot_id import SnapshotId
from moldau.broker.raft.machine.voter_history import VoterHistory
from moldau.broker.raft.machine.voters import VoterSet
from moldau.sim import quorum_watch


@dataclass(frozen=True, slots=True)
class Entry:
    epoch: int
    payload: Any


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    payloads: tuple[Any, ...]
    kraft_version: int
    voters: VoterSet | None


class MemoryLog:
    """A log in memory that knows which part of it would survive a power failure."""

    def __init__(self, *, keep_diverging: bool = False) -> None:
        self.start_offset = 0
        self.entries: list[Entry] = []
        self.synced_offset = 0
        self.stored: dict[SnapshotId, StoredSnapshot] = {}
        self._keep_diverging = keep_diverging
        # What a truncation that is not synced yet might bring back at a crash.
        self._cut_off: list[Entry] = []

    @property
    def end_offset(self) -> int:
        return self.start_offset + len(self.entries)

    @property
    def snapshots(self) -> list[SnapshotId]:
        return sorted(self.stored)

    @property
    def last_epoch(self) -> int:
        if self.entries:
            return self.entries[-1].epoch
        return self.snapshots[-1].epoch if self.stored else 0

    def end_of_epoch(self, epoch: int) -> EndOfEpoch:
        if self._keep_diverging:
            return EndOfEpoch(epoch=epoch, end_offset=self.end_offset)
        known = [x.epoch for x in self.entries if x.epoch <= epoch]
        if not self.entries or epoch > self.entries[-1].epoch:
            return EndOfEpoch(epoch=self.last_epoch, end_offset=self.end_offset)
        if not known:
            if self.stored and self.snapshots[0].epoch <= epoch:
                oldest = self.snapshots[0]
                return EndOfEpoch(epoch=oldest.epoch, end_offset=self.start_offset)
            return EndOfEpoch(epoch=epoch, end_offset=self.start_offset)
        return EndOfEpoch(epoch=known[-1], end_offset=self.start_offset + len(known))

    def entry(self, offset: int) -> Entry | None:
        index = offset - self.start_offset
        return self.entries[index] if 0 <= index < len(self.entries) else None

    def append(self, entries: list[Entry]) -> int:
        offset = self.end_offset
        self.entries += entries
        return offset

    def truncate_to(self, offset: int) -> None:
        index = offset - self.start_offset
        self._cut_off = self.entries[index:]
        del self.entries[index:]
        self.synced_offset = min(self.synced_offset, offset)

    def sync(self, offset: int) -> None:
        self.synced_offset = max(self.synced_offset, min(offset, self.end_offset))
        self._cut_off = []

    def install(self, snapshot_id: SnapshotId, snapshot: StoredSnapshot) -> None:
        self.stored = {snapshot_id: snapshot}
        self.start_offset = self.synced_offset = snapshot_id.end_offset
        self.entries, self._cut_off = [], []

    def compact(self, snapshot_id: SnapshotId, snapshot: StoredSnapshot) -> None:
        """Take a snapshot and drop the log before the one before it."""
        older = self.snapshots[-1:]
        self.stored[snapshot_id] = snapshot
        for old in older:
            if old.end_offset > self.start_offset:
                del self.entries[: old.end_offset - self.start_offset]
                self.start_offset = old.end_offset
            self.stored = {i: s for i, s in self.stored.items() if i >= old}

    def lose_power(self, rng: random.Random) -> None:
        kept = rng.randint(self.synced_offset, self.end_offset)
        if self._cut_off and kept == self.end_offset and rng.random() < 0.5:
            self.entries += self._cut_off
        else:
            del self.entries[kept - self.start_offset :]
        self._cut_off = []
        self.synced_offset = min(self.synced_offset, self.end_offset)
        if self.stored and self.end_offset < self.snapshots[-1].end_offset:
            newest = self.snapshots[-1]
            self.install(newest, self.stored[newest])

    # For the shell of a machine ---------------------------------------------------------

    def history(self, static: VoterSet) -> tuple[VoterHistory, int]:
        """The voters at each offset, and the offset up to which a snapshot has everything."""
        history, known = VoterHistory(static), 0
        if self.stored:
            newest = self.snapshots[-1]
            stored = self.stored[newest]
            known = newest.end_offset
            history.reset(known - 1, stored.kraft_version, stored.voters)
        for offset in range(max(known, self.start_offset), self.end_offset):
            entry = self.entry(offset)
            if entry is not None and isinstance(entry.payload, VoterSet):
                history.add(offset, 1, entry.payload)
        return history, known

    def perform(
        self, effect: e.BecomeLeader | e.AppendVoters | e.AppendRecords, node_id: int, epoch: int
    ) -> e.Appended:
        match effect:
            case e.BecomeLeader():
                entries = [Entry(effect.epoch, f"leader {node_id}")]
                if effect.voters_record is not None:
                    entries.append(Entry(effect.epoch, effect.voters_record))
            case e.AppendVoters(voters):
                entries = [Entry(epoch, voters)]
            case e.AppendRecords(records):
                entries = pickle.loads(bytes(records))
        offset = self.append(entries)
        changes = (
            e.QuorumChange(offset=offset + i, voters=entry.payload, kraft_version=1)
            for i, entry in enumerate(entries)
            if isinstance(entry.payload, VoterSet)
        )
        return e.Appended(changes=tuple(changes))

    def packed(self, offset: int, count_max: int) -> bytes:
        """Entries as a fetch response has them."""
        found = self.entries[offset - self.start_offset :][:count_max]
        return pickle.dumps(found) if found else b""

    def batches(self, first: int, end: int) -> dict[int, quorum_watch.Entry]:
        found = ((offset, self.entry(offset)) for offset in range(first, end))
        return {
            offset: quorum_watch.Entry(offset + 1, entry.epoch, entry.payload)
            for offset, entry in found
            if entry is not None
        }
