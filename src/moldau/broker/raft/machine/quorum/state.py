"""QuorumState: what one node of the quorum knows, and the rules by which it changes.

Invariants, each checked where the value changes:

- The role changes only as the table in `transitions.py` allows, together with the election.
- The epoch never goes back.
- A node votes once in an epoch, and no longer once the leader of the epoch is known.
- An epoch has one leader: once known, it stays the same for the epoch.
- The role agrees with the election: a leader or a node that has resigned is the epoch's leader, a
  follower follows another node, a candidate has voted for itself.
- The high watermark never goes back, and never passes the log end offset.
- What is synced is in the log; what is committed is never truncated, nor replaced by an older
  snapshot.
"""

from __future__ import annotations

from moldau.broker.raft.machine.election_file import NO_NODE, Election
from moldau.broker.raft.machine.log_view import LogView
from moldau.broker.raft.machine.quorum.roles import (
    FOREVER_MS,
    ROLE_NAMES,
    Candidate,
    Follower,
    Leader,
    Resigned,
    Role,
    Unattached,
)
from moldau.broker.raft.machine.quorum.transitions import Cause, Standing, check_transition
from moldau.broker.raft.machine.rpcs import Peer, Reply
from moldau.broker.raft.machine.settings import QuorumSettings
from moldau.broker.raft.machine.voter_history import VoterHistory
from moldau.broker.raft.machine.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet
from moldau.invariant import InvariantError, invariant
from moldau.times import ELAPSED_ZERO, ElapsedMs
from moldau.wire.errors import ErrorCode


class QuorumState:
    def __init__(
        self,
        local: Voter,
        history: VoterHistory,
        election: Election,
        log: LogView,
        settings: QuorumSettings,
        *,
        high_watermark: int,
    ) -> None:
        self.local_voter = local
        self.local = local.key
        self.history = history
        self.log = log
        self.settings = settings
        self.now_ms = ELAPSED_ZERO
        self.shutting_down = False
        self._election = election
        self._leader_endpoints: tuple[VoterEndpoint, ...] = ()
        self._role: Role = Unattached(FOREVER_MS)
        self._high_watermark = high_watermark
        self._synced_offset = 0
        self._is_truncating = False

    # Role and election ------------------------------------------------------------------

    @property
    def role(self) -> Role:
        return self._role

    @property
    def election(self) -> Election:
        return self._election

    @property
    def leader_endpoints(self) -> tuple[VoterEndpoint, ...]:
        """Those of the leader in `election`; empty where only its id is known."""
        return self._leader_endpoints

    def enter(
        self,
        role: Role,
        cause: Cause,
        election: Election,
        leader_endpoints: tuple[VoterEndpoint, ...] = (),
    ) -> None:
        """Take another role, with what the node knows of the epoch from then on."""
        check_transition(
            Standing(ROLE_NAMES[type(self._role)], self._election.epoch),
            cause,
            Standing(ROLE_NAMES[type(role)], election.epoch),
        )
        check_election(self._election, election)
        check_agreement(role, election, self.local)
        self._role = role
        self._election = election
        self._leader_endpoints = leader_endpoints

    def record_vote(self, candidate: ReplicaKey) -> None:
        old = self._election
        election = Election(epoch=old.epoch, leader_id=old.leader_id, voted=candidate)
        check_election(old, election)
        self._election = election

    @property
    def epoch(self) -> int:
        return self._election.epoch

    @property
    def is_leader(self) -> bool:
        return isinstance(self._role, Leader)

    @property
    def has_leader(self) -> bool:
        return self._election.leader_id != NO_NODE

    # Voters -----------------------------------------------------------------------------

    @property
    def voters(self) -> VoterSet:
        return self.history.voters

    @property
    def is_voter(self) -> bool:
        return self.local in self.history.voters

    @property
    def may_stand(self) -> bool:
        """Whether this node may have to lead: it is a voter, or its removal may not be committed.

        Voters that do not have the removal yet may need its vote, and it may have more of the log
        than they have, so that no other node could win (Raft dissertation, 4.2.2).
        """
        return self.is_voter or self.history.was_voter_since(self.local, self._high_watermark)

    # The log ----------------------------------------------------------------------------

    @property
    def high_watermark(self) -> int:
        return self._high_watermark

    def raise_high_watermark(self, offset: int) -> None:
        if not self._high_watermark <= offset <= self.log.end_offset:
            # Written out, because the text would cost more than the check.
            raise InvariantError(
                f"the high watermark goes from {self._high_watermark} to {offset}, the log ends at"
                f" {self.log.end_offset}"
            )
        self._high_watermark = offset

    @property
    def synced_offset(self) -> int:
        return self._synced_offset

    @property
    def all_is_synced(self) -> bool:
        """Whether the log on disk is the log: nothing is missing, and nothing truncated is left."""
        return not self._is_truncating and self._synced_offset >= self.log.end_offset

    def note_synced(self, end_offset: int) -> None:
        if end_offset > self.log.end_offset:
            raise InvariantError(
                f"synced up to {end_offset}, but the log ends at {self.log.end_offset}"
            )
        self._synced_offset = max(self._synced_offset, end_offset)
        self._is_truncating = False

    def note_truncation(self, offset: int) -> None:
        """The log is about to be truncated to `offset`."""
        invariant(
            offset >= self._high_watermark,
            f"the log is to be truncated to {offset}, but {self._high_watermark} is committed",
        )
        self._synced_offset = min(self._synced_offset, offset)
        self._is_truncating = True
        self.history.truncate_to(offset)

    def note_snapshot(self, end_offset: int) -> None:
        """The log was replaced by a snapshot, which is on disk; it begins and ends here."""
        invariant(
            end_offset >= self._high_watermark,
            f"a snapshot up to {end_offset} replaces the log, but {self._high_watermark} is"
            " committed",
        )
        self._synced_offset = end_offset

    # Time, addresses, responses ---------------------------------------------------------

    def after(self, delay_ms: int) -> ElapsedMs:
        return ElapsedMs(self.now_ms + delay_ms)

    def peer_at(self, node_id: int, endpoints: tuple[VoterEndpoint, ...]) -> Peer | None:
        """The node by its endpoint on the controllers' listener."""
        for end in endpoints:
            if end.name == self.settings.listener_name:
                return Peer(id=node_id, host=end.host, port=end.port)
        return None

    def reply(self, error: ErrorCode = ErrorCode.NONE) -> Reply:
        return Reply(
            error=error,
            epoch=self._election.epoch,
            leader_id=self._election.leader_id,
            endpoints=self._leader_endpoints,
        )


def check_election(before: Election, after: Election) -> None:
    invariant(
        after.epoch >= before.epoch,
        f"the epoch goes back from {before.epoch} to {after.epoch}",
    )
    if after.epoch > before.epoch:
        return
    invariant(
        before.leader_id in (NO_NODE, after.leader_id),
        f"the leader of epoch {before.epoch} changes from {before.leader_id} to {after.leader_id}",
    )
    if after.voted == before.voted:
        return
    # A vote is no longer needed, and need not be stored, once the leader is known.
    is_dropped = after.voted is None and after.leader_id != NO_NODE
    is_first = before.voted is None and before.leader_id == NO_NODE
    invariant(
        is_dropped or is_first,
        f"a second vote in epoch {before.epoch}: {before}, then {after}",
    )


def check_agreement(role: Role, election: Election, local: ReplicaKey) -> None:
    """Whether a node may have this role in this epoch."""
    leads = election.leader_id == local.id
    agrees = True
    if isinstance(role, Leader | Resigned):
        agrees = leads
    elif isinstance(role, Follower):
        agrees = election.leader_id != NO_NODE and not leads
    elif isinstance(role, Candidate):
        agrees = election.leader_id == NO_NODE and election.voted == local
    invariant(agrees, f"node {local.id} is {ROLE_NAMES[type(role)].value} with {election}")
