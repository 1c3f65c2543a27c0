"""VoterRequests: AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter, as the leader answers them.

`voter_changes.py` decides whether a change may begin; here are the steps of one: the new voter is
asked for its versions, the voter set is appended, the request is answered when that is committed.

Invariants: one change is under way at a time; a voter set differs from the one before in one voter.
"""

from __future__ import annotations

from moldau.broker.raft.machine.quorum.events import AppendVoters
from moldau.broker.raft.machine.quorum.leading import established_high_watermark
from moldau.broker.raft.machine.quorum.outbox import Outbox
from moldau.broker.raft.machine.quorum.refusals import leader_request_refusal
from moldau.broker.raft.machine.quorum.roles import Leader
from moldau.broker.raft.machine.quorum.state import QuorumState
from moldau.broker.raft.machine.quorum.voter_changes import PendingChange
from moldau.broker.raft.machine.rpcs import (
    Reply,
    VersionsAsked,
    VersionsReply,
    VoterAdditionAsked,
    VoterRemovalAsked,
    VoterUpdateAsked,
)
from moldau.broker.raft.machine.voters import VoterSet
from moldau.invariant import invariant
from moldau.wire.errors import ErrorCode


class VoterRequests:
    def __init__(self, state: QuorumState, outbox: Outbox) -> None:
        self._state = state
        self._outbox = outbox

    def on_addition(self, token: int, request: VoterAdditionAsked) -> None:
        state = self._state
        role = state.role
        refusal = leader_request_refusal(state, state.epoch)
        if refusal is not ErrorCode.NONE or not isinstance(role, Leader):
            self._outbox.answer(token, Reply(error=refusal))
            return
        probe = self._probe(role, request)
        if isinstance(probe, Reply):
            self._outbox.answer(token, probe)
            return
        role.changes.pending = PendingChange(
            token,
            state.after(state.settings.request_timeout_ms),
            adding=request.voter,
            probe_id=probe,
            ack_when_committed=request.ack_when_committed,
        )

    def _probe(self, role: Leader, request: VoterAdditionAsked) -> int | Reply:
        """Ask the new voter for its versions: the id of that request, or the refusal."""
        state, voter = self._state, request.voter
        high_watermark = established_high_watermark(state, role)
        problem = role.changes.addition_refusal(high_watermark, voter.key)
        if problem is not None:
            return problem
        peer = state.peer_at(voter.key.id, voter.endpoints)
        if peer is None:
            return Reply(
                error=ErrorCode.INVALID_REQUEST,
                message="Add voter request didn't include the endpoint for the default listener"
                f" {state.settings.listener_name}",
            )
        probe_id = self._outbox.send(peer, VersionsAsked(), state.now_ms)
        if probe_id is None:
            return Reply(
                error=ErrorCode.REQUEST_TIMED_OUT,
                message=f"New voter {voter.key.id} is not ready to receive requests",
            )
        return probe_id

    def on_versions(self, request_id: int, reply: Reply | None) -> None:
        """The new voter has answered, or None if it has not."""
        state = self._state
        role = state.role
        if not isinstance(role, Leader):
            return
        pending = role.changes.pending
        if pending is None or pending.adding is None or pending.probe_id != request_id:
            return
        caught_up = role.leadership.is_caught_up(pending.adding.key, state.now_ms)
        versions = reply if isinstance(reply, VersionsReply) else None
        result = role.changes.probed(versions, caught_up=caught_up)
        if isinstance(result, Reply):
            self._outbox.effects += role.changes.finish(result)
            return
        pending.offset = state.log.end_offset
        self._append(result)
        if not pending.ack_when_committed and pending.token is not None:
            self._outbox.answer(pending.token, Reply())
            pending.token = None

    def on_removal(self, token: int, request: VoterRemovalAsked) -> None:
        state = self._state
        role = state.role
        refusal = leader_request_refusal(state, state.epoch)
        if refusal is not ErrorCode.NONE or not isinstance(role, Leader):
            self._outbox.answer(token, Reply(error=refusal))
            return
        result = role.changes.removal(established_high_watermark(state, role), request.voter)
        if isinstance(result, Reply):
            self._outbox.answer(token, result)
            return
        deadline_ms = state.after(state.settings.request_timeout_ms)
        role.changes.pending = PendingChange(token, deadline_ms, offset=state.log.end_offset)
        self._append(result)

    def on_update(self, request: VoterUpdateAsked) -> Reply:
        state = self._state
        role = state.role
        refusal = leader_request_refusal(state, request.epoch)
        if refusal is not ErrorCode.NONE or not isinstance(role, Leader):
            return state.reply(refusal)
        voter = request.voter
        if state.peer_at(voter.key.id, voter.endpoints) is None:
            return state.reply(ErrorCode.INVALID_REQUEST)
        result = role.changes.update(established_high_watermark(state, role), voter)
        if isinstance(result, Reply):
            return state.reply(result.error)
        if result is not None and result != state.voters:
            self._append(result)
        role.leadership.on_contact(voter.key, state.now_ms)
        return state.reply()

    def _append(self, voters: VoterSet) -> None:
        check_voter_change(self._state.voters, voters)
        self._outbox.add(AppendVoters(voters))


def check_voter_change(before: VoterSet, after: VoterSet) -> None:
    """A majority of one voter set and a majority of the next have a voter in common."""
    old = {voter.key for voter in before.voters.values()}
    new = {voter.key for voter in after.voters.values()}
    invariant(
        bool(new) and len(old ^ new) <= 1,
        f"more than one voter changes at once: from {sorted(before.voters)}"
        f" to {sorted(after.voters)}",
    )
