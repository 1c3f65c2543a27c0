"""Elections: asks for votes and pre-votes, and grants them.

Invariants: a vote is granted only to a candidate whose log is at least as long as this node's; it
is persisted before it is sent; a pre-vote (KIP-996) binds neither side.
"""

from __future__ import annotations

from moldau.broker.raft.machine.quorum.outbox import Outbox
from moldau.broker.raft.machine.quorum.refusals import is_for, voter_request_refusal
from moldau.broker.raft.machine.quorum.role_changes import RoleChanges
from moldau.broker.raft.machine.quorum.roles import (
    Candidate,
    Follower,
    Prospective,
    Resigned,
    Unattached,
)
from moldau.broker.raft.machine.quorum.state import QuorumState
from moldau.broker.raft.machine.quorum.timeouts import Timeouts
from moldau.broker.raft.machine.quorum.transitions import Cause
from moldau.broker.raft.machine.quorum.voting import may_grant
from moldau.broker.raft.machine.rpcs import Reply, VoteAsked, VoteReply
from moldau.broker.raft.machine.voters import ReplicaKey
from moldau.times import ElapsedMs
from moldau.wire.errors import ErrorCode


class Elections:
    def __init__(
        self, state: QuorumState, outbox: Outbox, roles: RoleChanges, timeouts: Timeouts
    ) -> None:
        self._state = state
        self._outbox = outbox
        self._roles = roles
        self._timeouts = timeouts

    # Voting -----------------------------------------------------------------------------

    def on_vote(self, request: VoteAsked) -> VoteReply:
        state = self._state
        if _is_senseless(request):
            return self._reply(ErrorCode.INVALID_REQUEST)
        refusal = voter_request_refusal(state, request.candidate.id, request.epoch)
        if refusal is not ErrorCode.NONE:
            return self._reply(refusal)
        if request.epoch > state.epoch:
            self._roles.to_unattached(Cause.HIGHER_EPOCH, request.epoch)
        if not is_for(state.local, request.voter):
            return self._reply(ErrorCode.INVALID_VOTER_KEY)
        granted = self._can_grant(request)
        if granted and not request.pre_vote and state.election.voted is None:
            self._vote_for(request.candidate)
        return self._reply(ErrorCode.NONE, granted=granted)

    def _reply(self, error: ErrorCode, *, granted: bool = False) -> VoteReply:
        state = self._state
        return VoteReply(
            error=error,
            epoch=state.epoch,
            leader_id=state.election.leader_id,
            endpoints=state.leader_endpoints,
            granted=granted,
        )

    def _can_grant(self, request: VoteAsked) -> bool:
        state = self._state
        theirs = (request.last_epoch, request.end_offset)
        up_to_date = theirs >= (state.log.last_epoch, state.log.end_offset)
        role = state.role
        if isinstance(role, Unattached | Prospective):
            return may_grant(
                state.election, request.candidate, up_to_date=up_to_date, pre_vote=request.pre_vote
            )
        if isinstance(role, Follower):
            # A follower that does not reach the leader either does not know that it is alive.
            leader_lives = role.has_fetched and role.failures == 0
            return request.pre_vote and up_to_date and not leader_lives
        if isinstance(role, Candidate | Resigned):
            return request.pre_vote and up_to_date
        return False

    def _vote_for(self, candidate: ReplicaKey) -> None:
        state = self._state
        state.record_vote(candidate)
        self._outbox.persist(state.election)
        if isinstance(state.role, Unattached | Prospective) and state.may_stand:
            # The candidate gets the time to win.
            state.role.deadline_ms = state.after(self._timeouts.election_ms())

    # Standing for election --------------------------------------------------------------

    def stand_if_due(self, role: Unattached) -> bool:
        if self._state.may_stand and role.deadline_ms <= self._state.now_ms:
            self._roles.to_prospective(Cause.ELECTION_TIMEOUT)
            return True
        return False

    def poll(self, role: Prospective | Candidate) -> None:
        state = self._state
        if role.deadline_ms <= state.now_ms:
            if isinstance(role, Candidate):
                self._roles.to_prospective(Cause.ELECTION_TIMEOUT)
            else:
                self._roles.after_pre_vote(Cause.ELECTION_TIMEOUT)
            return
        if role.tally.is_lost:
            return
        for voter in role.tally.unrecorded():
            peer = state.peer_at(voter.key.id, voter.endpoints)
            if peer is not None:
                self._outbox.send(peer, self._vote_request(role, voter.key), state.now_ms)

    def _vote_request(self, role: Prospective | Candidate, voter: ReplicaKey) -> VoteAsked:
        state = self._state
        return VoteAsked(
            epoch=state.epoch,
            candidate=state.local,
            voter=voter,
            last_epoch=state.log.last_epoch,
            end_offset=state.log.end_offset,
            pre_vote=isinstance(role, Prospective),
        )

    def on_reply(self, voter_id: int, request: VoteAsked, reply: Reply) -> bool:
        """False when the peer is not asked again for a while."""
        if reply.error is not ErrorCode.NONE or not isinstance(reply, VoteReply):
            return False
        role = self._state.role
        if not isinstance(role, Prospective | Candidate):
            return True
        if request.pre_vote is not isinstance(role, Prospective):
            return True
        if reply.granted:
            role.tally.grant(voter_id)
        else:
            role.tally.reject(voter_id)
        if role.tally.is_won:
            if isinstance(role, Prospective):
                self._roles.to_candidate()
            else:
                self._roles.to_leader()
        elif role.tally.is_lost and isinstance(role, Prospective):
            self._roles.after_pre_vote(Cause.PRE_VOTE_LOST)
        else:
            self._retry_soon_if_hopeless(role)
        return True

    def on_no_pre_vote(self) -> None:
        """An older node does not know pre-votes: hold the election without."""
        if isinstance(self._state.role, Prospective):
            self._roles.to_candidate()

    def on_refused(self, voter_id: int) -> None:
        """The voter's address refuses connections."""
        role = self._state.role
        if isinstance(role, Prospective | Candidate):
            role.tally.gone.add(voter_id)
            self._retry_soon_if_hopeless(role)

    def _retry_soon_if_hopeless(self, role: Prospective | Candidate) -> None:
        """After a split vote, or a pre-vote that came before the others noticed: the voters that
        are left try again one after another, instead of waiting for the election timeout."""
        tally = role.tally
        if tally.is_hopeless and not tally.is_lost:
            state = self._state
            turn_ms = self._timeouts.succession_ms(state.voters, state.local, tally.gone)
            retry_ms = state.after(state.settings.retry_backoff_ms + turn_ms)
            role.deadline_ms = ElapsedMs(min(role.deadline_ms, retry_ms))


def _is_senseless(request: VoteAsked) -> bool:
    """Before an election in its epoch, no log has records of that epoch."""
    too_new = (
        request.last_epoch > request.epoch
        if request.pre_vote
        else request.last_epoch >= request.epoch
    )
    return request.end_offset < 0 or request.last_epoch < 0 or too_new
