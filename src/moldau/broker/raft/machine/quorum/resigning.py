"""Resigning: informs the voters that this node leads no longer, until the next epoch begins."""

from __future__ import annotations

from moldau.broker.raft.machine.quorum.outbox import Outbox
from moldau.broker.raft.machine.quorum.role_changes import RoleChanges
from moldau.broker.raft.machine.quorum.roles import Resigned
from moldau.broker.raft.machine.quorum.state import QuorumState
from moldau.broker.raft.machine.quorum.transitions import Cause
from moldau.broker.raft.machine.rpcs import EpochEnded, Reply
from moldau.wire.errors import ErrorCode


class Resigning:
    def __init__(self, state: QuorumState, outbox: Outbox, roles: RoleChanges) -> None:
        self._state = state
        self._outbox = outbox
        self._roles = roles

    def poll(self, role: Resigned) -> None:
        state = self._state
        if not state.shutting_down and role.deadline_ms <= state.now_ms:
            self._roles.to_unattached(Cause.ELECTION_TIMEOUT, state.epoch + 1)
            return
        request = EpochEnded(
            epoch=state.epoch,
            leader_id=state.local.id,
            successors=role.successors,
            endpoints=state.local_voter.endpoints,
        )
        for voter_id in sorted(role.unacknowledged):
            peer = state.peer_at(voter_id, state.voters.endpoints_of(voter_id))
            if peer is not None:
                self._outbox.send(peer, request, state.now_ms)

    def on_reply(self, voter_id: int, reply: Reply) -> bool:
        """False when the peer is not asked again for a while."""
        role = self._state.role
        if reply.error is not ErrorCode.NONE:
            return False
        if isinstance(role, Resigned):
            role.unacknowledged.discard(voter_id)
        return True

    def on_failed(self, voter_id: int) -> None:
        """A node that shuts down asks once: voters it does not reach notice by themselves."""
        role = self._state.role
        if self._state.shutting_down and isinstance(role, Resigned):
            role.unacknowledged.discard(voter_id)
