"""Leading: answers fetches, commits what a majority has, and keeps the voters following.

Invariants: a majority of the voters of the log's latest voter set decides; nothing is committed
before a record of the leader's own epoch is (`leadership.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from moldau.broker.raft.machine.log_view import BOOTSTRAP_SNAPSHOT, position_of
from moldau.broker.raft.machine.quorum.events import AnswerChunk, AnswerRecords, CommitUpTo
from moldau.broker.raft.machine.quorum.outbox import Outbox
from moldau.broker.raft.machine.quorum.refusals import leader_request_refusal
from moldau.broker.raft.machine.quorum.role_changes import RoleChanges
from moldau.broker.raft.machine.quorum.roles import Leader, ParkedFetch
from moldau.broker.raft.machine.quorum.state import QuorumState
from moldau.broker.raft.machine.rpcs import (
    EndOfEpoch,
    EpochBegun,
    FetchAsked,
    FetchReply,
    Reply,
    SnapshotAsked,
    SnapshotReply,
)
from moldau.broker.raft.machine.snapshot_id import SnapshotId
from moldau.invariant import invariant
from moldau.times import ElapsedMs
from moldau.wire.constants import UNKNOWN_OFFSET
from moldau.wire.errors import ErrorCode


class Leading:
    def __init__(self, state: QuorumState, outbox: Outbox, roles: RoleChanges) -> None:
        self._state = state
        self._outbox = outbox
        self._roles = roles

    # Time -------------------------------------------------------------------------------

    def poll(self, role: Leader) -> None:
        state, leadership = self._state, role.leadership
        now_ms = state.now_ms
        check_ms = leadership.check_deadline_ms
        is_alone = check_ms is not None and check_ms <= now_ms
        if state.shutting_down or leadership.resign_requested or is_alone:
            self._roles.to_resigned()
            return
        if role.parked:
            self._expire_fetches(role)
        pending = role.changes.pending
        if pending is not None and pending.deadline_ms <= now_ms:
            self._outbox.effects += role.changes.finish(Reply(error=ErrorCode.REQUEST_TIMED_OUT))
        if leadership.begin_at_ms <= now_ms:
            self._begin_epoch(role)

    def _begin_epoch(self, role: Leader) -> None:
        """Send BeginQuorumEpoch to voters that may not know that this node leads."""
        state, leadership = self._state, role.leadership
        leadership.begin_at_ms = state.after(leadership.begin_interval_ms)
        for voter in leadership.silent_voters(state.now_ms):
            peer = state.peer_at(voter.key.id, voter.endpoints)
            if peer is not None:
                request = EpochBegun(
                    epoch=state.epoch,
                    leader_id=state.local.id,
                    voter=voter.key,
                    endpoints=state.local_voter.endpoints,
                )
                self._outbox.send(peer, request, state.now_ms)

    def deadlines_ms(self, role: Leader) -> Iterator[ElapsedMs | None]:
        state, leadership = self._state, role.leadership
        yield leadership.check_deadline_ms
        if len(state.voters.others(state.local)) > 0:
            yield leadership.begin_at_ms
        for fetch in role.parked:
            yield fetch.deadline_ms
        if role.changes.pending is not None:
            yield role.changes.pending.deadline_ms

    # The log ----------------------------------------------------------------------------

    def on_appended(self, role: Leader, *, voters_changed: bool) -> None:
        if voters_changed:
            role.leadership.set_voters(self._state.voters, self._state.now_ms)
        self._answer_parked(role)

    def on_synced(self, role: Leader) -> None:
        role.leadership.synced(self._state.synced_offset)
        self._advance(role)

    def _advance(self, role: Leader) -> None:
        """Commit what a majority has on disk."""
        state, leadership = self._state, role.leadership
        offset = leadership.majority_offset()
        if offset <= leadership.epoch_start_offset or offset <= state.high_watermark:
            return
        invariant(
            leadership.voters is state.voters, "the voters of the log decide what is committed"
        )
        state.raise_high_watermark(offset)
        self._outbox.add(CommitUpTo(offset))
        state.history.forget_before(offset)
        self._after_commit(role)
        self._answer_parked(role)

    def _after_commit(self, role: Leader) -> None:
        state = self._state
        pending = role.changes.pending
        offset = None if pending is None else pending.offset
        if offset is not None and offset < state.high_watermark:
            self._outbox.effects += role.changes.finish(Reply())
        if not state.is_voter and state.history.voters_offset < state.high_watermark:
            # It has led its own removal to the end.
            role.leadership.resign_requested = True

    # Fetches ----------------------------------------------------------------------------

    def on_fetch(self, token: int, request: FetchAsked) -> None:
        state = self._state
        role = state.role
        refusal = leader_request_refusal(state, request.epoch)
        if refusal is ErrorCode.NONE and request.replica.id == state.local.id:
            # Another node has this node's id.
            refusal = ErrorCode.UNKNOWN_SERVER_ERROR
        if refusal is not ErrorCode.NONE or not isinstance(role, Leader):
            self._outbox.answer(token, self._refused_fetch(refusal))
            return
        position = position_of(state.log, request.offset, request.last_epoch)
        if position is not None:
            self._outbox.answer(token, self._elsewhere(role, position))
            return
        if request.replica.id >= 0:
            role.leadership.fetched(
                request.replica, request.offset, state.log.end_offset, state.now_ms
            )
            self._advance(role)
        known = established_high_watermark(state, role)
        has_news = known is not None and request.high_watermark < known
        if request.offset < state.log.end_offset or has_news or request.max_wait_ms <= 0:
            self._answer_records(role, token, request)
        else:
            role.parked.append(ParkedFetch(token, request, state.after(request.max_wait_ms)))

    def _refused_fetch(self, error: ErrorCode) -> FetchReply:
        state = self._state
        return FetchReply(
            error=error,
            epoch=state.epoch,
            leader_id=state.election.leader_id,
            endpoints=state.leader_endpoints,
            log_start_offset=state.log.start_offset,
        )

    def _elsewhere(self, role: Leader, position: EndOfEpoch | SnapshotId) -> FetchReply:
        """The replica's log is not a beginning of this one: where it continues instead."""
        state = self._state
        established = established_high_watermark(state, role)
        return FetchReply(
            epoch=state.epoch,
            leader_id=state.election.leader_id,
            endpoints=state.leader_endpoints,
            log_start_offset=state.log.start_offset,
            high_watermark=UNKNOWN_OFFSET if established is None else established,
            diverging=position if isinstance(position, EndOfEpoch) else None,
            snapshot_id=position if isinstance(position, SnapshotId) else None,
        )

    def _answer_records(self, role: Leader, token: int, request: FetchAsked) -> None:
        state = self._state
        established = established_high_watermark(state, role)
        reply = FetchReply(
            epoch=state.epoch,
            leader_id=state.election.leader_id,
            endpoints=state.leader_endpoints,
            log_start_offset=state.log.start_offset,
            high_watermark=UNKNOWN_OFFSET if established is None else established,
            read_from=request.offset,
        )
        self._outbox.add(AnswerRecords(token=token, request=request, reply=reply))

    def _answer_parked(self, role: Leader) -> None:
        """The log has grown, or more of it is committed."""
        if role.parked:
            parked, role.parked = role.parked, []
            for fetch in parked:
                self._answer_records(role, fetch.token, fetch.request)

    def _expire_fetches(self, role: Leader) -> None:
        now_ms = self._state.now_ms
        due = [fetch for fetch in role.parked if fetch.deadline_ms <= now_ms]
        if due:
            role.parked = [fetch for fetch in role.parked if fetch.deadline_ms > now_ms]
            for fetch in due:
                self._answer_records(role, fetch.token, fetch.request)

    def on_snapshot_fetch(self, token: int, request: SnapshotAsked) -> None:
        state = self._state
        role = state.role
        refusal = leader_request_refusal(state, request.epoch)
        known = request.snapshot_id in state.log.snapshots
        if refusal is ErrorCode.NONE and (not known or request.snapshot_id == BOOTSTRAP_SNAPSHOT):
            refusal = ErrorCode.SNAPSHOT_NOT_FOUND
        reply = SnapshotReply(
            error=refusal,
            epoch=state.epoch,
            leader_id=state.election.leader_id,
            endpoints=state.leader_endpoints,
            snapshot_id=request.snapshot_id if refusal is ErrorCode.NONE else None,
            position=request.position,
        )
        if refusal is not ErrorCode.NONE or not isinstance(role, Leader):
            self._outbox.answer(token, reply)
            return
        if request.replica.id >= 0 and request.replica.id != state.local.id:
            role.leadership.on_contact(request.replica, state.now_ms)
        self._outbox.add(AnswerChunk(token=token, request=request, reply=reply))


def established_high_watermark(state: QuorumState, role: Leader) -> int | None:
    """The high watermark once the leader has committed a record of its own epoch, else None."""
    if state.high_watermark <= role.leadership.epoch_start_offset:
        return None
    return state.high_watermark
