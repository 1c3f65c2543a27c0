"""VoterChanges: whether a change of the voters of a dynamic quorum may begin.

A change is a voter set in the log that differs from the one before in one voter, so that the
majorities of both overlap. It begins only when the one before is committed and the leader has
committed a record of its own epoch: otherwise a change of a former leader could still come back.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from moldau.broker.raft.machine.quorum.events import Answer
from moldau.broker.raft.machine.rpcs import Reply, VersionsReply
from moldau.broker.raft.machine.voter_history import VoterHistory
from moldau.broker.raft.machine.voters import KRAFT_VERSION_MAX, ReplicaKey, Voter, VoterSet
from moldau.times import ElapsedMs
from moldau.wire.errors import ApiError, ErrorCode

PREVIOUS_PENDING = "Request timed out waiting for leader to handle previous voter change request"
NO_HIGH_WATERMARK = (
    "Request timed out waiting for leader to establish HWM and fence previous voter changes"
)


@dataclass(slots=True)
class PendingChange:
    """The change under way; `offset` is that of its record, None until it is appended."""

    token: int | None
    deadline_ms: ElapsedMs
    adding: Voter | None = None
    probe_id: int | None = None
    ack_when_committed: bool = True
    offset: int | None = None


@dataclass(slots=True)
class VoterChanges:
    """The changes by the leader of one epoch."""

    history: VoterHistory
    pending: PendingChange | None = None
    reported: dict[int, Voter] = field(default_factory=dict)
    """What voters of a static quorum have reported in this epoch."""

    def finish(self, reply: Reply) -> list[Answer]:
        """End the change under way and answer the request for it, unless it was answered before."""
        pending, self.pending = self.pending, None
        if pending is None or pending.token is None:
            return []
        return [Answer(token=pending.token, reply=reply)]

    def refusal(self, high_watermark: int | None, what: str) -> Reply | None:
        """Why no change may begin now; None if one may."""
        if self.pending is not None:
            return Reply(error=ErrorCode.REQUEST_TIMED_OUT, message=PREVIOUS_PENDING)
        if high_watermark is None:
            return Reply(error=ErrorCode.REQUEST_TIMED_OUT, message=NO_HIGH_WATERMARK)
        history = self.history
        if not history.is_dynamic:
            return Reply(
                error=ErrorCode.UNSUPPORTED_VERSION,
                message=f"Cluster doesn't support {what} voter because the kraft.version feature"
                f" is {history.kraft_version}",
            )
        if history.voters_offset >= high_watermark:
            return Reply(
                error=ErrorCode.REQUEST_TIMED_OUT,
                message="Request timed out waiting for voters to commit the latest voter change"
                f" at {history.voters_offset} with HWM {high_watermark}",
            )
        return None

    def addition_refusal(self, high_watermark: int | None, voter: ReplicaKey) -> Reply | None:
        refusal = self.refusal(high_watermark, "adding")
        if refusal is None and voter.id in self.history.voters.voters:
            return Reply(
                error=ErrorCode.DUPLICATE_VOTER,
                message=f"The voter id for {describe(voter)} is already part of the set of voters"
                f" {describe_all(self.history.voters)}.",
            )
        return refusal

    def removal(self, high_watermark: int | None, voter: ReplicaKey) -> Reply | VoterSet:
        refusal = self.refusal(high_watermark, "removing")
        if refusal is not None:
            return refusal
        remaining = self.history.voters.without(voter)
        if remaining is None:
            return Reply(
                error=ErrorCode.VOTER_NOT_FOUND,
                message=f"Cannot remove voter {describe(voter)} from the set of voters"
                f" {describe_all(self.history.voters)}",
            )
        return remaining

    def update(self, high_watermark: int | None, voter: Voter) -> Reply | VoterSet | None:
        """The new voter set; None if nothing is to be appended; a Reply is the refusal."""
        if self.pending is not None or high_watermark is None:
            return Reply(error=ErrorCode.REQUEST_TIMED_OUT)
        history = self.history
        if history.is_dynamic and history.voters_offset >= high_watermark:
            return Reply(error=ErrorCode.REQUEST_TIMED_OUT)
        if not voter.min_kraft_version <= history.kraft_version <= voter.max_kraft_version:
            return Reply(error=ErrorCode.INVALID_REQUEST)
        if not history.is_dynamic:
            if voter.key.id not in history.voters.voters:
                return Reply(error=ErrorCode.VOTER_NOT_FOUND)
            self.reported[voter.key.id] = voter
            return None
        current = history.voters.voters.get(voter.key.id)
        if current is None or current.key != voter.key:
            return Reply(error=ErrorCode.VOTER_NOT_FOUND)
        return history.voters.with_voter(voter)

    def probed(self, reply: VersionsReply | None, *, caught_up: bool) -> Reply | VoterSet:
        """The new voter set, or the refusal, by what the new voter has answered."""
        pending = self.pending
        adding = None if pending is None else pending.adding
        if adding is None or reply is None or reply.error is not ErrorCode.NONE:
            error = None if reply is None else reply.error.name
            return Reply(
                error=ErrorCode.REQUEST_TIMED_OUT,
                message=f"Aborted add voter operation for since API_VERSIONS returned an error"
                f" {error}",
            )
        version = self.history.kraft_version
        low, high = reply.levels or (0, 0)
        if reply.levels is None or not low <= version <= high:
            return Reply(
                error=ErrorCode.INVALID_REQUEST,
                message=f"Aborted add voter operation for {describe(adding.key)} since the"
                f" kraft.version range (min: {low}, max: {high}) doesn't support the finalized"
                f" version {version}",
            )
        if not caught_up:
            return Reply(
                error=ErrorCode.REQUEST_TIMED_OUT,
                message=f"Aborted add voter operation for {describe(adding.key)} since it is"
                " lagging behind",
            )
        voter = Voter(
            key=adding.key,
            endpoints=adding.endpoints,
            min_kraft_version=low,
            max_kraft_version=high,
        )
        return self.history.voters.with_voter(voter)

    def upgraded(self, version: int, local: Voter) -> VoterSet:
        """The voters of a static quorum for a dynamic one; ApiError if it cannot become one now."""
        current = self.history.kraft_version
        if version <= current or version > KRAFT_VERSION_MAX:
            raise _no_upgrade(f"from version {current} to {version}")
        known = {**self.reported, local.key.id: local}
        missing = [str(node_id) for node_id in self.history.voters.voters if node_id not in known]
        if missing:
            raise _no_upgrade(
                f"to {version}, because the voters {', '.join(missing)} have not reported their"
                " directory ids to the leader yet. Voters that run do so within seconds: try again"
            )
        voters = VoterSet.of(known[node_id] for node_id in self.history.voters.voters)
        for voter in voters.voters.values():
            if not voter.min_kraft_version <= version <= voter.max_kraft_version:
                raise _no_upgrade(f"to {version} because not all of the voters support it")
        return voters


def _no_upgrade(reason: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_UPDATE_VERSION, f"Invalid upgrade of kraft.version {reason}")


def describe(key: ReplicaKey) -> str:
    return f"ReplicaKey(id={key.id}, directoryId={key.directory_id})"


def describe_all(voters: VoterSet) -> str:
    return "[" + ", ".join(describe(voter.key) for voter in voters.voters.values()) + "]"
