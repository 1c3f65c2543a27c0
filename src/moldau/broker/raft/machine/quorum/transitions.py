"""Which roles a node may take next, and why: the table of all transitions.

`QuorumState.enter` checks every change of role against it. A change of role that is not in the
table is a bug and stops the node.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

from moldau.broker.raft.machine.quorum.roles import RoleName
from moldau.invariant import invariant


class Cause(Enum):
    """Why a node takes another role."""

    STARTED = "started"
    ELECTION_TIMEOUT = "election timeout"
    PRE_VOTE_WON = "pre-vote won"
    PRE_VOTE_LOST = "pre-vote lost"
    ELECTION_WON = "election won"
    LEADER_FOUND = "leader found"
    """The leader of the current epoch has become known, or more of its endpoints."""
    FETCH_TIMEOUT = "fetch timeout"
    """Also when the leader has resigned, or its process is gone."""
    RESIGNATION = "resignation"
    """No majority fetches, the node was removed from the voters, or it shuts down."""
    HIGHER_EPOCH = "higher epoch"
    """In a message of another node, or in the log at the start."""


class EpochRule(Enum):
    """How the epoch changes with the role."""

    SAME = "same"
    NEXT = "next"
    HIGHER = "higher"

    def allows(self, before: int, after: int) -> bool:
        match self:
            case EpochRule.SAME:
                return after == before
            case EpochRule.NEXT:
                return after == before + 1
            case EpochRule.HIGHER:
                return after > before


class Transition(NamedTuple):
    next_roles: frozenset[RoleName]
    epoch: EpochRule


_UNATTACHED = RoleName.UNATTACHED
_PROSPECTIVE = RoleName.PROSPECTIVE
_CANDIDATE = RoleName.CANDIDATE
_LEADER = RoleName.LEADER
_FOLLOWER = RoleName.FOLLOWER
_RESIGNED = RoleName.RESIGNED


def _to(*next_roles: RoleName, epoch: EpochRule = EpochRule.SAME) -> Transition:
    return Transition(frozenset(next_roles), epoch)


_HIGHER_EPOCH = _to(_UNATTACHED, _FOLLOWER, epoch=EpochRule.HIGHER)

#: What is missing here is illegal. Among others: a node does not lead without a pre-vote and a
#: vote, and one that has resigned neither leads nor follows in the same epoch again.
TRANSITIONS: Final[Mapping[RoleName, Mapping[Cause, Transition]]] = {
    _UNATTACHED: {
        Cause.STARTED: _to(_UNATTACHED, _FOLLOWER, _RESIGNED),
        Cause.ELECTION_TIMEOUT: _to(_PROSPECTIVE),
        Cause.LEADER_FOUND: _to(_FOLLOWER),
        Cause.HIGHER_EPOCH: _HIGHER_EPOCH,
    },
    _PROSPECTIVE: {
        Cause.PRE_VOTE_WON: _to(_CANDIDATE, _LEADER, epoch=EpochRule.NEXT),
        Cause.PRE_VOTE_LOST: _to(_UNATTACHED, _FOLLOWER),
        Cause.ELECTION_TIMEOUT: _to(_UNATTACHED, _FOLLOWER),
        Cause.LEADER_FOUND: _to(_FOLLOWER),
        Cause.HIGHER_EPOCH: _HIGHER_EPOCH,
    },
    _CANDIDATE: {
        Cause.ELECTION_WON: _to(_LEADER),
        Cause.ELECTION_TIMEOUT: _to(_PROSPECTIVE),
        Cause.LEADER_FOUND: _to(_FOLLOWER),
        Cause.HIGHER_EPOCH: _HIGHER_EPOCH,
    },
    _LEADER: {
        Cause.RESIGNATION: _to(_RESIGNED),
        Cause.HIGHER_EPOCH: _HIGHER_EPOCH,
    },
    _FOLLOWER: {
        Cause.FETCH_TIMEOUT: _to(_PROSPECTIVE),
        Cause.LEADER_FOUND: _to(_FOLLOWER),
        Cause.HIGHER_EPOCH: _HIGHER_EPOCH,
    },
    _RESIGNED: {
        Cause.ELECTION_TIMEOUT: _to(_UNATTACHED, epoch=EpochRule.NEXT),
        Cause.HIGHER_EPOCH: _HIGHER_EPOCH,
    },
}


class Standing(NamedTuple):
    """A role in an epoch."""

    role: RoleName
    epoch: int


def check_transition(before: Standing, cause: Cause, after: Standing) -> None:
    transition = TRANSITIONS[before.role].get(cause)
    invariant(
        transition is not None
        and after.role in transition.next_roles
        and transition.epoch.allows(before.epoch, after.epoch),
        f"illegal transition from {before.role.value} in epoch {before.epoch} to"
        f" {after.role.value} in epoch {after.epoch}: {cause.value}",
    )
