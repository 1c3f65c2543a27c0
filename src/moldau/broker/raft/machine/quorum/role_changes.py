"""RoleChanges: builds each role and enters it, with the effects that belong to the change.

A role that is left gives up what belongs to it: requests in flight are forgotten, fetches that wait
are answered, a snapshot that is being fetched is dropped. An election that has changed is persisted
before its leader is published.
"""

from __future__ import annotations

from moldau.broker.raft.machine.election_file import NO_NODE, Election
from moldau.broker.raft.machine.quorum.events import BecomeLeader, DropSnapshot, StepDown
from moldau.broker.raft.machine.quorum.leadership import Leadership
from moldau.broker.raft.machine.quorum.outbox import Outbox
from moldau.broker.raft.machine.quorum.roles import (
    FOREVER_MS,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from moldau.broker.raft.machine.quorum.state import QuorumState
from moldau.broker.raft.machine.quorum.timeouts import Timeouts
from moldau.broker.raft.machine.quorum.transitions import Cause
from moldau.broker.raft.machine.quorum.voter_changes import VoterChanges
from moldau.broker.raft.machine.quorum.voting import Tally
from moldau.broker.raft.machine.rpcs import FetchReply, Reply
from moldau.broker.raft.machine.voter_history import BEFORE_THE_LOG
from moldau.broker.raft.machine.voters import ReplicaKey, VoterEndpoint, VoterSet
from moldau.invariant import invariant, of_type
from moldau.times import ElapsedMs
from moldau.wire.errors import ErrorCode


class RoleChanges:
    def __init__(self, state: QuorumState, outbox: Outbox, timeouts: Timeouts) -> None:
        self._state = state
        self._outbox = outbox
        self._timeouts = timeouts

    # The start --------------------------------------------------------------------------

    def start(self) -> None:
        """Continue from the quorum-state file and the log."""
        state = self._state
        if state.log.last_epoch > state.epoch:
            # The quorum-state file is older than the log, or lost, and may lack a vote of the log's
            # epoch. A second one is not given: every candidate of that epoch has an older log.
            self.to_unattached(Cause.HIGHER_EPOCH, state.log.last_epoch)
        else:
            self._resume()
        if state.voters.is_only(state.local) and isinstance(state.role, Unattached):
            # There is no other voter to wait for.
            state.role.deadline_ms = state.now_ms
        else:
            self._outbox.publish_leader(state.election, state.leader_endpoints)

    def _resume(self) -> None:
        state = self._state
        election = state.election
        endpoints = state.voters.endpoints_of(election.leader_id)
        is_only = state.voters.is_only(state.local)
        known: tuple[VoterEndpoint, ...] = ()
        role: Role
        if election.leader_id == state.local.id and not is_only:
            role = Resigned(self._election_deadline_ms(), self._other_voters(), ())
        elif state.peer_at(election.leader_id, endpoints) is not None and not is_only:
            role, known = self._new_follower(), endpoints
        else:
            role = Unattached(self.first_deadline_ms())
        state.enter(role, Cause.STARTED, election, known)

    def first_deadline_ms(self) -> ElapsedMs:
        """When a node without a leader stands for election; only a voter does."""
        return self._election_deadline_ms() if self._state.may_stand else FOREVER_MS

    # Roles ------------------------------------------------------------------------------

    def to_unattached(self, cause: Cause, epoch: int, leader_id: int = NO_NODE) -> None:
        state = self._state
        deadline_ms = self._remaining_deadline_ms()
        election = Election(epoch=epoch, leader_id=leader_id, voted=self._vote_in(epoch))
        self._change(Unattached(deadline_ms), cause, election, ())
        self._outbox.publish_leader(state.election, state.leader_endpoints)

    def _remaining_deadline_ms(self) -> ElapsedMs:
        """A node that is waiting for its election timeout continues to wait for the same one."""
        state = self._state
        role = state.role
        if not state.may_stand:
            return FOREVER_MS
        if isinstance(role, Unattached | Candidate | Resigned) and role.deadline_ms < FOREVER_MS:
            return role.deadline_ms
        if isinstance(role, Prospective) and not role.tally.is_lost:
            return role.deadline_ms
        return self._election_deadline_ms()

    def to_follower(
        self, cause: Cause, epoch: int, leader_id: int, endpoints: tuple[VoterEndpoint, ...]
    ) -> None:
        invariant(bool(endpoints), f"no endpoint of the leader {leader_id} is known")
        election = Election(epoch=epoch, leader_id=leader_id, voted=self._vote_in(epoch))
        self._change(self._new_follower(), cause, election, endpoints)
        self._outbox.publish_leader(election, endpoints)

    def _new_follower(self) -> Follower:
        state = self._state
        deadline_ms = state.after(state.settings.fetch_timeout_ms)
        return Follower(fetch_deadline_ms=deadline_ms, update_at_ms=deadline_ms)

    def to_prospective(self, cause: Cause) -> None:
        state = self._state
        invariant(state.may_stand, "only a voter stands for election")
        role = Prospective(self._election_deadline_ms(), self._own_vote())
        self._change(role, cause, state.election, state.leader_endpoints)
        if role.tally.is_won:
            self.to_candidate()

    def to_candidate(self) -> None:
        state = self._state
        epoch = state.epoch + 1
        tally = self._own_vote()
        if tally.is_won:
            # The only voter: an election with this node as leader includes its vote.
            self._to_leader(Cause.PRE_VOTE_WON, epoch, tally)
            return
        role = Candidate(self._election_deadline_ms(), tally)
        self._change(role, Cause.PRE_VOTE_WON, Election(epoch=epoch, voted=state.local), ())
        self._outbox.publish_leader(state.election, state.leader_endpoints)

    def after_pre_vote(self, cause: Cause) -> None:
        """The pre-vote was not won: follow the leader again if one is known."""
        state = self._state
        leader_id = state.election.leader_id
        if leader_id not in (NO_NODE, state.local.id) and state.leader_endpoints:
            self.to_follower(cause, state.epoch, leader_id, state.leader_endpoints)
        else:
            self.to_unattached(cause, state.epoch, leader_id)

    def to_leader(self) -> None:
        role = of_type(self._state.role, Candidate)
        self._to_leader(Cause.ELECTION_WON, self._state.epoch, role.tally)

    def _to_leader(self, cause: Cause, epoch: int, tally: Tally) -> None:
        invariant(tally.is_won, f"no majority has elected this node in epoch {epoch}")
        state = self._state
        voters = state.voters
        leadership = Leadership(
            state.local,
            epoch,
            voters,
            epoch_start_offset=state.log.end_offset,
            fetch_timeout_ms=state.settings.fetch_timeout_ms,
            now_ms=state.now_ms,
        )
        leadership.synced(state.synced_offset)
        role = Leader(leadership, VoterChanges(state.history))
        election = Election(epoch=epoch, leader_id=state.local.id)
        self._change(role, cause, election, state.local_voter.endpoints)
        self._outbox.add(
            BecomeLeader(
                epoch=epoch,
                voters=tuple(voter.key for voter in voters.voters.values()),
                granting=tuple(tally.granted.values()),
                voters_record=self._voters_to_record(),
            )
        )
        self._outbox.publish_leader(election, state.leader_endpoints)

    def _voters_to_record(self) -> VoterSet | None:
        """A dynamic quorum's log names its voters, from the first batch on and as they are now."""
        state = self._state
        if not state.history.is_dynamic:
            return None
        if state.local_voter.endpoints and state.voters.needs_update(state.local_voter):
            return state.voters.with_voter(state.local_voter)
        return state.voters if state.history.voters_offset == BEFORE_THE_LOG else None

    def to_resigned(self) -> None:
        state = self._state
        successors = of_type(state.role, Leader).leadership.successors()
        role = Resigned(self._election_deadline_ms(), self._other_voters(), successors)
        self._change(role, Cause.RESIGNATION, state.election, state.leader_endpoints)

    # Parts of a change ------------------------------------------------------------------

    def _change(
        self, role: Role, cause: Cause, election: Election, endpoints: tuple[VoterEndpoint, ...]
    ) -> None:
        state = self._state
        before = state.election
        self._leave()
        state.enter(role, cause, election, endpoints)
        if election != before:
            self._outbox.persist(election)

    def _leave(self) -> None:
        """Give up what belongs to the present role."""
        state, outbox = self._state, self._outbox
        role = state.role
        outbox.peers.reset()
        if isinstance(role, Leader):
            outbox.add(StepDown(state.epoch))
            for parked in role.parked:
                refusal = FetchReply(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, epoch=state.epoch)
                outbox.answer(parked.token, refusal)
            role.parked.clear()
            outbox.effects += role.changes.finish(Reply(error=ErrorCode.NOT_LEADER_OR_FOLLOWER))
        elif isinstance(role, Follower):
            snapshot = role.snapshot
            if snapshot is not None and not snapshot.installing:
                outbox.add(DropSnapshot())

    def _vote_in(self, epoch: int) -> ReplicaKey | None:
        election = self._state.election
        return election.voted if epoch == election.epoch else None

    def _own_vote(self) -> Tally:
        tally = Tally(self._state.voters)
        tally.grant(self._state.local.id)
        return tally

    def _other_voters(self) -> set[int]:
        return {voter.key.id for voter in self._state.voters.others(self._state.local)}

    def _election_deadline_ms(self) -> ElapsedMs:
        return self._state.after(self._timeouts.election_ms())
