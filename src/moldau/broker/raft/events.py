"""What happens to the quorum machine, and what it wants done."""

from __future__ import annotations

from dataclasses import dataclass

from moldau.broker.raft.quorum_state import Election
from moldau.broker.raft.voters import ReplicaKey, VoterSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The node has loaded its log, which ends before `end_offset` in `last_epoch`."""

    end_offset: int
    last_epoch: int


@dataclass(frozen=True, slots=True)
class ElectionTimedOut:
    """No leader was heard of for too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteAnswered:
    voter: ReplicaKey
    epoch: int
    granted: bool


@dataclass(frozen=True, slots=True)
class Appended:
    """The own log now ends before this offset, not necessarily synced."""

    end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """A replica has everything before `end_offset` on its disk."""

    replica: ReplicaKey
    end_offset: int


@dataclass(frozen=True, slots=True)
class VotersChanged:
    voters: VoterSet


@dataclass(frozen=True, slots=True)
class ShutDown:
    """The node stops leading and takes part no more."""


Event = Started | ElectionTimedOut | VoteAnswered | Appended | Synced | VotersChanged | ShutDown


@dataclass(frozen=True, slots=True)
class PersistElection:
    """Write and sync the quorum-state file before performing the effects that follow."""

    election: Election


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestVotes:
    epoch: int
    voters: tuple[ReplicaKey, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BecomeLeader:
    """Append a LeaderChange record of this epoch, then accept decisions."""

    epoch: int
    voters: tuple[ReplicaKey, ...]
    granting: tuple[ReplicaKey, ...]


@dataclass(frozen=True, slots=True)
class CommitUpTo:
    """Everything before `offset` is committed."""

    offset: int


@dataclass(frozen=True, slots=True)
class StepDown:
    """Accept no more decisions; those not committed fail."""

    epoch: int


Effect = PersistElection | RequestVotes | BecomeLeader | CommitUpTo | StepDown
