"""Votes: which candidate may get one, and how they are counted."""

from __future__ import annotations

from dataclasses import dataclass, field

from moldau.broker.raft.machine.election_file import NO_NODE, Election
from moldau.broker.raft.machine.voters import ReplicaKey, Voter, VoterSet


@dataclass(slots=True)
class Tally:
    """The votes of one election among `voters`."""

    voters: VoterSet
    granted: dict[int, ReplicaKey] = field(default_factory=dict)
    rejected: set[int] = field(default_factory=set)
    #: Voters whose addresses refuse connections.
    gone: set[int] = field(default_factory=set)

    @property
    def is_won(self) -> bool:
        return len(self.granted) >= self.voters.majority

    @property
    def is_lost(self) -> bool:
        return len(self.voters) - len(self.rejected) < self.voters.majority

    @property
    def is_hopeless(self) -> bool:
        """Whether it can only be won if a voter that is gone returns."""
        absent = self.rejected | (self.gone - self.granted.keys())
        return len(self.voters) - len(absent) < self.voters.majority

    def grant(self, voter_id: int) -> None:
        voter = self.voters.voters.get(voter_id)
        if voter is not None:
            self.granted[voter_id] = voter.key
            self.rejected.discard(voter_id)

    def reject(self, voter_id: int) -> None:
        if voter_id in self.voters.voters and voter_id not in self.granted:
            self.rejected.add(voter_id)

    def unrecorded(self) -> list[Voter]:
        return [
            voter
            for node_id, voter in self.voters.voters.items()
            if node_id not in self.granted and node_id not in self.rejected
        ]


def may_grant(
    election: Election, candidate: ReplicaKey, *, up_to_date: bool, pre_vote: bool
) -> bool:
    """Whether a node without a leader grants its vote. A pre-vote does not bind it."""
    if pre_vote:
        return up_to_date
    voted = election.voted
    if voted is not None:
        # The same candidate asks again: the first response was lost.
        return voted.matches(candidate)
    return election.leader_id == NO_NODE and up_to_date


def successor_backoff_ms(position: int, count: int, backoff_max_ms: int) -> int:
    """How long the voter at `position` in the resigning leader's list waits for those before it."""
    if position == 0:
        return 0
    if position >= count:
        return backoff_max_ms
    base = backoff_max_ms >> (count - 1)
    return min(backoff_max_ms, base << (position - 1))
