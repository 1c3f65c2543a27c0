"""The roles of a node in the quorum, with the data that belongs to each.

`transitions.py` has the transitions between them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from moldau.broker.raft.machine.quorum.leadership import Leadership
from moldau.broker.raft.machine.quorum.voter_changes import VoterChanges
from moldau.broker.raft.machine.quorum.voting import Tally
from moldau.broker.raft.machine.rpcs import FetchAsked
from moldau.broker.raft.machine.snapshot_id import SnapshotId
from moldau.broker.raft.machine.voters import ReplicaKey
from moldau.times import ELAPSED_ZERO, ElapsedMs

FOREVER_MS: Final = ElapsedMs(2**62)


class RoleName(Enum):
    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"
    FOLLOWER = "follower"
    RESIGNED = "resigned"


@dataclass(slots=True)
class Unattached:
    """Has no leader to fetch from. A voter waits until `deadline_ms`, then stands for election."""

    deadline_ms: ElapsedMs


@dataclass(slots=True)
class Prospective:
    """Asks for pre-votes: whether it could win an election (KIP-996).

    The epoch stays as it is, so a leader that is still there is not disturbed.
    """

    deadline_ms: ElapsedMs
    tally: Tally


@dataclass(slots=True)
class Candidate:
    """Has voted for itself and asks the other voters for their votes."""

    deadline_ms: ElapsedMs
    tally: Tally


@dataclass(slots=True)
class SnapshotProgress:
    """A snapshot that is being fetched: `position` is where the next chunk begins."""

    snapshot_id: SnapshotId
    position: int = 0
    installing: bool = False


@dataclass(slots=True)
class Follower:
    """Fetches from the leader of the epoch.

    `has_fetched`: a fetch from this leader has succeeded, so it is alive and needs no successor.
    `failures` counts the requests to it that have failed in a row, since `failing_since_ms`.
    `leader_high_watermark` is the one in its last response.
    """

    fetch_deadline_ms: ElapsedMs
    update_at_ms: ElapsedMs
    has_fetched: bool = False
    failures: int = 0
    failing_since_ms: ElapsedMs = ELAPSED_ZERO
    has_updated: bool = False
    leader_high_watermark: int = 0
    snapshot: SnapshotProgress | None = None

    def note_contact(self, fetch_deadline_ms: ElapsedMs) -> None:
        """The leader has answered a fetch."""
        self.has_fetched = True
        self.failures = 0
        self.fetch_deadline_ms = fetch_deadline_ms


@dataclass(slots=True)
class ParkedFetch:
    """A fetch that is answered when there is something new, or at `deadline_ms`."""

    token: int
    request: FetchAsked
    deadline_ms: ElapsedMs


@dataclass(slots=True)
class Leader:
    """Appends to the log, and commits what a majority of the voters has on disk."""

    leadership: Leadership
    changes: VoterChanges
    parked: list[ParkedFetch] = field(default_factory=list)


@dataclass(slots=True)
class Resigned:
    """Has led this epoch and will not lead it again.

    `unacknowledged`: the voters that have not confirmed EndQuorumEpoch yet.
    """

    deadline_ms: ElapsedMs
    unacknowledged: set[int]
    successors: tuple[ReplicaKey, ...]


Role = Unattached | Prospective | Candidate | Leader | Follower | Resigned

ROLE_NAMES: dict[type[Role], RoleName] = {
    Unattached: RoleName.UNATTACHED,
    Prospective: RoleName.PROSPECTIVE,
    Candidate: RoleName.CANDIDATE,
    Leader: RoleName.LEADER,
    Follower: RoleName.FOLLOWER,
    Resigned: RoleName.RESIGNED,
}
