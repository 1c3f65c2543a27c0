"""What happens to the quorum machine, and what it wants done.

Effects are performed in order, and each before the next: what is to be on disk before anybody is
told stands before the telling.
"""

from __future__ import annotations

from dataclasses import dataclass

from moldau.broker.raft.machine.election_file import Election
from moldau.broker.raft.machine.rpcs import (
    FetchAsked,
    FetchReply,
    Peer,
    Reply,
    Request,
    SnapshotAsked,
    SnapshotReply,
)
from moldau.broker.raft.machine.snapshot_id import SnapshotId
from moldau.broker.raft.machine.voters import ReplicaKey, VoterSet


@dataclass(frozen=True, slots=True)
class Started:
    """The node has loaded its log."""


@dataclass(frozen=True, slots=True)
class TimePassed:
    """Nothing but time; due when the machine's `deadline_ms` is reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A request came; it is answered by an `Answer`, now or later, under the same token."""

    token: int
    request: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What became of a `Send`: its reply, or None when none came in time.

    `refused`: there was none because nothing listens at the peer's address.
    """

    request_id: int
    reply: Reply | None
    refused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumChange:
    """Control records at `offset` that say who the voters are, or how they are to be read."""

    offset: int
    voters: VoterSet | None = None
    kraft_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """The own log has grown; not necessarily synced."""

    changes: tuple[QuorumChange, ...] = ()


@dataclass(frozen=True, slots=True)
class AppendFailed:
    """What the leader sent could not be appended; the log is as it was."""


@dataclass(frozen=True, slots=True)
class Synced:
    """Everything before `end_offset` is on the own disk, and nothing that was cut off."""

    end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotInstalled:
    """The log was replaced by a snapshot, which is on disk, and begins at its end."""

    snapshot_id: SnapshotId
    kraft_version: int
    voters: VoterSet | None


@dataclass(frozen=True, slots=True)
class Resigned:
    """The node cannot go on leading this epoch."""

    epoch: int


@dataclass(frozen=True, slots=True)
class ShutDown:
    """The node takes part no more; a leader says so to the others."""


Event = (
    Started
    | TimePassed
    | Received
    | Answered
    | Appended
    | AppendFailed
    | Synced
    | SnapshotInstalled
    | Resigned
    | ShutDown
)


@dataclass(frozen=True, slots=True)
class PersistElection:
    """Write and sync the quorum-state file before performing the effects that follow."""

    election: Election


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    request_id: int
    to: Peer
    request: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    token: int
    reply: Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRecords:
    """Answer with batches of the own log from `reply.read_from` on."""

    token: int
    request: FetchAsked
    reply: FetchReply


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerChunk:
    """Answer with a part of a snapshot; POSITION_OUT_OF_RANGE where it has no such position."""

    token: int
    request: SnapshotAsked
    reply: SnapshotReply


@dataclass(frozen=True, slots=True, kw_only=True)
class BecomeLeader:
    """Append a LeaderChange record of this epoch, and `voters_record` unless it is None."""

    epoch: int
    voters: tuple[ReplicaKey, ...]
    granting: tuple[ReplicaKey, ...]
    voters_record: VoterSet | None


@dataclass(frozen=True, slots=True)
class AppendVoters:
    voters: VoterSet


@dataclass(frozen=True, slots=True)
class StepDown:
    """Accept no more decisions; those not committed fail."""

    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderChanged:
    """`leader_id` is -1 while none is known."""

    epoch: int
    leader_id: int


@dataclass(frozen=True, slots=True)
class AppendRecords:
    """Append what the leader sent, then sync."""

    records: bytes | memoryview


@dataclass(frozen=True, slots=True)
class TruncateTo:
    """Cut the log so that it ends before `offset`, durably; then report what is synced."""

    offset: int


@dataclass(frozen=True, slots=True)
class StartSnapshot:
    snapshot_id: SnapshotId


@dataclass(frozen=True, slots=True)
class AppendChunk:
    chunk: bytes | memoryview


@dataclass(frozen=True, slots=True)
class FinishSnapshot:
    """Sync the fetched snapshot and put it in the place of the whole log."""

    snapshot_id: SnapshotId


@dataclass(frozen=True, slots=True)
class DropSnapshot:
    """The leader has it no longer: forget what was fetched of it."""


@dataclass(frozen=True, slots=True)
class CommitUpTo:
    """Everything before `offset` is committed."""

    offset: int


Effect = (
    PersistElection
    | Send
    | Answer
    | AnswerRecords
    | AnswerChunk
    | BecomeLeader
    | AppendVoters
    | StepDown
    | LeaderChanged
    | AppendRecords
    | TruncateTo
    | StartSnapshot
    | AppendChunk
    | FinishSnapshot
    | DropSnapshot
    | CommitUpTo
)
