"""The states of a quorum machine, with what each of them remembers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from moldau.broker.raft.machine.leadership import Leadership
from moldau.broker.raft.machine.rpcs import FetchAsked
from moldau.broker.raft.machine.snapshot_id import SnapshotId
from moldau.broker.raft.machine.voter_changes import VoterChanges
from moldau.broker.raft.machine.voters import ReplicaKey
from moldau.broker.raft.machine.voting import Tally

FOREVER_MS = 2**62


class QuorumState(Enum):
    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"
    FOLLOWER = "follower"
    RESIGNED = "resigned"


@dataclass(slots=True)
class Unattached:
    """Knows no leader to follow."""

    deadline_ms: int


@dataclass(slots=True)
class Prospective:
    """Asks whether it could win an election, without disturbing the leader there may be."""

    deadline_ms: int
    tally: Tally


@dataclass(slots=True)
class Candidate:
    deadline_ms: int
    tally: Tally


@dataclass(slots=True)
class SnapshotProgress:
    snapshot_id: SnapshotId
    position: int = 0
    installing: bool = False


@dataclass(slots=True)
class Follower:
    """`has_fetched`: a fetch from this leader succeeded, so it lives and needs no successor.

    `failures` counts what could not be asked of it since, from `failing_since_ms` on.
    """

    fetch_deadline_ms: int
    update_at_ms: int
    has_fetched: bool = False
    failures: int = 0
    failing_since_ms: int = 0
    has_updated: bool = False
    snapshot: SnapshotProgress | None = None


@dataclass(slots=True)
class ParkedFetch:
    token: int
    request: FetchAsked
    deadline_ms: int


@dataclass(slots=True)
class Leader:
    leadership: Leadership
    changes: VoterChanges
    parked: list[ParkedFetch] = field(default_factory=list)


@dataclass(slots=True)
class Resigned:
    """Was leader of this epoch and will not be it again."""

    deadline_ms: int
    unacknowledged: set[int]
    successors: tuple[ReplicaKey, ...]


Role = Unattached | Prospective | Candidate | Leader | Follower | Resigned

STATES: dict[type[Role], QuorumState] = {
    Unattached: QuorumState.UNATTACHED,
    Prospective: QuorumState.PROSPECTIVE,
    Candidate: QuorumState.CANDIDATE,
    Leader: QuorumState.LEADER,
    Follower: QuorumState.FOLLOWER,
    Resigned: QuorumState.RESIGNED,
}
