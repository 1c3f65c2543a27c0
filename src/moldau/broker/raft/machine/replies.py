"""What a node of the quorum makes of the answers to its own requests."""

from __future__ import annotations

from collections.abc import Collection
from typing import assert_never

from moldau.broker.raft.machine.log_view import truncation_offset
from moldau.broker.raft.machine.peers import Sent
from moldau.broker.raft.machine.quorum_events import (
    Answer,
    Answered,
    AppendChunk,
    AppendRecords,
    AppendVoters,
    DropSnapshot,
    FinishSnapshot,
    StartSnapshot,
    TruncateTo,
)
from moldau.broker.raft.machine.requests import Answering
from moldau.broker.raft.machine.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    SnapshotProgress,
)
from moldau.broker.raft.machine.rpcs import (
    NO_EPOCH,
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
from moldau.invariant import invariant
from moldau.wire.errors import ErrorCode

_TRY_ADDING_LATER = (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.DUPLICATE_VOTER)
_TRY_REMOVING_LATER = (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.VOTER_NOT_FOUND)


# A leader that cannot be reached so often, for this part of the fetch timeout, counts as gone.
FAILURES_MAX = 3
UNREACHABLE_PART = 4
# Voters whose leader refuses connections stand one after another, so that votes are not split: this
# part of the election timeout lies between two of them.
SUCCESSION_PART = 8


class Asking(Answering):
    """The part of the machine that asks."""

    def on_answered(self, event: Answered) -> None:
        sent = self.peers.answered(event.request_id)
        if sent is None:
            return
        if isinstance(sent.request, VersionsAsked):
            self._on_versions(event.request_id, event.reply)
        if event.reply is None and isinstance(sent.request, FetchAsked | SnapshotAsked):
            self._on_unreachable(sent.peer.id, refused=event.refused)
        if event.refused and isinstance(self.role, Prospective | Candidate):
            self.role.tally.gone.add(sent.peer.id)
            self._shorten_if_hopeless(self.role)
        if event.reply is None or not self._on_reply(sent, event.reply):
            if self.shutting_down and isinstance(self.role, Resigned):
                # Who cannot be told once finds out by himself.
                self.role.unacknowledged.discard(sent.peer.id)
            self.peers.failed(sent.peer.id, self.now_ms)

    def _on_reply(self, sent: Sent, reply: Reply) -> bool:
        """False when the peer is to be left alone for a while."""
        request = sent.request
        match request:
            case VersionsAsked():
                return reply.error is ErrorCode.NONE
            case VoterAdditionAsked():
                return self._on_voters_asked(reply, _TRY_ADDING_LATER)
            case VoterRemovalAsked():
                return self._on_voters_asked(reply, _TRY_REMOVING_LATER)
            case VoteAsked():
                if reply.error is ErrorCode.UNSUPPORTED_VERSION:
                    return self._on_no_pre_vote()
            case EpochBegun() | EpochEnded() | FetchAsked() | SnapshotAsked() | VoterUpdateAsked():
                pass
            case _:
                assert_never(request)
        handled = self._on_whereabouts(reply)
        if handled is not None:
            return handled
        if isinstance(request, VoteAsked):
            return self._on_vote_reply(sent.peer.id, request, reply)
        if isinstance(request, FetchAsked):
            return self._on_fetch_reply(request, reply)
        if isinstance(request, SnapshotAsked):
            return self._on_chunk(request, reply)
        if isinstance(request, VoterUpdateAsked):
            return self._on_update_reply(reply)
        if reply.error is not ErrorCode.NONE:
            return False
        if isinstance(request, EpochEnded) and isinstance(self.role, Resigned):
            self.role.unacknowledged.discard(sent.peer.id)
        return True

    def _on_whereabouts(self, reply: Reply) -> bool | None:
        """What every reply tells of epoch and leader; None if it goes on to its own meaning."""
        error = reply.error
        if reply.epoch == NO_EPOCH:
            return False
        if reply.epoch < self.epoch or error is ErrorCode.UNKNOWN_LEADER_EPOCH:
            # The peer is behind and hears of the epoch in time.
            return reply.epoch < self.epoch and error is ErrorCode.NONE
        outdated = error in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if reply.epoch > self.epoch or outdated:
            return self.learn_leader(reply.leader_id, reply.epoch, reply.endpoints)
        if not self.has_leader:
            self.learn_leader(reply.leader_id, reply.epoch, reply.endpoints)
            return None if error is ErrorCode.NONE else True
        if error in (ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.INVALID_REQUEST):
            return False
        return False if error is ErrorCode.INVALID_VOTER_KEY else None

    # Elections --------------------------------------------------------------------------

    def _on_no_pre_vote(self) -> bool:
        """An older node, which knows no pre-votes: ask it for a real one."""
        if isinstance(self.role, Prospective):
            self.to_candidate()
        return True

    def _on_vote_reply(self, voter_id: int, request: VoteAsked, reply: Reply) -> bool:
        if reply.error is not ErrorCode.NONE or not isinstance(reply, VoteReply):
            return False
        role = self.role
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
                self.to_candidate()
            else:
                self.to_leader(self.epoch, role.tally)
        elif role.tally.is_lost and isinstance(role, Prospective):
            self.after_lost_pre_vote()
        else:
            self._shorten_if_hopeless(role)
        return True

    def _shorten_if_hopeless(self, role: Prospective | Candidate) -> None:
        """After a split vote, or a pre-vote that came before the others noticed: those who are left
        try again one after another instead of sitting out the election timeout."""
        tally = role.tally
        if tally.is_hopeless and not tally.is_lost:
            delay_ms = self.settings.retry_backoff_ms + self._succession_delay_ms(tally.gone)
            role.deadline_ms = min(role.deadline_ms, self.now_ms + delay_ms)

    # Following --------------------------------------------------------------------------

    def _on_fetch_reply(self, request: FetchAsked, reply: Reply) -> bool:
        role = self.role
        if reply.error is not ErrorCode.NONE or not isinstance(reply, FetchReply):
            return False
        if not isinstance(role, Follower):
            return False
        if request.offset != self.log.end_offset or request.last_epoch != self.log.last_epoch:
            return True
        if reply.diverging is not None:
            self._truncate(reply.diverging)
        elif reply.snapshot_id is not None:
            if reply.snapshot_id.end_offset < self.high_watermark:
                return False
            role.snapshot = SnapshotProgress(reply.snapshot_id)
            self.out.append(StartSnapshot(reply.snapshot_id))
        else:
            self.leader_high_watermark = reply.high_watermark
            if len(reply.records):
                self.out.append(AppendRecords(reply.records))
            else:
                self.follow_high_watermark()
        self._fetch_succeeded(role)
        return True

    def _truncate(self, diverging: EndOfEpoch) -> None:
        offset = truncation_offset(self.log, diverging)
        invariant(
            offset >= self.high_watermark,
            f"the leader wants the log cut to {offset}, which is below the committed"
            f" {self.high_watermark}",
        )
        self.synced_offset = min(self.synced_offset, offset)
        self.is_cutting = True
        self.history.truncate_to(offset)
        self.out.append(TruncateTo(offset))

    def _on_unreachable(self, peer_id: int, *, refused: bool) -> None:
        """A leader that several calls in a row do not even reach is most likely gone, and one whose
        address refuses connections is: do not wait for the fetch timeout. If it is not gone, the
        others know, and refuse their pre-votes."""
        role = self.role
        if not isinstance(role, Follower) or peer_id != self.election.leader_id:
            return
        if role.failures == 0:
            role.failing_since_ms = self.now_ms
        role.failures += 1
        waited_ms = self.now_ms - role.failing_since_ms
        if refused:
            deadline_ms = self.now_ms + self._succession_delay_ms({peer_id})
            role.fetch_deadline_ms = min(role.fetch_deadline_ms, deadline_ms)
        if (
            role.failures >= FAILURES_MAX
            and waited_ms >= self.settings.fetch_timeout_ms // UNREACHABLE_PART
        ):
            role.fetch_deadline_ms = min(role.fetch_deadline_ms, self.now_ms)

    def _succession_delay_ms(self, gone: Collection[int]) -> int:
        """By the order of ids, and a little by chance: a voter that was slow to notice may come
        close to the next one's turn."""
        step_ms = max(1, self.settings.election_timeout_ms // SUCCESSION_PART)
        before = sum(
            voter_id < self.local.id for voter_id in self.voters.voters if voter_id not in gone
        )
        return before * step_ms + self.random_below(max(1, step_ms // 4))

    def _fetch_succeeded(self, role: Follower) -> None:
        role.has_fetched = True
        role.failures = 0
        # Followers that lose their leader at one moment should not stand at one moment.
        timeout_ms = self.settings.fetch_timeout_ms
        role.fetch_deadline_ms = (
            self.now_ms + timeout_ms + self.random_below(max(1, timeout_ms // 10))
        )

    def follow_high_watermark(self) -> None:
        if not isinstance(self.role, Follower):
            return
        if self.commit_up_to(min(self.leader_high_watermark, self.log.end_offset)):
            self.history.forget_before(self.high_watermark)

    def _on_chunk(self, request: SnapshotAsked, reply: Reply) -> bool:
        role = self.role
        if not isinstance(role, Follower) or not isinstance(reply, SnapshotReply):
            return False
        progress = role.snapshot
        if progress is None or progress.snapshot_id != request.snapshot_id:
            return True
        if reply.error is ErrorCode.SNAPSHOT_NOT_FOUND or (
            reply.error is ErrorCode.NONE and reply.snapshot_id is None
        ):
            role.snapshot = None
            self.out.append(DropSnapshot())
            self._fetch_succeeded(role)
            return True
        if reply.error is not ErrorCode.NONE:
            return False
        if reply.snapshot_id != progress.snapshot_id or reply.position != progress.position:
            return False
        self.out.append(AppendChunk(reply.chunk))
        progress.position += len(reply.chunk)
        if progress.position >= reply.size:
            progress.installing = True
            self.out.append(FinishSnapshot(progress.snapshot_id))
        self._fetch_succeeded(role)
        return bool(len(reply.chunk))

    # Voters -----------------------------------------------------------------------------

    def _on_versions(self, request_id: int, reply: Reply | None) -> None:
        role = self.role
        if not isinstance(role, Leader):
            return
        pending = role.changes.pending
        if pending is None or pending.adding is None or pending.probe_id != request_id:
            return
        caught_up = role.leadership.is_caught_up(pending.adding.key, self.now_ms)
        versions = reply if isinstance(reply, VersionsReply) else None
        result = role.changes.probed(versions, caught_up=caught_up)
        if isinstance(result, Reply):
            self.finish_change(role, result)
            return
        pending.offset = self.log.end_offset
        self.out.append(AppendVoters(result))
        if not pending.ack_when_committed and pending.token is not None:
            self.out.append(Answer(token=pending.token, reply=Reply()))
            pending.token = None

    def _on_voters_asked(self, reply: Reply, later: tuple[ErrorCode, ...]) -> bool:
        if isinstance(self.role, Follower) and reply.error in later:
            self.role.update_at_ms = self.now_ms + self.settings.fetch_timeout_ms
            return True
        return False

    def _on_update_reply(self, reply: Reply) -> bool:
        if not isinstance(self.role, Follower):
            return False
        if reply.error not in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION):
            return False
        self.role.has_updated = True
        return True
