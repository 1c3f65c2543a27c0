"""The requests and responses between nodes of a quorum, without versions of the wire format.

Every response has the epoch of its sender and the leader it knows, so that any exchange brings the
node that is behind up to date. `asking_codec.py` and `answering_codec.py` convert to Kafka's
messages and back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from moldau.broker.raft.machine.election_file import NO_NODE
from moldau.broker.raft.machine.snapshot_id import SnapshotId
from moldau.broker.raft.machine.voters import ReplicaKey, Voter, VoterEndpoint
from moldau.wire.constants import NO_EPOCH, UNKNOWN_OFFSET
from moldau.wire.errors import ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """An address; `id` is negative for a bootstrap server, whose node id is not known."""

    id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteAsked:
    """`voter` is the node that the candidate means; None in versions without it."""

    epoch: int
    candidate: ReplicaKey
    voter: ReplicaKey | None
    last_epoch: int
    end_offset: int
    pre_vote: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochBegun:
    epoch: int
    leader_id: int
    voter: ReplicaKey | None
    endpoints: tuple[VoterEndpoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEnded:
    """`successors`: the voters, the one with the longest log first."""

    epoch: int
    leader_id: int
    successors: tuple[ReplicaKey, ...]
    endpoints: tuple[VoterEndpoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchAsked:
    """A fetch from `offset` acknowledges that everything before it is on the replica's disk."""

    epoch: int
    replica: ReplicaKey
    offset: int
    last_epoch: int
    high_watermark: int
    max_wait_ms: int
    max_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotAsked:
    epoch: int
    replica: ReplicaKey
    snapshot_id: SnapshotId
    position: int
    max_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VoterAdditionAsked:
    voter: Voter
    ack_when_committed: bool = True
    timeout_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class VoterRemovalAsked:
    voter: ReplicaKey


@dataclass(frozen=True, slots=True, kw_only=True)
class VoterUpdateAsked:
    epoch: int
    voter: Voter


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionsAsked:
    """Which levels of kraft.version a new voter supports (ApiVersions)."""


Request = (
    VoteAsked
    | EpochBegun
    | EpochEnded
    | FetchAsked
    | SnapshotAsked
    | VoterAdditionAsked
    | VoterRemovalAsked
    | VoterUpdateAsked
    | VersionsAsked
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What every response has; for some requests there is nothing more."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    epoch: int = NO_EPOCH
    leader_id: int = NO_NODE
    endpoints: tuple[VoterEndpoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteReply(Reply):
    granted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EndOfEpoch:
    epoch: int
    end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchReply(Reply):
    """`records` are whole batches from the offset of the request on.

    The machine leaves them out and sets `read_from`; the shell reads them from the log.
    """

    high_watermark: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    diverging: EndOfEpoch | None = None
    snapshot_id: SnapshotId | None = None
    read_from: int | None = None
    records: bytes | memoryview = b""

    def with_records(self, records: bytes | memoryview) -> FetchReply:
        return replace(self, records=records, read_from=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotReply(Reply):
    """`chunk` begins at `position` of a file of `size` bytes; the shell reads it."""

    snapshot_id: SnapshotId | None = None
    size: int = 0
    position: int = 0
    chunk: bytes | memoryview = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionsReply(Reply):
    """`levels` is the range of kraft.version, None if the node does not support the feature."""

    levels: tuple[int, int] | None = None
