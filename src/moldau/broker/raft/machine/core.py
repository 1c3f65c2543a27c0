"""QuorumCore: what a quorum machine remembers, and its moves from state to state.

What always holds: the epoch never goes back; a vote, and who leads, is persisted before anybody is
told; a node leads an epoch at most once, so one that finds itself leader of it in its file resigns.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.broker.config.broker_keys import BROKER_KEYS
from moldau.broker.raft.machine.leadership import Leadership
from moldau.broker.raft.machine.log_view import LogView
from moldau.broker.raft.machine.peers import Peers
from moldau.broker.raft.machine.quorum_events import (
    Answer,
    BecomeLeader,
    CommitUpTo,
    DropSnapshot,
    Effect,
    LeaderChanged,
    PersistElection,
    Send,
    StepDown,
)
from moldau.broker.raft.machine.quorum_state import NO_NODE, Election
from moldau.broker.raft.machine.roles import (
    FOREVER_MS,
    STATES,
    Candidate,
    Follower,
    Leader,
    Prospective,
    QuorumState,
    Resigned,
    Role,
    Unattached,
)
from moldau.broker.raft.machine.rpcs import FetchReply, Peer, Reply, Request
from moldau.broker.raft.machine.voter_changes import VoterChanges
from moldau.broker.raft.machine.voter_history import BEFORE_THE_LOG, VoterHistory
from moldau.broker.raft.machine.voters import Voter, VoterEndpoint, VoterSet
from moldau.broker.raft.machine.voting import Tally
from moldau.config.section import Section
from moldau.invariant import invariant
from moldau.wire.errors import ErrorCode


class QuorumSettings(Section, keys=BROKER_KEYS, prefix="controller.quorum."):
    """Fields named after controller.quorum.*; `listener_name` is that of the controllers."""

    listener_name: str = "CONTROLLER"
    election_timeout_ms: int
    fetch_timeout_ms: int
    election_backoff_max_ms: int
    request_timeout_ms: int
    retry_backoff_ms: int
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int
    fetch_snapshot_max_bytes: int
    auto_join_enable: bool
    can_become_voter: bool = True
    bootstrap: tuple[Peer, ...] = ()


class QuorumCore:
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
        """`local` is this node as it would vote; `high_watermark` what is known to be committed."""
        self.local_voter = local
        self.local = local.key
        self.history = history
        self.election = election
        self.log = log
        self.settings = settings
        self.high_watermark = high_watermark
        self.leader_endpoints: tuple[VoterEndpoint, ...] = ()
        self._told_leader: tuple[int, int, tuple[VoterEndpoint, ...]] | None = None
        self.shutting_down = False
        self.role: Role = Unattached(FOREVER_MS)
        self.peers = Peers(settings.retry_backoff_ms)
        self.synced_offset = 0
        self.random_below = random_below
        self.leader_high_watermark = 0
        self.is_cutting = False
        self._bootstrap_turn = 0
        self.now_ms = 0
        self.out: list[Effect] = []

    # What others ask --------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        return self.election.epoch

    @property
    def state(self) -> QuorumState:
        return STATES[type(self.role)]

    @property
    def is_leader(self) -> bool:
        return isinstance(self.role, Leader)

    @property
    def has_leader(self) -> bool:
        return self.election.leader_id != NO_NODE

    @property
    def voters(self) -> VoterSet:
        return self.history.voters

    @property
    def is_voter(self) -> bool:
        return self.local in self.history.voters

    @property
    def may_stand(self) -> bool:
        """Whether this node may have to lead: as a voter, or as long as its removal may come to
        nothing. Those who do not have the removal yet may need its vote, and it may have more of
        the log than they, so nobody else could win (Raft dissertation, 4.2.2)."""
        return self.is_voter or self.history.was_voter_since(self.local, self.high_watermark)

    @property
    def established_high_watermark(self) -> int | None:
        """A leader's own, None before it has committed anything of its epoch."""
        role = self.role
        if not isinstance(role, Leader):
            return None
        if self.high_watermark <= role.leadership.epoch_start_offset:
            return None
        return self.high_watermark

    # Moves ------------------------------------------------------------------------------

    def random_election_timeout_ms(self) -> int:
        timeout_ms = self.settings.election_timeout_ms
        return timeout_ms + self.random_below(max(1, timeout_ms))

    def to_unattached(self, epoch: int, leader_id: int = NO_NODE) -> None:
        invariant(
            epoch > self.epoch or (epoch == self.epoch and isinstance(self.role, Prospective)),
            f"unattached in epoch {epoch} after {self.epoch}",
        )
        voted = self.election.voted if epoch == self.epoch else None
        deadline_ms = self._kept_election_deadline_ms()
        self._leave()
        self.leader_endpoints = ()
        self._elect(Election(epoch=epoch, leader_id=leader_id, voted=voted))
        self.role = Unattached(deadline_ms)

    def _kept_election_deadline_ms(self) -> int:
        """A node that was waiting for its turn goes on waiting for the same."""
        role = self.role
        if not self.may_stand:
            return FOREVER_MS
        if isinstance(role, Unattached | Candidate | Resigned) and role.deadline_ms < FOREVER_MS:
            return role.deadline_ms
        if isinstance(role, Prospective) and not role.tally.is_lost:
            return role.deadline_ms
        return self.now_ms + self.random_election_timeout_ms()

    def to_follower(self, epoch: int, leader_id: int, endpoints: tuple[VoterEndpoint, ...]) -> None:
        invariant(leader_id != self.local.id, "nobody follows itself")
        invariant(bool(endpoints), "a leader to follow can be reached")
        invariant(
            epoch > self.epoch or (epoch == self.epoch and not self.is_leader),
            f"following in epoch {epoch} after {self.epoch}",
        )
        voted = self.election.voted if epoch == self.epoch else None
        self._leave()
        self.leader_endpoints = endpoints
        self._elect(Election(epoch=epoch, leader_id=leader_id, voted=voted))
        self.role = Follower(
            fetch_deadline_ms=self.now_ms + self.settings.fetch_timeout_ms,
            update_at_ms=self.now_ms + self.settings.fetch_timeout_ms,
        )

    def to_prospective(self) -> None:
        invariant(self.may_stand, "only a voter stands for election")
        self._leave()
        tally = Tally(self.voters)
        tally.grant(self.local.id)
        self.role = Prospective(self.now_ms + self.random_election_timeout_ms(), tally)
        if tally.is_won:
            self.to_candidate()

    def after_lost_pre_vote(self) -> None:
        leader_id = self.election.leader_id
        if leader_id not in (NO_NODE, self.local.id) and self.leader_endpoints:
            self.to_follower(self.epoch, leader_id, self.leader_endpoints)
        else:
            self.to_unattached(self.epoch, leader_id)

    def to_candidate(self) -> None:
        invariant(isinstance(self.role, Prospective), "a candidate has asked before")
        self._leave()
        self.leader_endpoints = ()
        tally = Tally(self.voters)
        tally.grant(self.local.id)
        self.role = Candidate(self.now_ms + self.random_election_timeout_ms(), tally)
        if tally.is_won:
            # Saying on disk "I lead this epoch" includes the vote.
            self.to_leader(self.epoch + 1, tally)
        else:
            self._elect(Election(epoch=self.epoch + 1, voted=self.local))

    def to_leader(self, epoch: int, tally: Tally) -> None:
        invariant(tally.is_won, "a leader has a majority")
        voters = self.voters
        self._leave()
        self.leader_endpoints = self.local_voter.endpoints
        self._persist(Election(epoch=epoch, leader_id=self.local.id))
        leadership = Leadership(
            self.local,
            epoch,
            voters,
            epoch_start_offset=self.log.end_offset,
            fetch_timeout_ms=self.settings.fetch_timeout_ms,
            now_ms=self.now_ms,
        )
        leadership.synced(self.synced_offset)
        self.role = Leader(leadership, VoterChanges(self.history))
        self.out.append(
            BecomeLeader(
                epoch=epoch,
                voters=tuple(voter.key for voter in voters.voters.values()),
                granting=tuple(tally.granted.values()),
                voters_record=self._voters_to_record(),
            )
        )
        self.tell_leader()

    def _voters_to_record(self) -> VoterSet | None:
        """The log itself says who the voters are, from its first batch on and as they now are."""
        if not self.history.is_dynamic:
            return None
        if self.local_voter.endpoints and self.voters.needs_update(self.local_voter):
            return self.voters.with_voter(self.local_voter)
        return self.voters if self.history.voters_offset == BEFORE_THE_LOG else None

    def to_resigned(self) -> None:
        role = self.role
        invariant(isinstance(role, Leader), "only a leader resigns")
        if not isinstance(role, Leader):
            return
        successors = role.leadership.successors()
        self._leave()
        self.role = Resigned(
            deadline_ms=self.now_ms + self.random_election_timeout_ms(),
            unacknowledged={voter.key.id for voter in self.voters.others(self.local)},
            successors=successors,
        )

    def _leave(self) -> None:
        """Let go of what belongs to the present state."""
        role = self.role
        self.peers.reset()
        if isinstance(role, Leader):
            self.out.append(StepDown(self.epoch))
            for parked in role.parked:
                self.out.append(
                    Answer(
                        token=parked.token,
                        reply=FetchReply(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, epoch=self.epoch),
                    )
                )
            role.parked.clear()
            self.finish_change(role, Reply(error=ErrorCode.NOT_LEADER_OR_FOLLOWER))
            return
        self.leader_high_watermark = 0
        snapshot = role.snapshot if isinstance(role, Follower) else None
        if snapshot is not None and not snapshot.installing:
            self.out.append(DropSnapshot())

    def _elect(self, election: Election) -> None:
        self._persist(election)
        self.tell_leader()

    def tell_leader(self) -> None:
        """Say who leads, and where, if that is news."""
        epoch, leader_id = self.election.epoch, self.election.leader_id
        if self._told_leader != (epoch, leader_id, self.leader_endpoints):
            self._told_leader = epoch, leader_id, self.leader_endpoints
            self.out.append(LeaderChanged(epoch=epoch, leader_id=leader_id))

    def _persist(self, election: Election) -> None:
        invariant(election.epoch >= self.epoch, "the epoch never goes back")
        if election != self.election:
            self.election = election
            self.out.append(PersistElection(election))

    # Helpers ----------------------------------------------------------------------------

    def commit_up_to(self, offset: int) -> bool:
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        self.out.append(CommitUpTo(offset))
        return True

    def reply(self, error: ErrorCode = ErrorCode.NONE, message: str | None = None) -> Reply:
        return Reply(
            error=error,
            message=message,
            epoch=self.epoch,
            leader_id=self.election.leader_id,
            endpoints=self.leader_endpoints,
        )

    def send(self, peer: Peer, request: Request) -> int | None:
        """Ask `peer` unless it is busy or left alone for now; the request's id."""
        if not self.peers.is_ready(peer.id, self.now_ms):
            return None
        request_id = self.peers.sending(peer, request)
        self.out.append(Send(request_id=request_id, to=peer, request=request))
        return request_id

    def peer_at(self, node_id: int, endpoints: tuple[VoterEndpoint, ...]) -> Peer | None:
        """The node by its endpoint on the controllers' listener."""
        for end in endpoints:
            if end.name == self.settings.listener_name:
                return Peer(id=node_id, host=end.host, port=end.port)
        return None

    def finish_change(self, role: Leader, reply: Reply) -> None:
        """End the voter change under way, telling who asked for it."""
        pending = role.changes.pending
        role.changes.pending = None
        if pending is not None and pending.token is not None:
            self.out.append(Answer(token=pending.token, reply=reply))
