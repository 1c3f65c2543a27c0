"""QuorumMachine: one node of the metadata quorum. Events in, effects out.

It decides which node leads and what is committed, for voters and observers, in static and dynamic
quorums. Each decision is in a part of its own, and each part has only what it needs:

    event                        part                 decides
    Started                      RoleChanges          the role to begin with
    Received  Vote               Elections            whether to grant it
              Begin/EndEpoch     LeaderNews           whether to follow that leader
              Fetch, Snapshot    Leading              what the replica gets, what is committed
              Add/Remove/Update  VoterRequests        the next voter set
    Answered  any                LeaderNews, first    whether the epoch or the leader is new
              Vote               Elections            whether the election is won
              Fetch              Following            what to append or truncate
              Snapshot           SnapshotFetching     whether it is complete
              EndEpoch           Resigning            which voters still have to be informed
              Versions           VoterRequests        whether the new voter is added
              Add/Remove/Update  OwnVote              when to report again
    Appended, Synced             Leading, Following   what is committed

After every event, and when time has passed, the part of the role does what is due:

    UNATTACHED   Elections, Following  stand after the election timeout; fetch to find the leader
    PROSPECTIVE  Elections             ask for pre-votes
    CANDIDATE    Elections             ask for votes
    LEADER       Leading               send BeginQuorumEpoch, answer fetches that wait, or resign
    FOLLOWER     Following             fetch from the leader, or stand when it is gone
    RESIGNED     Resigning             send EndQuorumEpoch, then begin the next epoch

After Started, which comes once, every event is legal in every role: networks delay and repeat, so a
part ignores, or answers with an error, what its role has no use for. Which role may follow which is
in `transitions.py`; what a node knows is in `state.py`, with the invariants.

Time is passed in with every event. At `deadline_ms` the machine needs an event even if nothing has
happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import assert_never

from moldau.broker.raft.machine.election_file import Election
from moldau.broker.raft.machine.log_view import LogView
from moldau.broker.raft.machine.quorum.elections import Elections
from moldau.broker.raft.machine.quorum.events import (
    Answered,
    Appended,
    AppendFailed,
    CommitUpTo,
    Effect,
    Event,
    Received,
    ShutDown,
    SnapshotInstalled,
    Started,
    Synced,
    TimePassed,
)
from moldau.broker.raft.machine.quorum.following import Following
from moldau.broker.raft.machine.quorum.leader_news import LeaderNews
from moldau.broker.raft.machine.quorum.leading import Leading, established_high_watermark
from moldau.broker.raft.machine.quorum.outbox import Outbox
from moldau.broker.raft.machine.quorum.own_vote import OwnVote
from moldau.broker.raft.machine.quorum.peers import Sent
from moldau.broker.raft.machine.quorum.resigning import Resigning
from moldau.broker.raft.machine.quorum.role_changes import RoleChanges
from moldau.broker.raft.machine.quorum.roles import (
    FOREVER_MS,
    ROLE_NAMES,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    RoleName,
    Unattached,
)
from moldau.broker.raft.machine.quorum.snapshot_fetching import SnapshotFetching
from moldau.broker.raft.machine.quorum.state import QuorumState
from moldau.broker.raft.machine.quorum.timeouts import Timeouts
from moldau.broker.raft.machine.quorum.voter_requests import VoterRequests
from moldau.broker.raft.machine.rpcs import (
    EpochBegun,
    EpochEnded,
    FetchAsked,
    Peer,
    Reply,
    SnapshotAsked,
    VersionsAsked,
    VersionsReply,
    VoteAsked,
    VoterAdditionAsked,
    VoterRemovalAsked,
    VoterUpdateAsked,
)
from moldau.broker.raft.machine.settings import QuorumSettings
from moldau.broker.raft.machine.voter_history import VoterHistory
from moldau.broker.raft.machine.voters import ReplicaKey, Voter, VoterSet
from moldau.invariant import invariant
from moldau.times import ElapsedMs
from moldau.wire.errors import ApiError, ErrorCode

_ROLE_CHANGES_MAX = 8


class QuorumMachine:
    """Effects are performed in order, and all of them before the next event."""

    def __init__(
        self,
        local: Voter,
        history: VoterHistory,
        election: Election,
        log: LogView,
        settings: QuorumSettings,
        *,
        random_below: Callable[[int], int],
        high_watermark: int = 0,
    ) -> None:
        """`local` is this node as a voter; everything before `high_watermark` is committed."""
        state = QuorumState(local, history, election, log, settings, high_watermark=high_watermark)
        outbox = Outbox(settings.retry_backoff_ms)
        timeouts = Timeouts(settings, random_below)
        roles = RoleChanges(state, outbox, timeouts)
        self.state = state
        self._outbox = outbox
        self._roles = roles
        self._elections = Elections(state, outbox, roles, timeouts)
        self._news = LeaderNews(state, roles)
        self._leading = Leading(state, outbox, roles)
        self._voter_requests = VoterRequests(state, outbox)
        self._resigning = Resigning(state, outbox, roles)
        self._snapshots = SnapshotFetching(state, outbox, timeouts)
        self._own_vote = OwnVote(state, outbox)
        self._following = Following(state, outbox, roles, timeouts, self._snapshots, self._own_vote)

    def step(self, event: Event, now_ms: ElapsedMs) -> list[Effect]:
        state = self.state
        if now_ms > state.now_ms:
            state.now_ms = now_ms
        match event:
            case Received():
                self._on_received(event)
            case Answered():
                self._on_answered(event)
            case Appended():
                self._on_appended(event)
            case Synced(end_offset):
                self._on_synced(end_offset)
            case TimePassed():
                pass
            case Started():
                self._roles.start()
            case AppendFailed():
                self._outbox.peers.failed(state.election.leader_id, state.now_ms)
            case SnapshotInstalled():
                self._on_snapshot_installed(event)
            case ShutDown():
                state.shutting_down = True
            case _:
                assert_never(event)
        self._poll()
        return self._outbox.take()

    # Views ------------------------------------------------------------------------------

    @property
    def local(self) -> ReplicaKey:
        return self.state.local

    @property
    def role(self) -> Role:
        return self.state.role

    @property
    def role_name(self) -> RoleName:
        return ROLE_NAMES[type(self.state.role)]

    @property
    def is_leader(self) -> bool:
        return self.state.is_leader

    @property
    def epoch(self) -> int:
        return self.state.epoch

    @property
    def election(self) -> Election:
        return self.state.election

    @property
    def leader(self) -> Peer | None:
        """Where the leader is; None while it, or its address, is not known."""
        return self.state.peer_at(self.state.election.leader_id, self.state.leader_endpoints)

    @property
    def history(self) -> VoterHistory:
        return self.state.history

    @property
    def voters(self) -> VoterSet:
        return self.state.voters

    @property
    def is_voter(self) -> bool:
        return self.state.is_voter

    @property
    def high_watermark(self) -> int:
        return self.state.high_watermark

    @property
    def established_high_watermark(self) -> int | None:
        """A leader's high watermark, None before it has committed a record of its epoch."""
        role = self.state.role
        return established_high_watermark(self.state, role) if isinstance(role, Leader) else None

    @property
    def leader_high_watermark(self) -> int | None:
        """The leader's high watermark in this epoch; None if it is not known."""
        role = self.state.role
        if isinstance(role, Follower):
            return role.leader_high_watermark if role.has_fetched else None
        return self.established_high_watermark

    @property
    def is_finished(self) -> bool:
        """After ShutDown: no voter has to be informed any more."""
        role = self.state.role
        return self.state.shutting_down and not (isinstance(role, Resigned) and role.unacknowledged)

    def check_upgrade(self, version: int) -> VoterSet:
        """The voters to append with a new kraft.version; ApiError if that is not possible now."""
        role = self.state.role
        if not isinstance(role, Leader):
            raise ApiError(ErrorCode.NOT_CONTROLLER, "this node does not lead the quorum")
        return role.changes.upgraded(version, self.state.local_voter)

    # Requests and responses -------------------------------------------------------------

    def _on_received(self, event: Received) -> None:
        token, request = event.token, event.request
        answer = self._outbox.answer
        match request:
            case FetchAsked():
                self._leading.on_fetch(token, request)
            case VoteAsked():
                answer(token, self._elections.on_vote(request))
            case EpochBegun():
                answer(token, self._news.on_epoch_begun(request))
            case EpochEnded():
                answer(token, self._news.on_epoch_ended(request))
            case SnapshotAsked():
                self._leading.on_snapshot_fetch(token, request)
            case VoterAdditionAsked():
                self._voter_requests.on_addition(token, request)
            case VoterRemovalAsked():
                self._voter_requests.on_removal(token, request)
            case VoterUpdateAsked():
                answer(token, self._voter_requests.on_update(request))
            case VersionsAsked():
                voter = self.state.local_voter
                levels = (voter.min_kraft_version, voter.max_kraft_version)
                answer(token, VersionsReply(levels=levels))
            case _:
                assert_never(request)

    def _on_answered(self, event: Answered) -> None:
        peers = self._outbox.peers
        sent = peers.answered(event.request_id)
        if sent is None:
            return
        peer_id, request = sent.peer.id, sent.request
        if isinstance(request, VersionsAsked):
            self._voter_requests.on_versions(event.request_id, event.reply)
        if event.reply is None and isinstance(request, FetchAsked | SnapshotAsked):
            self._following.on_unreachable(peer_id, refused=event.refused)
        if event.refused:
            self._elections.on_refused(peer_id)
        if event.reply is None or not self._on_reply(sent, event.reply):
            self._resigning.on_failed(peer_id)
            peers.failed(peer_id, self.state.now_ms)

    def _on_reply(self, sent: Sent, reply: Reply) -> bool:
        """False when the peer is not asked again for a while."""
        request = sent.request
        match request:
            # These responses have no epoch and no leader.
            case VersionsAsked():
                return reply.error is ErrorCode.NONE
            case VoterAdditionAsked():
                return self._own_vote.on_addition_reply(reply)
            case VoterRemovalAsked():
                return self._own_vote.on_removal_reply(reply)
            case VoteAsked() if reply.error is ErrorCode.UNSUPPORTED_VERSION:
                self._elections.on_no_pre_vote()
                return True
        handled = self._news.on_reply(reply)
        if handled is not None:
            return handled
        match request:
            case VoteAsked():
                return self._elections.on_reply(sent.peer.id, request, reply)
            case FetchAsked():
                return self._following.on_fetch_reply(request, reply)
            case SnapshotAsked():
                return self._snapshots.on_reply(request, reply)
            case VoterUpdateAsked():
                return self._own_vote.on_update_reply(reply)
            case EpochBegun():
                return reply.error is ErrorCode.NONE
            case EpochEnded():
                return self._resigning.on_reply(sent.peer.id, reply)
            case _:
                assert_never(request)

    # The log ----------------------------------------------------------------------------

    def _on_appended(self, event: Appended) -> None:
        state = self.state
        for change in event.changes:
            state.history.add(change.offset, change.kraft_version, change.voters)
        role = state.role
        if isinstance(role, Leader):
            self._leading.on_appended(role, voters_changed=bool(event.changes))
            return
        if isinstance(role, Follower):
            self._following.follow_high_watermark(role)
        if event.changes:
            self._on_voters_changed()

    def _on_voters_changed(self) -> None:
        """A node that has become a voter gets an election timeout; an observer has none."""
        role = self.state.role
        if isinstance(role, Unattached):
            if not self.state.may_stand:
                role.deadline_ms = FOREVER_MS
            elif role.deadline_ms == FOREVER_MS:
                role.deadline_ms = self._roles.first_deadline_ms()

    def _on_synced(self, end_offset: int) -> None:
        state = self.state
        state.note_synced(end_offset)
        if isinstance(state.role, Leader):
            self._leading.on_synced(state.role)

    def _on_snapshot_installed(self, event: SnapshotInstalled) -> None:
        state = self.state
        end_offset = event.snapshot_id.end_offset
        state.history.reset(end_offset - 1, event.kraft_version, event.voters)
        state.note_snapshot(end_offset)
        if end_offset > state.high_watermark:
            state.raise_high_watermark(end_offset)
            self._outbox.add(CommitUpTo(end_offset))
        self._on_voters_changed()
        if isinstance(state.role, Follower):
            state.role.snapshot = None

    # Time -------------------------------------------------------------------------------

    @property
    def deadline_ms(self) -> ElapsedMs | None:
        """When the machine has something to do at the latest, if nothing happens before."""
        now_ms = self.state.now_ms
        earliest_ms = self._outbox.peers.next_backoff_end_ms(now_ms) or FOREVER_MS
        # What is due and was not done waits for another event.
        for at_ms in self._deadlines_ms():
            if at_ms is not None and now_ms < at_ms < earliest_ms:
                earliest_ms = at_ms
        return None if earliest_ms == FOREVER_MS else earliest_ms

    def _deadlines_ms(self) -> Iterable[ElapsedMs | None]:
        role = self.state.role
        if isinstance(role, Leader):
            return self._leading.deadlines_ms(role)
        if isinstance(role, Follower):
            return self._following.deadlines_ms(role)
        return () if self.state.shutting_down else (role.deadline_ms,)

    @property
    def gives_up_at_ms(self) -> ElapsedMs | None:
        """When a follower stands for election, or a leader resigns, if no other node responds."""
        role = self.state.role
        if isinstance(role, Leader):
            return role.leadership.check_deadline_ms
        if isinstance(role, Follower) and self.state.may_stand:
            return role.fetch_deadline_ms
        return None

    def _poll(self) -> None:
        """Do what is due in the present role, until the role stays the same."""
        for _ in range(_ROLE_CHANGES_MAX):
            before = self.state.role
            self._poll_role(before)
            if self.state.role is before:
                return
        invariant(False, f"more than {_ROLE_CHANGES_MAX} changes of role in one step")

    def _poll_role(self, role: Role) -> None:
        if isinstance(role, Leader):
            self._leading.poll(role)
        elif isinstance(role, Resigned):
            self._resigning.poll(role)
        elif self.state.shutting_down:
            return
        elif isinstance(role, Follower):
            self._following.poll(role)
        elif isinstance(role, Prospective | Candidate):
            self._elections.poll(role)
        elif not self._elections.stand_if_due(role):
            self._following.look_for_leader()
