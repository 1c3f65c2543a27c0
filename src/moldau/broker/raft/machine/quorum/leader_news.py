"""LeaderNews: takes up what other nodes report about the epoch and its leader.

Invariants: a higher epoch is always taken up; within an epoch, the leader only becomes known, it
never changes.
"""

from __future__ import annotations

from moldau.broker.raft.machine.election_file import NO_NODE
from moldau.broker.raft.machine.quorum.refusals import is_for, voter_request_refusal
from moldau.broker.raft.machine.quorum.role_changes import RoleChanges
from moldau.broker.raft.machine.quorum.roles import Follower
from moldau.broker.raft.machine.quorum.state import QuorumState
from moldau.broker.raft.machine.quorum.transitions import Cause
from moldau.broker.raft.machine.quorum.voting import successor_backoff_ms
from moldau.broker.raft.machine.rpcs import EpochBegun, EpochEnded, Reply
from moldau.broker.raft.machine.voters import VoterEndpoint
from moldau.wire.constants import NO_EPOCH
from moldau.wire.errors import ErrorCode


class LeaderNews:
    def __init__(self, state: QuorumState, roles: RoleChanges) -> None:
        self._state = state
        self._roles = roles

    def on_epoch_begun(self, request: EpochBegun) -> Reply:
        state = self._state
        refusal = voter_request_refusal(state, request.leader_id, request.epoch)
        if refusal is not ErrorCode.NONE:
            return state.reply(refusal)
        self._take_up(request.leader_id, request.epoch, request.endpoints)
        if not is_for(state.local, request.voter):
            return state.reply(ErrorCode.INVALID_VOTER_KEY)
        return state.reply()

    def on_epoch_ended(self, request: EpochEnded) -> Reply:
        state = self._state
        refusal = voter_request_refusal(state, request.leader_id, request.epoch)
        if refusal is not ErrorCode.NONE:
            return state.reply(refusal)
        self._take_up(request.leader_id, request.epoch, request.endpoints)
        role = state.role
        if isinstance(role, Follower) and state.election.leader_id == request.leader_id:
            successors = request.successors
            position = next(
                (i for i, key in enumerate(successors) if key.matches(state.local)), len(successors)
            )
            role.fetch_deadline_ms = state.after(
                successor_backoff_ms(
                    position, len(successors), state.settings.election_backoff_max_ms
                )
            )
        return state.reply()

    def on_reply(self, reply: Reply) -> bool | None:
        """Take up the epoch and the leader in a response.

        None if the rest of the response is to be handled too; False when the peer is not asked
        again for a while.
        """
        state, error = self._state, reply.error
        if reply.epoch == NO_EPOCH:
            return False
        if reply.epoch < state.epoch or error is ErrorCode.UNKNOWN_LEADER_EPOCH:
            # The peer is behind; it learns the epoch in time.
            return reply.epoch < state.epoch and error is ErrorCode.NONE
        outdated = error in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if reply.epoch > state.epoch or outdated:
            return self._take_up(reply.leader_id, reply.epoch, reply.endpoints)
        if not state.has_leader:
            self._take_up(reply.leader_id, reply.epoch, reply.endpoints)
            return None if error is ErrorCode.NONE else True
        if error in (ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.INVALID_REQUEST):
            return False
        return False if error is ErrorCode.INVALID_VOTER_KEY else None

    def _take_up(self, leader_id: int, epoch: int, endpoints: tuple[VoterEndpoint, ...]) -> bool:
        """Whether that changed anything."""
        state, roles = self._state, self._roles
        if epoch < state.epoch or (epoch == state.epoch and state.is_leader):
            return False
        if leader_id == state.local.id:
            # This node has forgotten that epoch, or has resigned from it.
            leader_id = NO_NODE
        endpoints = endpoints or state.voters.endpoints_of(leader_id)
        known = leader_id != NO_NODE and state.peer_at(leader_id, endpoints) is not None
        if epoch > state.epoch:
            if known:
                roles.to_follower(Cause.HIGHER_EPOCH, epoch, leader_id, endpoints)
            else:
                roles.to_unattached(Cause.HIGHER_EPOCH, epoch)
            return True
        if not known or (state.has_leader and state.election.leader_id != leader_id):
            return False
        if not state.has_leader or len(endpoints) > len(state.leader_endpoints):
            roles.to_follower(Cause.LEADER_FOUND, epoch, leader_id, endpoints)
            return True
        return False
