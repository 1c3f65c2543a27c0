"""QuorumMachine: decides who leads the metadata quorum and what is committed.

States and moves (P: persisted before anything else happens):

    UNATTACHED  --election timeout--> PROSPECTIVE
    PROSPECTIVE --pre-votes of a majority--> CANDIDATE, next epoch (P)
    PROSPECTIVE --lost, or timeout--> FOLLOWER of the known leader, else UNATTACHED
    CANDIDATE   --votes of a majority--> LEADER (P)
    CANDIDATE   --election timeout--> PROSPECTIVE
    LEADER      --no majority follows, removed, shut down--> RESIGNED
    RESIGNED    --election timeout--> UNATTACHED, next epoch (P)
    FOLLOWER    --fetch timeout, or the leader resigned or is gone--> PROSPECTIVE
    any         --a higher epoch is heard of--> FOLLOWER or UNATTACHED in it (P)

Observers, who are no voters, are only ever UNATTACHED or FOLLOWER. Time is passed in with every
event; when nothing happens before `deadline_ms`, the machine wants to hear that time passed.
"""

from __future__ import annotations

from typing import assert_never

from moldau.broker.raft.machine.quorum_events import (
    Answered,
    Appended,
    AppendFailed,
    AppendRecords,
    Effect,
    Event,
    QuorumChange,
    Received,
    ShutDown,
    SnapshotInstalled,
    Started,
    Synced,
    TimePassed,
)
from moldau.broker.raft.machine.quorum_events import Resigned as ResignAsked
from moldau.broker.raft.machine.quorum_state import NO_NODE, Election
from moldau.broker.raft.machine.replies import Asking
from moldau.broker.raft.machine.roles import (
    FOREVER_MS,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Unattached,
)
from moldau.broker.raft.machine.rpcs import (
    EpochBegun,
    EpochEnded,
    FetchAsked,
    Peer,
    Reply,
    SnapshotAsked,
    VoteAsked,
    VoterAdditionAsked,
    VoterRemovalAsked,
    VoterUpdateAsked,
)
from moldau.broker.raft.machine.voters import VoterSet
from moldau.invariant import invariant
from moldau.wire.errors import ApiError, ErrorCode

_MOVES_MAX = 8


class QuorumMachine(Asking):
    """Events in, effects out; effects are performed in order, before the next event."""

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        self.now_ms = max(self.now_ms, now_ms)
        self.out = []
        match event:
            case Started():
                self._on_started()
            case TimePassed():
                pass
            case Received():
                self.on_received(event)
            case Answered():
                self.on_answered(event)
            case Appended():
                self._on_appended(event)
            case AppendFailed():
                self.peers.failed(self.election.leader_id, self.now_ms)
            case Synced(end_offset):
                self._on_synced(end_offset)
            case SnapshotInstalled():
                self._on_snapshot_installed(event)
            case ResignAsked(epoch):
                if isinstance(self.role, Leader) and epoch == self.epoch:
                    self.role.leadership.resign_requested = True
            case ShutDown():
                self.shutting_down = True
            case _:
                assert_never(event)
        self._poll()
        out, self.out = self.out, []
        return out

    @property
    def is_finished(self) -> bool:
        """After ShutDown: nobody has to be told anything any more."""
        role = self.role
        return self.shutting_down and not (isinstance(role, Resigned) and role.unacknowledged)

    def check_upgrade(self, version: int) -> VoterSet:
        """The voters to write with a new kraft.version; ApiError if it cannot be now."""
        if not isinstance(self.role, Leader):
            raise ApiError(ErrorCode.NOT_CONTROLLER, "this node does not lead the quorum")
        return self.role.changes.upgraded(version, self.local_voter)

    # Events -----------------------------------------------------------------------------

    def _on_started(self) -> None:
        if self.log.last_epoch > self.epoch:
            # The quorum-state file is older than the log, or lost: votes of the log's epoch are
            # not remembered, so none may be given in it again.
            self._persist(Election(epoch=self.log.last_epoch, leader_id=NO_NODE))
            self.role = Unattached(self._first_deadline_ms())
        else:
            self._resume()
        if self.voters.is_only(self.local):
            self.role = Unattached(FOREVER_MS)
            self.to_prospective()
        else:
            self.tell_leader()

    def _first_deadline_ms(self) -> int:
        return self.now_ms + self.random_election_timeout_ms() if self.may_stand else FOREVER_MS

    def _resume(self) -> None:
        """Go on where the file says that this node was."""
        election = self.election
        leader_id = election.leader_id
        endpoints = self.voters.endpoints_of(leader_id)
        if leader_id == self.local.id:
            others = {voter.key.id for voter in self.voters.others(self.local)}
            deadline_ms = self.now_ms + self.random_election_timeout_ms()
            self.role = Resigned(deadline_ms, others, ())
        elif leader_id != NO_NODE and self.peer_at(leader_id, endpoints) is not None:
            self.leader_endpoints = endpoints
            timeout_ms = self.settings.fetch_timeout_ms
            self.role = Follower(self.now_ms + timeout_ms, self.now_ms + timeout_ms)
        else:
            self.role = Unattached(self._first_deadline_ms())

    def _on_appended(self, event: Appended) -> None:
        for change in event.changes:
            self._take_change(change)
        role = self.role
        if isinstance(role, Leader):
            if event.changes:
                role.leadership.set_voters(self.voters, self.now_ms)
            self.wake_fetches()
        else:
            self.follow_high_watermark()
            if event.changes:
                self._on_voters_changed()

    def _take_change(self, change: QuorumChange) -> None:
        if change.kraft_version is not None:
            self.history.add_kraft_version(change.offset, change.kraft_version)
        if change.voters is not None:
            self.history.add_voters(change.offset, change.voters)

    def _on_voters_changed(self) -> None:
        """A node that became a voter gets an election timeout; one that no longer is, none."""
        role = self.role
        if isinstance(role, Unattached):
            if not self.may_stand:
                role.deadline_ms = FOREVER_MS
            elif role.deadline_ms == FOREVER_MS:
                role.deadline_ms = self._first_deadline_ms()

    def _on_synced(self, end_offset: int) -> None:
        invariant(
            end_offset <= self.log.end_offset,
            f"synced up to {end_offset} of a log that ends at {self.log.end_offset}",
        )
        self.synced_offset = max(self.synced_offset, end_offset)
        self.is_cutting = False
        if isinstance(self.role, Leader):
            self.role.leadership.synced(self.synced_offset)
            self.advance()

    def _on_snapshot_installed(self, event: SnapshotInstalled) -> None:
        end_offset = event.snapshot_id.end_offset
        self.history.reset(end_offset - 1, event.kraft_version, event.voters)
        self.synced_offset = end_offset
        self.commit_up_to(end_offset)
        self._on_voters_changed()
        if isinstance(self.role, Follower):
            self.role.snapshot = None

    # Time -------------------------------------------------------------------------------

    @property
    def deadline_ms(self) -> int | None:
        """When the machine has something to do at the latest, if nothing happens before."""
        times: list[int | None] = [self.peers.next_backoff_end_ms(self.now_ms)]
        role = self.role
        if isinstance(role, Leader):
            leadership = role.leadership
            times.append(leadership.check_deadline_ms)
            if len(self.voters.others(self.local)) > 0:
                times.append(leadership.begin_at_ms)
            times += [fetch.deadline_ms for fetch in role.parked]
            if role.changes.pending is not None:
                times.append(role.changes.pending.deadline_ms)
        elif isinstance(role, Follower):
            if self.may_stand:
                times.append(role.fetch_deadline_ms)
            times.append(role.update_at_ms)
        elif not self.shutting_down:
            times.append(role.deadline_ms)
        # What is due and was not done waits for something else to happen first.
        open_times = (t for t in times if t is not None and self.now_ms < t < FOREVER_MS)
        return min(open_times, default=None)

    @property
    def gives_up_at_ms(self) -> int | None:
        """When it takes its leader, or as a leader its followers, for gone if it hears nothing."""
        if isinstance(self.role, Leader):
            return self.role.leadership.check_deadline_ms
        if isinstance(self.role, Follower) and self.may_stand:
            return self.role.fetch_deadline_ms
        return None

    def _poll(self) -> None:
        """Do what is due in the present state, until nothing more is."""
        for _ in range(_MOVES_MAX):
            before = self.role
            self._poll_once()
            if self.role is before:
                return
        invariant(False, "the quorum machine moves in circles")

    def _poll_once(self) -> None:
        role = self.role
        if isinstance(role, Leader):
            self._poll_leader(role)
        elif isinstance(role, Resigned):
            self._poll_resigned(role)
        elif self.shutting_down:
            return
        elif isinstance(role, Prospective | Candidate):
            self._poll_nominee(role)
        elif isinstance(role, Follower):
            self._poll_follower(role)
        elif self.may_stand and role.deadline_ms <= self.now_ms:
            self.to_prospective()
        else:
            self._fetch_from_bootstrap()

    def _poll_leader(self, role: Leader) -> None:
        leadership = role.leadership
        check_ms = leadership.check_deadline_ms
        unheard = check_ms is not None and check_ms <= self.now_ms
        if self.shutting_down or leadership.resign_requested or unheard:
            self.to_resigned()
            return
        self.expire_fetches()
        pending = role.changes.pending
        if pending is not None and pending.deadline_ms <= self.now_ms:
            self.finish_change(role, Reply(error=ErrorCode.REQUEST_TIMED_OUT))
        if leadership.begin_at_ms > self.now_ms:
            return
        leadership.begin_at_ms = self.now_ms + leadership.begin_interval_ms
        for voter in leadership.silent_voters(self.now_ms):
            peer = self.peer_at(voter.key.id, voter.endpoints)
            if peer is not None:
                self.send(
                    peer,
                    EpochBegun(
                        epoch=self.epoch,
                        leader_id=self.local.id,
                        voter=voter.key,
                        endpoints=self.local_voter.endpoints,
                    ),
                )

    def _poll_resigned(self, role: Resigned) -> None:
        if not self.shutting_down and role.deadline_ms <= self.now_ms:
            self.to_unattached(self.epoch + 1)
            return
        request = EpochEnded(
            epoch=self.epoch,
            leader_id=self.local.id,
            successors=role.successors,
            endpoints=self.local_voter.endpoints,
        )
        for voter_id in sorted(role.unacknowledged):
            peer = self.peer_at(voter_id, self.voters.endpoints_of(voter_id))
            if peer is not None:
                self.send(peer, request)

    def _poll_nominee(self, role: Prospective | Candidate) -> None:
        if role.deadline_ms <= self.now_ms:
            if isinstance(role, Candidate):
                self.to_prospective()
            else:
                self.after_lost_pre_vote()
            return
        if role.tally.is_lost:
            return
        for voter in role.tally.unrecorded():
            peer = self.peer_at(voter.key.id, voter.endpoints)
            if peer is not None:
                self.send(peer, self._vote_request(role, voter.key.id))

    def _vote_request(self, role: Prospective | Candidate, voter_id: int) -> VoteAsked:
        return VoteAsked(
            epoch=self.epoch,
            candidate=self.local,
            voter=role.tally.voters.voters[voter_id].key,
            last_epoch=self.log.last_epoch,
            end_offset=self.log.end_offset,
            pre_vote=isinstance(role, Prospective),
        )

    def _poll_follower(self, role: Follower) -> None:
        if self.may_stand and role.fetch_deadline_ms <= self.now_ms:
            self.to_prospective()
            return
        leader = self.peer_at(self.election.leader_id, self.leader_endpoints)
        if leader is None:
            self._fetch_from_bootstrap()
        elif role.update_at_ms <= self.now_ms and self._ask_about_own_vote(role, leader):
            role.update_at_ms = self.now_ms + self.settings.fetch_timeout_ms
        elif self.peers.is_backing_off(leader.id, self.now_ms):
            self._fetch_from_bootstrap()
        elif self.peers.is_idle:
            self._fetch_from(leader, role)

    def _ask_about_own_vote(self, role: Follower, leader: Peer) -> bool:
        """Tell the leader where this voter is now, or ask to become a voter; False if not now."""
        voters, local = self.voters, self.local_voter
        if not self.is_voter:
            settings = self.settings
            if not (
                self.history.is_dynamic and settings.can_become_voter and settings.auto_join_enable
            ):
                role.update_at_ms = self.now_ms + settings.fetch_timeout_ms
                return False
            old = voters.voters.get(self.local.id)
            if old is not None:
                return self.send(leader, VoterRemovalAsked(voter=old.key)) is not None
            request = VoterAdditionAsked(
                voter=local, ack_when_committed=False, timeout_ms=settings.request_timeout_ms
            )
            return self.send(leader, request) is not None
        wanted = voters.needs_update(local) if self.history.is_dynamic else not role.has_updated
        if not wanted or not local.endpoints:
            role.update_at_ms = self.now_ms + self.settings.fetch_timeout_ms
            return False
        return self.send(leader, VoterUpdateAsked(epoch=self.epoch, voter=local)) is not None

    def _fetch_from(self, leader: Peer, role: Follower) -> None:
        progress = role.snapshot
        if progress is None:
            self._fetch(leader)
        elif not progress.installing:
            self.send(
                leader,
                SnapshotAsked(
                    epoch=self.epoch,
                    replica=self.local,
                    snapshot_id=progress.snapshot_id,
                    position=progress.position,
                    max_bytes=self.settings.fetch_snapshot_max_bytes,
                ),
            )

    def _fetch_from_bootstrap(self) -> None:
        """Ask any of the known servers who leads, in turn."""
        if not self.peers.is_idle:
            return
        servers = self._servers()
        for attempt in range(len(servers)):
            peer = servers[(self._bootstrap_turn + attempt) % len(servers)]
            if self.peers.is_ready(peer.id, self.now_ms):
                self._bootstrap_turn += attempt + 1
                self._fetch(peer)
                return

    def _servers(self) -> list[Peer]:
        """The bootstrap servers, and for an observer the voters too that its log knows: a leader
        looks for voters by itself, not for others."""
        servers = list(self.settings.bootstrap)
        if self.may_stand:
            return servers
        addresses = {(each.host, each.port) for each in servers}
        for voter in self.voters.others(self.local):
            peer = self.peer_at(voter.key.id, voter.endpoints)
            if peer is not None and (peer.host, peer.port) not in addresses:
                servers.append(peer)
        return servers

    def _fetch(self, peer: Peer) -> None:
        """Asking from the log's end says that all of it is on disk, so it has to be first."""
        if self.is_cutting or self.synced_offset < self.log.end_offset:
            return
        if any(isinstance(effect, AppendRecords) for effect in self.out):
            return
        settings = self.settings
        request = FetchAsked(
            epoch=self.epoch,
            replica=self.local,
            offset=self.log.end_offset,
            last_epoch=self.log.last_epoch,
            high_watermark=self.high_watermark,
            max_wait_ms=settings.fetch_max_wait_ms,
            max_bytes=settings.fetch_max_bytes,
        )
        self.send(peer, request)
