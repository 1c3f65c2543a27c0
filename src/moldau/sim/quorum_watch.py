"""The invariants of the metadata quorum, checked after every moment in which a node did anything.

The watch knows every batch that was ever committed, and the leader of every epoch. A node is
checked where something is new: its epoch, its vote, its leader, its high watermark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from moldau.broker.raft.log import RaftLog
from moldau.broker.raft.machine.election_file import NO_NODE, Election
from moldau.broker.raft.machine.quorum.machine import QuorumMachine
from moldau.sim.world import Invariant, require
from moldau.wire.records import iterate_headers

READ_BYTES = 1 << 20


class Entry(NamedTuple):
    """A batch of a log; `content` is equal where the records are, such as a checksum."""

    next_offset: int
    epoch: int
    content: object


class WatchedLog(Protocol):
    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    def batches(self, first: int, end: int) -> dict[int, Entry]:
        """The batches from offset `first` on that begin before `end`, by base offset."""
        ...


class StoredBatches:
    """The batches of a log on disk."""

    def __init__(self, log: RaftLog) -> None:
        self._log = log

    @property
    def start_offset(self) -> int:
        return self._log.start_offset

    @property
    def end_offset(self) -> int:
        return self._log.end_offset

    def batches(self, first: int, end: int) -> dict[int, Entry]:
        found: dict[int, Entry] = {}
        offset = first
        while offset < end:
            data = self._log.read_bytes(offset, READ_BYTES)
            for _, header in iterate_headers(data):
                if header.base_offset >= end:
                    return found
                found[header.base_offset] = Entry(
                    header.next_offset, header.partition_leader_epoch, header.crc
                )
                offset = header.next_offset
            if not data:
                break
        return found


@dataclass(slots=True)
class _Seen:
    """What was last seen of one machine; the epoch and the vote outlive its processes."""

    boot: int = -1
    epoch: int = -1
    voted: int | None = None
    """In this epoch, by node id: the file of a static quorum has no more."""
    led_epoch: int = -1
    high_watermark: int = 0


class QuorumWatch:
    def __init__(self) -> None:
        self.committed: dict[int, Entry] = {}
        self.end_offset = 0
        self._last_base = -1
        self.leaders: dict[int, int] = {}
        self._seen: dict[int, _Seen] = {}

    def look(self, node_id: int, boot: int, machine: QuorumMachine, log: WatchedLog) -> None:
        """`boot` counts the processes of the node."""
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
            self._on_leader(node_id, epoch, log)
        high_watermark = machine.high_watermark
        if high_watermark != seen.high_watermark:
            require(
                high_watermark > seen.high_watermark,
                Invariant.QUORUM_WATERMARK_KEPT,
                lambda: f"node {node_id}: from {seen.high_watermark} to {high_watermark}",
            )
            last = self._on_committed(node_id, log, seen.high_watermark, high_watermark)
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
        # Once it knows the leader it votes no more, so the vote may be dropped.
        kept = seen.voted is None or (voted is None and election.leader_id != NO_NODE)
        require(
            kept,
            Invariant.QUORUM_VOTE_KEPT,
            lambda: f"node {node_id} in epoch {election.epoch}: {seen.voted}, then {voted}",
        )
        if voted is not None:
            seen.voted = voted

    def _on_leader(self, node_id: int, epoch: int, log: WatchedLog) -> None:
        known = self.leaders.setdefault(epoch, node_id)
        require(
            known == node_id,
            Invariant.QUORUM_LEADER_ONE,
            lambda: f"epoch {epoch} has the leaders {known} and {node_id}",
        )
        require(
            log.end_offset >= self.end_offset,
            Invariant.METADATA_SURVIVES,
            lambda: (
                f"node {node_id} leads epoch {epoch} and ends at {log.end_offset};"
                f" {self.end_offset} was committed"
            ),
        )
        base = self._last_base
        if base >= log.start_offset:
            found = log.batches(base, self.end_offset).get(base)
            require(
                found == self.committed[base],
                Invariant.METADATA_SURVIVES,
                lambda: f"node {node_id} has {found} at {base}, committed: {self.committed[base]}",
            )

    def _on_committed(
        self, node_id: int, log: WatchedLog, before: int, offset: int
    ) -> Entry | None:
        require(
            offset <= log.end_offset,
            Invariant.QUORUM_COMMIT_AGREES,
            lambda: f"node {node_id} commits up to {offset}, its log ends at {log.end_offset}",
        )
        first = max(before, log.start_offset)
        if first >= offset:
            return None
        entry: Entry | None = None
        for base, entry in log.batches(first, offset).items():
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
