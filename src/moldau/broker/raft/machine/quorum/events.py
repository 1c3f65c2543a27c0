"""Events and effects of the quorum machine.

Effects are performed in order, each before the next and all before the next event. The order
matters in three places: PersistElection comes before every message of its epoch, StepDown before
the LeaderChanged that names another leader, BecomeLeader before the one that names this node.
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
    """The node has loaded its log. The first event, once."""


@dataclass(frozen=True, slots=True)
class TimePassed:
    """The machine's `deadline_ms` is reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A request of another node. One Answer effect, now or later, has the same token."""

    token: int
    request: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The response to a Send; None if none came in time.

    `refused`: there is none because the peer's address refuses connections.
    """

    request_id: int
    reply: Reply | None
    refused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumChange:
    """Control records at `offset`: the voters, and the kraft.version of their format."""

    offset: int
    voters: VoterSet | None = None
    kraft_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """The log has grown; what was appended is not necessarily on disk yet."""

    changes: tuple[QuorumChange, ...] = ()


@dataclass(frozen=True, slots=True)
class AppendFailed:
    """The leader's records could not be appended; the log is as it was."""


@dataclass(frozen=True, slots=True)
class Synced:
    """Everything before `end_offset` is on disk, and nothing that was truncated."""

    end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotInstalled:
    """A snapshot, which is on disk, has replaced the log; the log begins and ends at its end."""

    snapshot_id: SnapshotId
    kraft_version: int
    voters: VoterSet | None


@dataclass(frozen=True, slots=True)
class ShutDown:
    """The node takes part no longer; a leader informs the other voters first."""


Event = (
    Started
    | TimePassed
    | Received
    | Answered
    | Appended
    | AppendFailed
    | Synced
    | SnapshotInstalled
    | ShutDown
)


@dataclass(frozen=True, slots=True)
class PersistElection:
    """Write the quorum-state file and sync it before the effects that follow."""

    election: Election


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Send a request; one Answered event has the same `request_id`, unless the node stops."""

    request_id: int
    to: Peer
    request: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Answer the request that was Received with this token."""

    token: int
    reply: Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRecords:
    """Answer with the batches of the log from `reply.read_from` on."""

    token: int
    request: FetchAsked
    reply: FetchReply


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerChunk:
    """Answer with a chunk of a snapshot; POSITION_OUT_OF_RANGE if the position is not in it."""

    token: int
    request: SnapshotAsked
    reply: SnapshotReply


@dataclass(frozen=True, slots=True, kw_only=True)
class BecomeLeader:
    """Append a LeaderChange record of this epoch, and `voters_record` unless it is None.

    Appended follows as an event, then Synced when it is on disk.
    """

    epoch: int
    voters: tuple[ReplicaKey, ...]
    granting: tuple[ReplicaKey, ...]
    voters_record: VoterSet | None


@dataclass(frozen=True, slots=True)
class AppendVoters:
    """Append the voter set as a control record; Appended and Synced follow as events."""

    voters: VoterSet


@dataclass(frozen=True, slots=True)
class StepDown:
    """Append nothing more in this epoch; what is not committed may never be."""

    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderChanged:
    """Publish the leader; `leader_id` is -1 while none is known."""

    epoch: int
    leader_id: int


@dataclass(frozen=True, slots=True)
class AppendRecords:
    """Append the leader's records; Appended or AppendFailed follows, then Synced."""

    records: bytes | memoryview


@dataclass(frozen=True, slots=True)
class TruncateTo:
    """Truncate the log so that it ends before `offset`; Synced follows when that is on disk."""

    offset: int


@dataclass(frozen=True, slots=True)
class StartSnapshot:
    """Begin a file for a snapshot that is being fetched; one begun before is dropped."""

    snapshot_id: SnapshotId


@dataclass(frozen=True, slots=True)
class AppendChunk:
    """Append to the file of the snapshot that is being fetched."""

    chunk: bytes | memoryview


@dataclass(frozen=True, slots=True)
class FinishSnapshot:
    """Sync the fetched snapshot and replace the log with it; SnapshotInstalled follows."""

    snapshot_id: SnapshotId


@dataclass(frozen=True, slots=True)
class DropSnapshot:
    """Drop the file of the snapshot that is being fetched."""


@dataclass(frozen=True, slots=True)
class CommitUpTo:
    """Deliver the batches before `offset`: they are committed."""

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
