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

    STARTED = "the node starts"
    HIGHER_EPOCH = "a message, or at the start the log, has a higher epoch"
    LEADER_FOUND = "the leader of the current epoch becomes known, or more of its endpoints"
    ELECTION_TIMEOUT = "the election timeout is over"
    FETCH_TIMEOUT = "the fetch timeout is over, or the leader has resigned or is gone"
    PRE_VOTE_WON = "a majority would vote for this node"
    PRE_VOTE_LOST = "a majority would not vote for this node"
    VOTES_WON = "a majority has voted for this node"
    RESIGNATION = "no majority fetches, the node was removed, shuts down or cannot continue"


class EpochRule(Enum):
    """How the epoch changes with the role."""

    SAME = "the same"
    NEXT = "the next"
    HIGHER = "the higher one"

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
        Cause.VOTES_WON: _to(_LEADER),
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
