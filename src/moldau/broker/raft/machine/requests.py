"""How a node of the quorum answers what others ask of it."""

from __future__ import annotations

from typing import assert_never

from moldau.broker.raft.machine.core import QuorumCore
from moldau.broker.raft.machine.log_view import BOOTSTRAP_SNAPSHOT, position_of
from moldau.broker.raft.machine.quorum_events import (
    Answer,
    AnswerChunk,
    AnswerRecords,
    AppendVoters,
    Received,
)
from moldau.broker.raft.machine.quorum_state import NO_NODE, Election
from moldau.broker.raft.machine.roles import (
    Candidate,
    Follower,
    Leader,
    ParkedFetch,
    Prospective,
    Resigned,
    Unattached,
)
from moldau.broker.raft.machine.rpcs import (
    UNKNOWN_OFFSET,
    EndOfEpoch,
    EpochBegun,
    EpochEnded,
    FetchAsked,
    FetchReply,
    Reply,
    SnapshotAsked,
    SnapshotReply,
    VersionsAsked,
    VersionsReply,
    VoteAsked,
    VoterAdditionAsked,
    VoteReply,
    VoterRemovalAsked,
    VoterUpdateAsked,
)
from moldau.broker.raft.machine.snapshot_id import SnapshotId
from moldau.broker.raft.machine.voter_changes import PendingChange
from moldau.broker.raft.machine.voters import ReplicaKey, VoterEndpoint
from moldau.broker.raft.machine.voting import may_grant, successor_backoff_ms
from moldau.wire.errors import ErrorCode


class Answering(QuorumCore):
    """The part of the machine that answers."""

    def on_received(self, event: Received) -> None:
        token, request = event.token, event.request
        match request:
            case VoteAsked():
                self.out.append(Answer(token=token, reply=self._on_vote(request)))
            case EpochBegun():
                self.out.append(Answer(token=token, reply=self._on_epoch_begun(request)))
            case EpochEnded():
                self.out.append(Answer(token=token, reply=self._on_epoch_ended(request)))
            case FetchAsked():
                self._on_fetch(token, request)
            case SnapshotAsked():
                self._on_snapshot_asked(token, request)
            case VoterAdditionAsked():
                self._on_addition(token, request)
            case VoterRemovalAsked():
                self._on_removal(token, request)
            case VoterUpdateAsked():
                self.out.append(Answer(token=token, reply=self._on_update(request)))
            case VersionsAsked():
                voter = self.local_voter
                levels = (voter.min_kraft_version, voter.max_kraft_version)
                self.out.append(Answer(token=token, reply=VersionsReply(levels=levels)))
            case _:
                assert_never(request)

    # Elections --------------------------------------------------------------------------

    def _on_vote(self, request: VoteAsked) -> VoteReply:
        too_new = (
            request.last_epoch > request.epoch
            if request.pre_vote
            else request.last_epoch >= request.epoch
        )
        if request.end_offset < 0 or request.last_epoch < 0 or too_new:
            return self._vote_reply(ErrorCode.INVALID_REQUEST)
        refusal = self._voter_request_refusal(request.candidate.id, request.epoch)
        if refusal is not ErrorCode.NONE:
            return self._vote_reply(refusal)
        if request.epoch > self.epoch:
            self.to_unattached(request.epoch)
        if not self._is_meant(request.voter):
            return self._vote_reply(ErrorCode.INVALID_VOTER_KEY)
        granted = self._can_grant(request)
        if granted and not request.pre_vote and self.election.voted is None:
            self._vote_for(request.candidate)
        return self._vote_reply(ErrorCode.NONE, granted=granted)

    def _vote_reply(self, error: ErrorCode, *, granted: bool = False) -> VoteReply:
        return VoteReply(
            error=error,
            epoch=self.epoch,
            leader_id=self.election.leader_id,
            endpoints=self.leader_endpoints,
            granted=granted,
        )

    def _can_grant(self, request: VoteAsked) -> bool:
        theirs = (request.last_epoch, request.end_offset)
        up_to_date = theirs >= (self.log.last_epoch, self.log.end_offset)
        role = self.role
        if isinstance(role, Unattached | Prospective):
            return may_grant(
                self.election, request.candidate, up_to_date=up_to_date, pre_vote=request.pre_vote
            )
        if isinstance(role, Follower):
            # Who does not reach the leader either cannot say that it lives.
            leader_lives = role.has_fetched and role.failures == 0
            return request.pre_vote and up_to_date and not leader_lives
        if isinstance(role, Candidate | Resigned):
            return request.pre_vote and up_to_date
        return False

    def _vote_for(self, candidate: ReplicaKey) -> None:
        self._persist(
            Election(epoch=self.epoch, leader_id=self.election.leader_id, voted=candidate)
        )
        if isinstance(self.role, Unattached | Prospective) and self.may_stand:
            # Give the candidate the time to win.
            self.role.deadline_ms = self.now_ms + self.random_election_timeout_ms()

    def _on_epoch_begun(self, request: EpochBegun) -> Reply:
        refusal = self._voter_request_refusal(request.leader_id, request.epoch)
        if refusal is not ErrorCode.NONE:
            return self.reply(refusal)
        self.learn_leader(request.leader_id, request.epoch, request.endpoints)
        if not self._is_meant(request.voter):
            return self.reply(ErrorCode.INVALID_VOTER_KEY)
        return self.reply()

    def _on_epoch_ended(self, request: EpochEnded) -> Reply:
        refusal = self._voter_request_refusal(request.leader_id, request.epoch)
        if refusal is not ErrorCode.NONE:
            return self.reply(refusal)
        self.learn_leader(request.leader_id, request.epoch, request.endpoints)
        role = self.role
        if isinstance(role, Follower) and self.election.leader_id == request.leader_id:
            successors = request.successors
            position = next(
                (i for i, key in enumerate(successors) if key.matches(self.local)), len(successors)
            )
            backoff_ms = successor_backoff_ms(
                position, len(successors), self.settings.election_backoff_max_ms
            )
            role.fetch_deadline_ms = self.now_ms + backoff_ms
        return self.reply()

    def learn_leader(
        self, leader_id: int, epoch: int, endpoints: tuple[VoterEndpoint, ...]
    ) -> bool:
        """Take up what somebody says about the leader; whether that changed anything."""
        if epoch < self.epoch or (epoch == self.epoch and self.is_leader):
            return False
        if leader_id == self.local.id:
            # This node has forgotten that epoch, or has resigned from it.
            leader_id = NO_NODE
        endpoints = endpoints or self.voters.endpoints_of(leader_id)
        known = leader_id != NO_NODE and self.peer_at(leader_id, endpoints) is not None
        if epoch > self.epoch:
            if known:
                self.to_follower(epoch, leader_id, endpoints)
            else:
                self.to_unattached(epoch)
            return True
        if not known or (self.has_leader and self.election.leader_id != leader_id):
            return False
        if not self.has_leader or len(endpoints) > len(self.leader_endpoints):
            self.to_follower(epoch, leader_id, endpoints)
            return True
        return False

    def _voter_request_refusal(self, node_id: int, epoch: int) -> ErrorCode:
        if epoch < self.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.INVALID_REQUEST if node_id < 0 else ErrorCode.NONE

    def _is_meant(self, voter: ReplicaKey | None) -> bool:
        return voter is None or voter.matches(self.local)

    def _leader_request_refusal(self, epoch: int) -> ErrorCode:
        if epoch < self.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if epoch > self.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        if not self.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.BROKER_NOT_AVAILABLE if self.shutting_down else ErrorCode.NONE

    # Replication ------------------------------------------------------------------------

    def _on_fetch(self, token: int, request: FetchAsked) -> None:
        role = self.role
        refusal = self._leader_request_refusal(request.epoch)
        if refusal is ErrorCode.NONE and request.replica.id == self.local.id:
            # Another node has this node's id.
            refusal = ErrorCode.UNKNOWN_SERVER_ERROR
        if refusal is not ErrorCode.NONE or not isinstance(role, Leader):
            self.out.append(Answer(token=token, reply=self._fetch_reply(refusal)))
            return
        position = position_of(self.log, request.offset, request.last_epoch)
        if position is not None:
            self.out.append(Answer(token=token, reply=self._elsewhere(position)))
            return
        self.take_progress(role, request)
        known = self.established_high_watermark
        has_news = known is not None and request.high_watermark < known
        if request.offset < self.log.end_offset or has_news or request.max_wait_ms <= 0:
            self._answer_records(token, request)
        else:
            deadline_ms = self.now_ms + request.max_wait_ms
            role.parked.append(ParkedFetch(token, request, deadline_ms))

    def take_progress(self, role: Leader, request: FetchAsked) -> None:
        if request.replica.id >= 0:
            role.leadership.fetched(
                request.replica, request.offset, self.log.end_offset, self.now_ms
            )
            self.advance()

    def _fetch_reply(self, error: ErrorCode) -> FetchReply:
        return FetchReply(
            error=error,
            epoch=self.epoch,
            leader_id=self.election.leader_id,
            endpoints=self.leader_endpoints,
            log_start_offset=self.log.start_offset,
        )

    def _elsewhere(self, position: EndOfEpoch | SnapshotId) -> FetchReply:
        established = self.established_high_watermark
        return FetchReply(
            epoch=self.epoch,
            leader_id=self.election.leader_id,
            endpoints=self.leader_endpoints,
            log_start_offset=self.log.start_offset,
            high_watermark=UNKNOWN_OFFSET if established is None else established,
            diverging=position if isinstance(position, EndOfEpoch) else None,
            snapshot_id=position if isinstance(position, SnapshotId) else None,
        )

    def _answer_records(self, token: int, request: FetchAsked) -> None:
        established = self.established_high_watermark
        reply = FetchReply(
            epoch=self.epoch,
            leader_id=self.election.leader_id,
            endpoints=self.leader_endpoints,
            log_start_offset=self.log.start_offset,
            high_watermark=UNKNOWN_OFFSET if established is None else established,
            read_from=request.offset,
        )
        self.out.append(AnswerRecords(token=token, request=request, reply=reply))

    def wake_fetches(self) -> None:
        """The log has grown or more of it is committed: everybody who waits is told."""
        role = self.role
        if isinstance(role, Leader):
            parked, role.parked = role.parked, []
            for fetch in parked:
                self._answer_records(fetch.token, fetch.request)

    def expire_fetches(self) -> None:
        role = self.role
        if isinstance(role, Leader):
            due = [fetch for fetch in role.parked if fetch.deadline_ms <= self.now_ms]
            if due:
                role.parked = [f for f in role.parked if f.deadline_ms > self.now_ms]
                for fetch in due:
                    self._answer_records(fetch.token, fetch.request)

    def advance(self) -> None:
        """Commit what a majority has on disk."""
        role = self.role
        if not isinstance(role, Leader):
            return
        offset = role.leadership.majority_offset()
        if offset <= role.leadership.epoch_start_offset or not self.commit_up_to(offset):
            return
        self.history.forget_before(self.high_watermark)
        self._after_commit(role)
        self.wake_fetches()

    def _after_commit(self, role: Leader) -> None:
        pending = role.changes.pending
        offset = None if pending is None else pending.offset
        if offset is not None and offset < self.high_watermark:
            self.finish_change(role, Reply())
        if not self.is_voter and self.history.voters_offset < self.high_watermark:
            # It has led its own removal to the end.
            role.leadership.resign_requested = True

    def _on_snapshot_asked(self, token: int, request: SnapshotAsked) -> None:
        role = self.role
        refusal = self._leader_request_refusal(request.epoch)
        known = request.snapshot_id in self.log.snapshots
        if refusal is ErrorCode.NONE and (not known or request.snapshot_id == BOOTSTRAP_SNAPSHOT):
            refusal = ErrorCode.SNAPSHOT_NOT_FOUND
        reply = SnapshotReply(
            error=refusal,
            epoch=self.epoch,
            leader_id=self.election.leader_id,
            endpoints=self.leader_endpoints,
            snapshot_id=request.snapshot_id if refusal is ErrorCode.NONE else None,
            position=request.position,
        )
        if refusal is not ErrorCode.NONE or not isinstance(role, Leader):
            self.out.append(Answer(token=token, reply=reply))
            return
        if request.replica.id >= 0 and request.replica.id != self.local.id:
            role.leadership.heard_from(request.replica, self.now_ms)
        self.out.append(AnswerChunk(token=token, request=request, reply=reply))

    # Voters -----------------------------------------------------------------------------

    def _on_addition(self, token: int, request: VoterAdditionAsked) -> None:
        role = self.role
        refusal = self._leader_request_refusal(self.epoch)
        voter = request.voter
        if refusal is not ErrorCode.NONE or not isinstance(role, Leader):
            self.out.append(Answer(token=token, reply=Reply(error=refusal)))
            return
        peer = self.peer_at(voter.key.id, voter.endpoints)
        problem = role.changes.addition_refusal(self.established_high_watermark, voter.key)
        if problem is None and peer is None:
            problem = Reply(
                error=ErrorCode.INVALID_REQUEST,
                message="Add voter request didn't include the endpoint for the default listener"
                f" {self.settings.listener_name}",
            )
        probe_id = None if problem is not None or peer is None else self.send(peer, VersionsAsked())
        if problem is None and probe_id is None:
            problem = Reply(
                error=ErrorCode.REQUEST_TIMED_OUT,
                message=f"New voter {voter.key.id} is not ready to receive requests",
            )
        if problem is not None:
            self.out.append(Answer(token=token, reply=problem))
            return
        role.changes.pending = PendingChange(
            token,
            self.now_ms + self.settings.request_timeout_ms,
            adding=voter,
            probe_id=probe_id,
            ack_when_committed=request.ack_when_committed,
        )

    def _on_removal(self, token: int, request: VoterRemovalAsked) -> None:
        role = self.role
        refusal = self._leader_request_refusal(self.epoch)
        if refusal is not ErrorCode.NONE or not isinstance(role, Leader):
            self.out.append(Answer(token=token, reply=Reply(error=refusal)))
            return
        result = role.changes.removal(self.established_high_watermark, request.voter)
        if isinstance(result, Reply):
            self.out.append(Answer(token=token, reply=result))
            return
        deadline_ms = self.now_ms + self.settings.request_timeout_ms
        pending = PendingChange(token, deadline_ms, offset=self.log.end_offset)
        role.changes.pending = pending
        self.out.append(AppendVoters(result))

    def _on_update(self, request: VoterUpdateAsked) -> Reply:
        role = self.role
        refusal = self._leader_request_refusal(request.epoch)
        if refusal is not ErrorCode.NONE or not isinstance(role, Leader):
            return self.reply(refusal)
        voter = request.voter
        if self.peer_at(voter.key.id, voter.endpoints) is None:
            return self.reply(ErrorCode.INVALID_REQUEST)
        result = role.changes.update(self.established_high_watermark, voter)
        if isinstance(result, Reply):
            return self.reply(result.error)
        if result is not None and result != self.voters:
            self.out.append(AppendVoters(result))
        role.leadership.heard_from(voter.key, self.now_ms)
        return self.reply()
