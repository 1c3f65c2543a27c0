"""Decides what a member of a classic group does: when to join, beat, leave, and what errors mean.

Pure: time is passed in, requests are sent by the shell. States and what leads to them (`NEXT` has
all transitions):

    UNJOINED              nothing sent, or the group no longer knows this member
    PREPARING_REBALANCE   `begin_join`: JoinGroup is on its way
    COMPLETING_REBALANCE  `on_joined`: SyncGroup is on its way, heartbeats begin
    STABLE                `on_synced`: it has an assignment

Invariants: a late response to a request of an older generation changes nothing; a member id
is forgotten only when the group does not know it any more or the member has left; before a join
`needs_prepare` is true until the partitions were given up for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final, NamedTuple

from moldau.invariant import invariant
from moldau.times import ElapsedMs
from moldau.wire.errors import COORDINATOR_MOVED, ErrorCode

__all__ = [
    "NEXT",
    "NO_GENERATION",
    "After",
    "Beat",
    "ClassicMember",
    "ClassicSettings",
    "Generation",
    "MemberState",
]

_REASON_SIZE_MAX: Final = 255


class MemberState(Enum):
    UNJOINED = auto()
    PREPARING_REBALANCE = auto()
    COMPLETING_REBALANCE = auto()
    STABLE = auto()


#: The states that may follow each state.
NEXT: Final[Mapping[MemberState, frozenset[MemberState]]] = {
    MemberState.UNJOINED: frozenset({MemberState.PREPARING_REBALANCE}),
    MemberState.PREPARING_REBALANCE: frozenset(
        {MemberState.COMPLETING_REBALANCE, MemberState.UNJOINED}
    ),
    MemberState.COMPLETING_REBALANCE: frozenset(
        {MemberState.STABLE, MemberState.PREPARING_REBALANCE, MemberState.UNJOINED}
    ),
    MemberState.STABLE: frozenset({MemberState.PREPARING_REBALANCE, MemberState.UNJOINED}),
}


class Generation(NamedTuple):
    """Who the member is in which round of the group."""

    generation_id: int = -1
    member_id: str = ""
    protocol_name: str | None = None


NO_GENERATION: Final = Generation()


class After(Enum):
    """What follows a failed JoinGroup or SyncGroup."""

    RETRY = auto()
    BACK_OFF = auto()
    FIND_COORDINATOR = auto()
    FAIL = auto()


class Beat(Enum):
    """What the heartbeat task does next."""

    SEND = auto()
    WAIT = auto()
    #: Not a member, or not yet: until something happens.
    SLEEP = auto()
    #: The application has not polled for too long.
    LEAVE = auto()
    #: No heartbeat was answered for a session: look for the coordinator elsewhere.
    FIND_COORDINATOR = auto()


class ClassicSettings(NamedTuple):
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int


_FATAL_FENCED: Final = ErrorCode.FENCED_INSTANCE_ID
_NO_LONGER_MEMBER: Final = frozenset((ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION))


class ClassicMember:
    """See the module."""

    def __init__(self, settings: ClassicSettings) -> None:
        self._settings = settings
        self.state = MemberState.UNJOINED
        self.generation = NO_GENERATION
        self.rejoin_needed = True
        self.rejoin_reason = ""
        self.needs_prepare = True
        self.rebalance_began_ms: int | None = None
        self._beat_due_ms = 0
        self._session_ends_ms = 0
        self.beat_sent_ms: int | None = None
        self._beat_failures = 0

    def _enter(self, state: MemberState) -> None:
        if state is not self.state:
            invariant(state in NEXT[self.state], f"a member went from {self.state} to {state}")
            self.state = state

    # Joining.

    @property
    def lost(self) -> bool:
        """Whether what it owns is no longer its own in the group's eyes."""
        return self.generation.generation_id < 0 or not self.generation.member_id

    @property
    def rebalancing(self) -> bool:
        return self.state in (
            MemberState.PREPARING_REBALANCE,
            MemberState.COMPLETING_REBALANCE,
        )

    def request_rejoin(self, reason: str) -> None:
        self.rejoin_reason = reason
        self.rejoin_needed = True

    def begin_join(self, now_ms: ElapsedMs) -> Generation:
        """JoinGroup is sent now, as whom the result says."""
        self._enter(MemberState.PREPARING_REBALANCE)
        # Of several tries in a row the first counts.
        if self.rebalance_began_ms is None:
            self.rebalance_began_ms = now_ms
        return self.generation

    @property
    def reason_to_send(self) -> str:
        return self.rejoin_reason[:_REASON_SIZE_MAX]

    def on_joined(self, generation: Generation, now_ms: ElapsedMs) -> bool:
        """JoinGroup was answered; False if the member has left meanwhile."""
        if self.state is not MemberState.PREPARING_REBALANCE:
            return False
        self._enter(MemberState.COMPLETING_REBALANCE)
        self.generation = generation
        self._beat_due_ms = now_ms + self._settings.heartbeat_interval_ms
        self._session_ends_ms = now_ms + self._settings.session_timeout_ms
        return True

    def on_join_failed(self, code: ErrorCode, sent: Generation, member_id: str) -> After:
        match code:
            case ErrorCode.MEMBER_ID_REQUIRED:
                self.generation = Generation(member_id=member_id)
                self.request_rejoin(f"need to re-join with the given member-id: {member_id}")
                return After.RETRY
            case ErrorCode.UNKNOWN_MEMBER_ID:
                if sent == self.generation:
                    self._reset(f"encountered {code.name} from JOIN_GROUP response", keep_id=False)
                return After.RETRY
            case ErrorCode.REBALANCE_IN_PROGRESS:
                self._failed(code)
                return After.RETRY
            case ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                self._failed(code)
                return After.BACK_OFF
            case _ if code in COORDINATOR_MOVED:
                self._failed(code)
                return After.FIND_COORDINATOR
            case _:
                self._failed(code)
                return After.FAIL

    def on_synced(self, protocol_name: str | None) -> After | None:
        """SyncGroup was answered; None if the member has its assignment now."""
        if self.state is not MemberState.COMPLETING_REBALANCE or self.generation.generation_id < 0:
            # It was thrown out, or left, since.
            return After.RETRY
        if protocol_name is not None and protocol_name != self.generation.protocol_name:
            return After.FAIL
        self._enter(MemberState.STABLE)
        self.rejoin_reason = ""
        self.rejoin_needed = False
        self.rebalance_began_ms = None
        return None

    def on_sync_failed(self, code: ErrorCode, sent: Generation) -> After:
        if code in _NO_LONGER_MEMBER:
            if sent == self.generation:
                keep_id = code is ErrorCode.ILLEGAL_GENERATION
                self._reset(f"encountered {code.name} from SYNC_GROUP response", keep_id=keep_id)
            return After.RETRY
        self._failed(code)
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            return After.RETRY
        if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return After.BACK_OFF
        if code in COORDINATOR_MOVED:
            return After.FIND_COORDINATOR
        return After.FAIL

    def on_call_failed(self, reason: str) -> None:
        """JoinGroup or SyncGroup was not answered."""
        self.request_rejoin(f"rebalance failed due to {reason}")

    def on_rebalance_failed(self, reason: str) -> None:
        """There was an answer, but no use in it."""
        self._reset(reason, keep_id=False)

    def _failed(self, code: ErrorCode) -> None:
        self.request_rejoin(f"rebalance failed due to {code.name}")

    def _reset(self, reason: str, *, keep_id: bool) -> None:
        self._enter(MemberState.UNJOINED)
        # A known id is kept: else the old one would hold the next rebalance up until it expires.
        self.generation = (
            Generation(member_id=self.generation.member_id) if keep_id else NO_GENERATION
        )
        self.request_rejoin(reason)
        self.needs_prepare = True

    # Heartbeats.

    def next_beat(self, now_ms: ElapsedMs, idle_ms: int) -> tuple[Beat, int | None]:
        """What to do, and how long to wait for WAIT, without end for SLEEP."""
        if self.state in (MemberState.UNJOINED, MemberState.PREPARING_REBALANCE):
            return Beat.SLEEP, None
        if now_ms >= self._session_ends_ms:
            self._session_ends_ms = now_ms + self._settings.session_timeout_ms
            return Beat.FIND_COORDINATOR, 0
        patience_ms = self._settings.max_poll_interval_ms - idle_ms
        if patience_ms <= 0:
            return Beat.LEAVE, 0
        if now_ms >= self._beat_due_ms:
            return Beat.SEND, 0
        due_ms = min(self._beat_due_ms, self._session_ends_ms) - now_ms
        return Beat.WAIT, min(due_ms, patience_ms)

    def on_beat_sent(self, now_ms: ElapsedMs) -> Generation:
        self.beat_sent_ms = now_ms
        self._beat_due_ms = now_ms + self._settings.heartbeat_interval_ms
        return self.generation

    def on_beat_answered(
        self, code: ErrorCode, sent: Generation, now_ms: ElapsedMs
    ) -> After | None:
        """None if all is well or will be after the next poll."""
        if code is ErrorCode.NONE:
            self._alive(now_ms)
            return None
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            # The group waits for this member, which goes on beating until it polls.
            self._alive(now_ms)
            if self.state is MemberState.STABLE:
                self.request_rejoin("group is already rebalancing")
            return None
        if code in _NO_LONGER_MEMBER or code is _FATAL_FENCED:
            if sent != self.generation:
                return None
            keep_id = code is ErrorCode.ILLEGAL_GENERATION
            self._reset(f"encountered {code.name} from HEARTBEAT response", keep_id=keep_id)
            return After.FAIL if code is _FATAL_FENCED else None
        if code in COORDINATOR_MOVED:
            return After.FIND_COORDINATOR
        if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return After.BACK_OFF
        return After.FAIL

    def on_beat_failed(self, now_ms: ElapsedMs, delay_ms: int) -> None:
        """It was not answered: the next one comes after a pause."""
        self._beat_failures += 1
        self._beat_due_ms = now_ms + delay_ms

    @property
    def beat_failures(self) -> int:
        return self._beat_failures

    def _alive(self, now_ms: ElapsedMs) -> None:
        self._beat_failures = 0
        self._session_ends_ms = now_ms + self._settings.session_timeout_ms

    # Commits and leaving.

    def on_commit_failed(self, code: ErrorCode, generation_id: int, member_id: str) -> None:
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            self.request_rejoin("offset commit failed since group is already rebalancing")
        elif code in _NO_LONGER_MEMBER and self.generation[:2] == (generation_id, member_id):
            self._reset(f"encountered {code.name} from OFFSET_COMMIT response", keep_id=False)

    def leave(self, *, remain: bool, reason: str = "") -> str | None:
        """No member any more from now on; the id with which to send LeaveGroup, if any."""
        known = self.state is not MemberState.UNJOINED and self.generation.member_id
        member_id = None if remain or not known else self.generation.member_id
        self._reset(reason or "consumer pro-actively leaving the group", keep_id=False)
        return member_id
