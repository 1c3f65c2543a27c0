"""What must hold of the metadata quorum, looked at after every moment in which a node did anything.

The watch knows what was ever committed, by batch, and who led which epoch. What a node says is
compared when it is news: a new epoch, a new leader, a higher watermark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from moldau.broker.raft.machine.election_file import NO_NODE, Election
from moldau.broker.raft.node import RaftNode
from moldau.sim.world import Invariant, require
from moldau.wire.records import iterate_headers

READ_BYTES = 1 << 20


class Entry(NamedTuple):
    """A batch of the metadata log."""

    next_offset: int
    epoch: int
    crc: int


@dataclass(slots=True)
class _Seen:
    """What was last seen of one machine; the epoch outlives its processes."""

    boot: int = -1
    epoch: int = -1
    voted: int | None = None
    """In this epoch, by node id: a static quorum's file knows no more."""
    led_epoch: int = -1
    high_watermark: int = 0


class QuorumWatch:
    def __init__(self) -> None:
        self.committed: dict[int, Entry] = {}
        self.end_offset = 0
        self._last_base = -1
        self.leaders: dict[int, int] = {}
        self._seen: dict[int, _Seen] = {}

    def look(self, node_id: int, boot: int, raft: RaftNode) -> None:
        machine = raft.machine
        seen = self._seen.setdefault(node_id, _Seen())
        is_new = seen.boot != boot
        if is_new:
            seen.boot, seen.high_watermark, seen.led_epoch = boot, 0, -1
        epoch = machine.epoch
        if epoch != seen.epoch:
            require(
                epoch > seen.epoch,
                Invariant.QUORUM_EPOCH_KEPT,
                lambda: f"node {node_id} is in epoch {epoch} and was in {seen.epoch}",
            )
            seen.epoch, seen.voted = epoch, None
        self._look_at_vote(node_id, machine.election, seen)
        if machine.is_leader and seen.led_epoch != epoch:
            seen.led_epoch = epoch
            self._on_leader(node_id, epoch, raft)
        high_watermark = machine.high_watermark
        if high_watermark != seen.high_watermark:
            require(
                high_watermark > seen.high_watermark,
                Invariant.QUORUM_WATERMARK_KEPT,
                lambda: f"node {node_id}: from {seen.high_watermark} to {high_watermark}",
            )
            last = self._on_committed(node_id, raft, seen.high_watermark, high_watermark)
            # A node starts with what its snapshot holds, also if it is the only voter and leads.
            if machine.is_leader and last is not None and not is_new:
                require(
                    last.epoch == epoch,
                    Invariant.QUORUM_OWN_EPOCH,
                    lambda: f"node {node_id} commits {last} in epoch {epoch}",
                )
            seen.high_watermark = high_watermark

    def _look_at_vote(self, node_id: int, election: Election, seen: _Seen) -> None:
        voted = None if election.voted is None else election.voted.id
        if voted == seen.voted:
            return
        # Once it knows who leads it votes no more, so then it may forget.
        kept = seen.voted is None or (voted is None and election.leader_id != NO_NODE)
        require(
            kept,
            Invariant.QUORUM_VOTE_KEPT,
            lambda: f"node {node_id} in epoch {election.epoch}: {seen.voted}, then {voted}",
        )
        if voted is not None:
            seen.voted = voted

    def _on_leader(self, node_id: int, epoch: int, raft: RaftNode) -> None:
        known = self.leaders.setdefault(epoch, node_id)
        require(
            known == node_id,
            Invariant.QUORUM_LEADER_ONE,
            lambda: f"epoch {epoch} has the leaders {known} and {node_id}",
        )
        self.check_complete(node_id, raft)

    def check_complete(self, node_id: int, raft: RaftNode) -> None:
        """Everything that was committed is in this node's log, or in its snapshots."""
        log = raft.log
        require(
            log.end_offset >= self.end_offset,
            Invariant.METADATA_SURVIVES,
            lambda: (
                f"node {node_id} leads epoch {raft.epoch} and ends at {log.end_offset};"
                f" {self.end_offset} was committed"
            ),
        )
        base = self._last_base
        if base >= log.start_offset:
            found = _entries(raft, base, self.end_offset).get(base)
            require(
                found == self.committed[base],
                Invariant.METADATA_SURVIVES,
                lambda: f"node {node_id} has {found} at {base}, committed: {self.committed[base]}",
            )

    def _on_committed(self, node_id: int, raft: RaftNode, before: int, offset: int) -> Entry | None:
        log = raft.log
        require(
            offset <= log.end_offset,
            Invariant.QUORUM_COMMIT_AGREES,
            lambda: f"node {node_id} commits up to {offset}, its log ends at {log.end_offset}",
        )
        first = max(before, log.start_offset)
        if first >= offset:
            return None
        entry: Entry | None = None
        for base, entry in _entries(raft, first, offset).items():
            known = self.committed.setdefault(base, entry)
            require(
                known == entry,
                Invariant.QUORUM_COMMIT_AGREES,
                lambda base=base, entry=entry, known=known: (  # type: ignore[misc]
                    f"node {node_id} commits {entry} at {base}, {known} was committed there"
                ),
            )
            if entry.next_offset > self.end_offset:
                self.end_offset, self._last_base = entry.next_offset, base
        return entry


def _entries(raft: RaftNode, first: int, end: int) -> dict[int, Entry]:
    entries: dict[int, Entry] = {}
    offset = first
    while offset < end:
        data = raft.log.read_bytes(offset, READ_BYTES)
        for _, header in iterate_headers(data):
            if header.base_offset >= end:
                return entries
            entries[header.base_offset] = Entry(
                header.next_offset, header.partition_leader_epoch, header.crc
            )
            offset = header.next_offset
        if not data:
            break
    return entries
