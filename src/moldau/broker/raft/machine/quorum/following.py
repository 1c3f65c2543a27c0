"""Following: finds the leader, fetches the log from it, and gives it up when it is gone.

Invariants: a follower fetches from its log end offset only when everything before it is on disk,
because the leader counts the fetch as an acknowledgement; it commits no more than the leader has
committed and its own log holds.
"""

from __future__ import annotations

from collections.abc import Iterator

from moldau.broker.raft.machine.log_view import truncation_offset
from moldau.broker.raft.machine.quorum.events import AppendRecords, CommitUpTo, TruncateTo
from moldau.broker.raft.machine.quorum.outbox import Outbox
from moldau.broker.raft.machine.quorum.own_vote import OwnVote
from moldau.broker.raft.machine.quorum.role_changes import RoleChanges
from moldau.broker.raft.machine.quorum.roles import Follower
from moldau.broker.raft.machine.quorum.snapshot_fetching import SnapshotFetching
from moldau.broker.raft.machine.quorum.state import QuorumState
from moldau.broker.raft.machine.quorum.timeouts import Timeouts
from moldau.broker.raft.machine.quorum.transitions import Cause
from moldau.broker.raft.machine.rpcs import EndOfEpoch, FetchAsked, FetchReply, Peer, Reply
from moldau.times import ElapsedMs
from moldau.wire.errors import ErrorCode

# A leader counts as gone after this many failed requests in a row, over at least this part of the
# fetch timeout.
FAILURES_MAX = 3
UNREACHABLE_PART = 4


class Following:
    def __init__(
        self,
        state: QuorumState,
        outbox: Outbox,
        roles: RoleChanges,
        timeouts: Timeouts,
        snapshots: SnapshotFetching,
        own_vote: OwnVote,
    ) -> None:
        self._state = state
        self._outbox = outbox
        self._roles = roles
        self._timeouts = timeouts
        self._snapshots = snapshots
        self._own_vote = own_vote
        self._bootstrap_turn = 0

    # Time -------------------------------------------------------------------------------

    def poll(self, role: Follower) -> None:
        state, peers = self._state, self._outbox.peers
        if role.fetch_deadline_ms <= state.now_ms and state.may_stand:
            self._roles.to_prospective(Cause.FETCH_TIMEOUT)
            return
        leader = state.peer_at(state.election.leader_id, state.leader_endpoints)
        if leader is None:
            self.look_for_leader()
        elif role.update_at_ms <= state.now_ms and self._own_vote.report(role, leader):
            role.update_at_ms = state.after(state.settings.fetch_timeout_ms)
        elif peers.is_backing_off(leader.id, state.now_ms):
            self.look_for_leader()
        elif peers.is_idle:
            if role.snapshot is None:
                self._fetch(leader)
            else:
                self._snapshots.fetch(role.snapshot, leader)

    def deadlines_ms(self, role: Follower) -> Iterator[ElapsedMs]:
        if self._state.may_stand:
            yield role.fetch_deadline_ms
        yield role.update_at_ms

    # Requests ---------------------------------------------------------------------------

    def look_for_leader(self) -> None:
        """Fetch from one known server after another: each response names the leader."""
        state, peers = self._state, self._outbox.peers
        if not peers.is_idle:
            return
        servers = self._servers()
        for attempt in range(len(servers)):
            peer = servers[(self._bootstrap_turn + attempt) % len(servers)]
            if peers.is_ready(peer.id, state.now_ms):
                self._bootstrap_turn += attempt + 1
                self._fetch(peer)
                return

    def _servers(self) -> list[Peer]:
        """The bootstrap servers; for an observer also the voters in its log, because a leader
        contacts voters, but not observers."""
        state = self._state
        servers = list(state.settings.bootstrap)
        if state.may_stand:
            return servers
        addresses = {(each.host, each.port) for each in servers}
        for voter in state.voters.others(state.local):
            peer = state.peer_at(voter.key.id, voter.endpoints)
            if peer is not None and (peer.host, peer.port) not in addresses:
                servers.append(peer)
        return servers

    def _fetch(self, peer: Peer) -> None:
        state = self._state
        if not state.all_is_synced:
            return
        if any(isinstance(effect, AppendRecords) for effect in self._outbox.effects):
            return
        settings = state.settings
        request = FetchAsked(
            epoch=state.epoch,
            replica=state.local,
            offset=state.log.end_offset,
            last_epoch=state.log.last_epoch,
            high_watermark=state.high_watermark,
            max_wait_ms=settings.fetch_max_wait_ms,
            max_bytes=settings.fetch_max_bytes,
        )
        self._outbox.send(peer, request, state.now_ms)

    # Responses --------------------------------------------------------------------------

    def on_fetch_reply(self, request: FetchAsked, reply: Reply) -> bool:
        """False when the peer is not asked again for a while."""
        state = self._state
        role = state.role
        if reply.error is not ErrorCode.NONE or not isinstance(reply, FetchReply):
            return False
        if not isinstance(role, Follower):
            return False
        if request.offset != state.log.end_offset or request.last_epoch != state.log.last_epoch:
            # The response is about the log as it was.
            return True
        if reply.diverging is not None:
            self._truncate(reply.diverging)
        elif reply.snapshot_id is not None:
            if reply.snapshot_id.end_offset < state.high_watermark:
                return False
            self._snapshots.start(role, reply.snapshot_id)
        else:
            role.leader_high_watermark = reply.high_watermark
            if len(reply.records):
                self._outbox.add(AppendRecords(reply.records))
            else:
                self.follow_high_watermark(role)
        role.note_contact(state.after(self._timeouts.fetch_ms()))
        return True

    def _truncate(self, diverging: EndOfEpoch) -> None:
        offset = truncation_offset(self._state.log, diverging)
        self._state.note_truncation(offset)
        self._outbox.add(TruncateTo(offset))

    def follow_high_watermark(self, role: Follower) -> None:
        state = self._state
        offset = min(role.leader_high_watermark, state.log.end_offset)
        if offset > state.high_watermark:
            state.raise_high_watermark(offset)
            self._outbox.add(CommitUpTo(offset))
            state.history.forget_before(offset)

    def on_unreachable(self, peer_id: int, *, refused: bool) -> None:
        """Give the leader up before the fetch timeout, if it is most likely gone: several requests
        in a row have failed, or its address refuses connections. If it is not gone, the other
        voters know, and refuse their pre-votes."""
        state = self._state
        role = state.role
        if not isinstance(role, Follower) or peer_id != state.election.leader_id:
            return
        if role.failures == 0:
            role.failing_since_ms = state.now_ms
        role.failures += 1
        if refused:
            turn_ms = self._timeouts.succession_ms(state.voters, state.local, {peer_id})
            self._give_up_by(role, state.after(turn_ms))
        waited_ms = state.now_ms - role.failing_since_ms
        if (
            role.failures >= FAILURES_MAX
            and waited_ms >= state.settings.fetch_timeout_ms // UNREACHABLE_PART
        ):
            self._give_up_by(role, state.now_ms)

    def _give_up_by(self, role: Follower, deadline_ms: ElapsedMs) -> None:
        if deadline_ms < role.fetch_deadline_ms:
            role.fetch_deadline_ms = deadline_ms
