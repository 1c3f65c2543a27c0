"""OwnVote: keeps this node's entry among the voters up to date, or asks for one.

A voter reports its endpoints and versions to the leader when the log has others (UpdateRaftVoter).
An observer that may become a voter asks to be added, after an older entry of its node id has been
removed.
"""

from __future__ import annotations

from moldau.broker.raft.machine.quorum.outbox import Outbox
from moldau.broker.raft.machine.quorum.roles import Follower
from moldau.broker.raft.machine.quorum.state import QuorumState
from moldau.broker.raft.machine.rpcs import (
    Peer,
    Reply,
    Request,
    VoterAdditionAsked,
    VoterRemovalAsked,
    VoterUpdateAsked,
)
from moldau.wire.errors import ErrorCode

#: Errors after which the node waits for a while: its request was, or will be, done.
_DONE_ADDING = (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.DUPLICATE_VOTER)
_DONE_REMOVING = (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.VOTER_NOT_FOUND)


class OwnVote:
    def __init__(self, state: QuorumState, outbox: Outbox) -> None:
        self._state = state
        self._outbox = outbox

    def report(self, role: Follower, leader: Peer) -> bool:
        """Send a request about this node's vote; False if none is needed or possible now."""
        state = self._state
        request = self._needed(role)
        if request is None:
            role.update_at_ms = state.after(state.settings.fetch_timeout_ms)
            return False
        return self._outbox.send(leader, request, state.now_ms) is not None

    def _needed(self, role: Follower) -> Request | None:
        state, local = self._state, self._state.local_voter
        is_dynamic = state.history.is_dynamic
        if not state.is_voter:
            settings = state.settings
            if not (is_dynamic and settings.can_become_voter and settings.auto_join_enable):
                return None
            old = state.voters.voters.get(state.local.id)
            if old is not None:
                return VoterRemovalAsked(voter=old.key)
            return VoterAdditionAsked(
                voter=local, ack_when_committed=False, timeout_ms=settings.request_timeout_ms
            )
        wanted = state.voters.needs_update(local) if is_dynamic else not role.has_updated
        if not wanted or not local.endpoints:
            return None
        return VoterUpdateAsked(epoch=state.epoch, voter=local)

    def on_addition_reply(self, reply: Reply) -> bool:
        """False when the peer is not asked again for a while; so too the others."""
        return self._wait_if(reply.error in _DONE_ADDING)

    def on_removal_reply(self, reply: Reply) -> bool:
        return self._wait_if(reply.error in _DONE_REMOVING)

    def _wait_if(self, done: bool) -> bool:
        role = self._state.role
        if not done or not isinstance(role, Follower):
            return False
        role.update_at_ms = self._state.after(self._state.settings.fetch_timeout_ms)
        return True

    def on_update_reply(self, reply: Reply) -> bool:
        role = self._state.role
        if not isinstance(role, Follower):
            return False
        if reply.error not in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION):
            return False
        role.has_updated = True
        return True
