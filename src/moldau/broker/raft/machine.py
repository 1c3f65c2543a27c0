"""QuorumMachine: decides who leads the metadata quorum and what is committed.

States and moves:

    UNATTACHED --election timeout, or start as the only voter--> CANDIDATE
    CANDIDATE  --votes of a majority--> LEADER
    CANDIDATE  --election timeout--> CANDIDATE, next epoch
    LEADER     --shut down, or no longer a voter--> RESIGNED

What always holds: the epoch never goes back; a vote is persisted before it counts; the high
watermark never retreats and moves only over offsets that a majority of the voters has synced, the
last of them of the leader's own epoch (an older epoch's entry alone could still be overwritten).
"""

from __future__ import annotations

from enum import Enum
from typing import assert_never

from moldau.broker.raft.events import (
    Appended,
    BecomeLeader,
    CommitUpTo,
    Effect,
    ElectionTimedOut,
    Event,
    PersistElection,
    RequestVotes,
    ShutDown,
    Started,
    StepDown,
    Synced,
    VoteAnswered,
    VotersChanged,
)
from moldau.broker.raft.quorum_state import Election
from moldau.broker.raft.voters import ReplicaKey, VoterSet
from moldau.invariant import invariant


class QuorumState(Enum):
    UNATTACHED = "unattached"
    CANDIDATE = "candidate"
    LEADER = "leader"
    RESIGNED = "resigned"


class QuorumMachine:
    """Events in, effects out; effects are performed in order."""

    def __init__(self, local: ReplicaKey, voters: VoterSet, election: Election) -> None:
        self.local = local
        self.voters = voters
        self.election = election
        self.state = QuorumState.UNATTACHED
        self.high_watermark = 0
        self._granted: dict[int, ReplicaKey] = {}
        self._synced: dict[int, int] = {}
        self._end_offset = 0
        self._epoch_start_offset = 0

    @property
    def epoch(self) -> int:
        return self.election.epoch

    @property
    def is_leader(self) -> bool:
        return self.state is QuorumState.LEADER

    @property
    def synced_offsets(self) -> dict[int, int]:
        """How far each replica is known to have synced, by node id."""
        return dict(self._synced)

    def step(self, event: Event) -> list[Effect]:
        match event:
            case Started():
                return self._on_started(event)
            case ElectionTimedOut():
                return self._on_election_timed_out()
            case VoteAnswered():
                return self._on_vote_answered(event)
            case Appended(end_offset):
                invariant(end_offset >= self._end_offset, "a leader's log only grows")
                self._end_offset = end_offset
                return []
            case Synced():
                return self._on_synced(event)
            case VotersChanged(voters):
                return self._on_voters_changed(voters)
            case ShutDown():
                return self._on_shut_down()
            case _:
                assert_never(event)

    def _on_started(self, event: Started) -> list[Effect]:
        invariant(self.state is QuorumState.UNATTACHED, "a quorum machine starts once")
        self._end_offset = event.end_offset
        self._synced[self.local.id] = event.end_offset
        if event.last_epoch > self.election.epoch:
            # The quorum-state file is older than the log, or lost: votes of the log's epoch are
            # not remembered, so none may be given in it again.
            self.election = Election(epoch=event.last_epoch)
        if self.voters.is_only(self.local):
            return self._start_election()
        return []

    def _on_election_timed_out(self) -> list[Effect]:
        if self.state not in (QuorumState.UNATTACHED, QuorumState.CANDIDATE):
            return []
        if self.local not in self.voters:
            return []
        return self._start_election()

    def _start_election(self) -> list[Effect]:
        self.state = QuorumState.CANDIDATE
        self.election = Election(epoch=self.election.epoch + 1, voted=self.local)
        self._granted = {self.local.id: self.local}
        if len(self._granted) >= self.voters.majority:
            # Saying "I lead this epoch" on disk includes the vote.
            return self._become_leader()
        return [
            PersistElection(self.election),
            RequestVotes(
                epoch=self.epoch,
                voters=tuple(voter.key for voter in self.voters.others(self.local)),
            ),
        ]

    def _on_vote_answered(self, event: VoteAnswered) -> list[Effect]:
        if self.state is not QuorumState.CANDIDATE or event.epoch != self.epoch:
            return []
        if not event.granted or event.voter not in self.voters:
            return []
        self._granted[event.voter.id] = event.voter
        if len(self._granted) < self.voters.majority:
            return []
        return self._become_leader()

    def _become_leader(self) -> list[Effect]:
        self.state = QuorumState.LEADER
        self.election = Election(epoch=self.epoch, leader_id=self.local.id)
        self._epoch_start_offset = self._end_offset
        self._synced = {self.local.id: self._synced.get(self.local.id, 0)}
        return [
            PersistElection(self.election),
            BecomeLeader(
                epoch=self.epoch,
                voters=tuple(voter.key for voter in self.voters.voters.values()),
                granting=tuple(self._granted.values()),
            ),
        ]

    def _on_synced(self, event: Synced) -> list[Effect]:
        known = self._synced.get(event.replica.id, 0)
        self._synced[event.replica.id] = max(known, event.end_offset)
        return self._advance()

    def _on_voters_changed(self, voters: VoterSet) -> list[Effect]:
        self.voters = voters
        if self.is_leader and self.local not in voters:
            return self._on_shut_down()
        return self._advance()

    def _advance(self) -> list[Effect]:
        if not self.is_leader:
            return []
        offset = self.voters.majority_offset(self._synced)
        if offset <= self._epoch_start_offset or offset <= self.high_watermark:
            return []
        self.high_watermark = offset
        return [CommitUpTo(offset)]

    def _on_shut_down(self) -> list[Effect]:
        was_leader = self.is_leader
        self.state = QuorumState.RESIGNED
        return [StepDown(self.epoch)] if was_leader else []
