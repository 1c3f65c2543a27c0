"""Decides what a member does in a group whose coordinator assigns (KIP-848, KIP-932).

Pure: time is passed in. There is one request, the heartbeat; its answers carry the member's epoch
and, when it changed, the target assignment. States and what leads to them (`NEXT` has all
transitions):

    UNSUBSCRIBED     at first, after leaving
    JOINING          polled with a subscription; after FENCED or STALE, once all was given up
    RECONCILING      the target differs from what the member has
    ACKNOWLEDGING    partitions were given up and taken: the next heartbeat reports it
    STABLE           it was reported; the target is what the member has
    FENCED           the coordinator knows the member no longer: all is lost, join again
    PREPARE_LEAVING  partitions are being given up to leave
    LEAVING          the heartbeat that leaves is due
    STALE            left because the application did not poll in time
    FATAL            an error that only the application can fix; until it unsubscribes

Invariants: `current`, which heartbeats report, names whatever the application owns; partitions that
are to be given up leave it in `take`, after they were given up, and only if the member is still in
the same membership in which that began.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum, auto
from typing import Final, NamedTuple
from uuid import UUID

from moldau.client.topics import TopicPartition
from moldau.invariant import invariant
from moldau.wire.errors import ErrorCode

__all__ = [
    "JOIN_EPOCH",
    "LEAVE_EPOCH",
    "LEAVE_STATIC_EPOCH",
    "NEXT",
    "AfterBeat",
    "EpochMember",
    "EpochState",
    "LocalAssignment",
    "Reconciliation",
]

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
#: A static member says that it will be back.
LEAVE_STATIC_EPOCH: Final = -2

Partitions = Mapping[UUID, frozenset[int]]


class EpochState(Enum):
    UNSUBSCRIBED = auto()
    JOINING = auto()
    RECONCILING = auto()
    ACKNOWLEDGING = auto()
    STABLE = auto()
    FENCED = auto()
    PREPARE_LEAVING = auto()
    LEAVING = auto()
    STALE = auto()
    FATAL = auto()


#: The states that may follow each state.
NEXT: Final[Mapping[EpochState, frozenset[EpochState]]] = {
    EpochState.UNSUBSCRIBED: frozenset({EpochState.JOINING, EpochState.FATAL}),
    EpochState.JOINING: frozenset(
        {
            EpochState.RECONCILING,
            EpochState.STABLE,
            EpochState.FENCED,
            EpochState.PREPARE_LEAVING,
            EpochState.LEAVING,
            EpochState.FATAL,
        }
    ),
    EpochState.RECONCILING: frozenset(
        {
            EpochState.ACKNOWLEDGING,
            EpochState.FENCED,
            EpochState.PREPARE_LEAVING,
            EpochState.LEAVING,
            EpochState.FATAL,
        }
    ),
    EpochState.ACKNOWLEDGING: frozenset(
        {
            EpochState.STABLE,
            EpochState.RECONCILING,
            EpochState.FENCED,
            EpochState.PREPARE_LEAVING,
            EpochState.LEAVING,
            EpochState.FATAL,
        }
    ),
    EpochState.STABLE: frozenset(
        {
            EpochState.RECONCILING,
            EpochState.FENCED,
            EpochState.PREPARE_LEAVING,
            EpochState.LEAVING,
            EpochState.FATAL,
        }
    ),
    EpochState.FENCED: frozenset({EpochState.JOINING, EpochState.UNSUBSCRIBED, EpochState.FATAL}),
    EpochState.PREPARE_LEAVING: frozenset(
        {EpochState.LEAVING, EpochState.UNSUBSCRIBED, EpochState.FATAL}
    ),
    EpochState.LEAVING: frozenset(
        {
            EpochState.UNSUBSCRIBED,
            EpochState.STALE,
            EpochState.PREPARE_LEAVING,
            EpochState.FATAL,
        }
    ),
    EpochState.STALE: frozenset({EpochState.JOINING, EpochState.UNSUBSCRIBED, EpochState.FATAL}),
    EpochState.FATAL: frozenset({EpochState.UNSUBSCRIBED}),
}
_SILENT: Final = frozenset(
    (EpochState.UNSUBSCRIBED, EpochState.FATAL, EpochState.STALE, EpochState.FENCED)
)
_AT_ONCE: Final = frozenset((EpochState.ACKNOWLEDGING, EpochState.LEAVING, EpochState.JOINING))
_TAKES_ASSIGNMENTS: Final = frozenset(
    (
        EpochState.STABLE,
        EpochState.JOINING,
        EpochState.ACKNOWLEDGING,
        EpochState.RECONCILING,
    )
)


class LocalAssignment(NamedTuple):
    """An assignment, numbered: the same partitions given again are another assignment."""

    number: int
    partitions: Partitions


NO_ASSIGNMENT: Final = LocalAssignment(-1, {})


class Reconciliation(NamedTuple):
    """Steps towards the target as far as its topics are known by name."""

    assignment: LocalAssignment
    revoked: list[TopicPartition]
    added: list[TopicPartition]
    #: Of which membership: another one began when this no longer holds.
    membership: int


class AfterBeat(Enum):
    """What follows a heartbeat that was answered with an error."""

    BACK_OFF = auto()
    FIND_COORDINATOR = auto()
    #: Given up first, joined again then; at the next poll.
    REJOIN = auto()
    #: Raised to the application, which may fix it and go on.
    REPORT = auto()
    #: Raised to the application; nothing more is sent.
    FAIL = auto()
    IGNORE = auto()


class EpochMember:
    """See the module."""

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.state = EpochState.UNSUBSCRIBED
        self.epoch = JOIN_EPOCH
        self.current = NO_ASSIGNMENT
        self.target = NO_ASSIGNMENT
        self._names: dict[UUID, str] = {}
        self._membership = 0
        self._late = False

    def _enter(self, state: EpochState) -> None:
        if state is not self.state:
            invariant(state in NEXT[self.state], f"a member went from {self.state} to {state}")
            self.state = state

    # Joining and leaving.

    @property
    def in_group(self) -> bool:
        return self.epoch > 0

    @property
    def is_silent(self) -> bool:
        """Whether no heartbeats are sent."""
        return self.state in _SILENT

    @property
    def beats_at_once(self) -> bool:
        return self.state in _AT_ONCE

    @property
    def must_release(self) -> bool:
        """Whether what it owned is lost, and the listener has to be called."""
        return self.state in (EpochState.FENCED, EpochState.STALE)

    def join(self) -> None:
        """Polled with a subscription, as no member."""
        if self.state is EpochState.UNSUBSCRIBED:
            self._start_joining()

    def on_released(self) -> None:
        """The application knows that all is lost."""
        self.current = NO_ASSIGNMENT
        if self.must_release:
            self._start_joining()

    def _start_joining(self) -> None:
        self._membership += 1
        self._enter(EpochState.JOINING)
        self.epoch = JOIN_EPOCH
        self._late = False
        self.current = self.target = NO_ASSIGNMENT
        self._names.clear()

    def prepare_leaving(self) -> bool:
        """Whether there is a membership to leave."""
        if self.is_silent:
            self._enter(EpochState.UNSUBSCRIBED)
            self.current = self.target = NO_ASSIGNMENT
            return False
        self._enter(EpochState.PREPARE_LEAVING)
        return True

    def leave(self, leave_epoch: int) -> None:
        """All was given up: the heartbeat that leaves is due."""
        if self.is_silent:
            return
        self.epoch = leave_epoch
        self.current = self.target = NO_ASSIGNMENT
        self._enter(EpochState.LEAVING)

    def on_late_application(self, leave_epoch: int) -> None:
        """It did not poll in time: leave, and join again when it does."""
        self._late = True
        self.leave(leave_epoch)

    def on_left_unsaid(self) -> None:
        """The heartbeat that leaves is not sent."""
        if self.state is EpochState.LEAVING:
            self._enter(EpochState.STALE if self._late else EpochState.UNSUBSCRIBED)

    def on_failed(self) -> None:
        self._enter(EpochState.FATAL)
        self.epoch = JOIN_EPOCH

    # Heartbeats.

    def on_beat_sent(self) -> None:
        if self.state is EpochState.ACKNOWLEDGING:
            done = self.current == self.target
            self._enter(EpochState.STABLE if done else EpochState.RECONCILING)
        else:
            self.on_left_unsaid()

    def on_beat_answered(self, epoch: int, assignment: Partitions | None) -> None:
        if self.state is EpochState.LEAVING or self.is_silent or epoch < 0:
            return
        self.epoch = epoch
        if self.state not in _TAKES_ASSIGNMENTS:
            return
        if assignment is None:
            if self.state is EpochState.JOINING:
                self._enter(EpochState.STABLE)
            return
        if self.target.number < 0 or self.target.partitions != assignment:
            self.target = LocalAssignment(self.target.number + 1, dict(assignment))
        # If they are equal while it is reconciling, the application is taking its partitions right
        # now. It must not become stable: `on_reconciled` has them acknowledged at once, and other
        # members may be waiting for that.
        if self.target != self.current:
            self._enter(EpochState.RECONCILING)

    def on_beat_refused(self, code: ErrorCode) -> AfterBeat:
        match code:
            case ErrorCode.NOT_COORDINATOR | ErrorCode.COORDINATOR_NOT_AVAILABLE:
                return AfterBeat.FIND_COORDINATOR
            case ErrorCode.COORDINATOR_LOAD_IN_PROGRESS | ErrorCode.REQUEST_TIMED_OUT:
                return AfterBeat.BACK_OFF
            case ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                return AfterBeat.REPORT
            case ErrorCode.FENCED_MEMBER_EPOCH | ErrorCode.UNKNOWN_MEMBER_ID:
                return self._on_fenced()
            case ErrorCode.GROUP_ID_NOT_FOUND if self.is_silent:
                return AfterBeat.IGNORE
            case _ if self.state in (EpochState.UNSUBSCRIBED, EpochState.STALE):
                # An answer to the heartbeat that left.
                return AfterBeat.IGNORE
            case _:
                self.on_failed()
                return AfterBeat.FAIL

    def _on_fenced(self) -> AfterBeat:
        if self.state in (EpochState.PREPARE_LEAVING, EpochState.LEAVING):
            # There is nothing left to leave.
            self._enter(EpochState.UNSUBSCRIBED)
            self.epoch = LEAVE_EPOCH
            self.current = self.target = NO_ASSIGNMENT
            return AfterBeat.IGNORE
        if self.is_silent:
            return AfterBeat.IGNORE
        self._enter(EpochState.FENCED)
        self.epoch = JOIN_EPOCH
        return AfterBeat.REJOIN

    # Reconciling.

    def unresolved(self, names: Mapping[UUID, str]) -> frozenset[UUID]:
        """Topics of the target that nobody knows by name."""
        return frozenset(
            topic_id
            for topic_id in self.target.partitions
            if topic_id not in names and topic_id not in self._names
        )

    def reconciliation(
        self, names: Mapping[UUID, str], owned: Collection[TopicPartition]
    ) -> Reconciliation | None:
        """What has to be given up and taken now, if anything; may acknowledge without."""
        if self.state is not EpochState.RECONCILING or self.target == self.current:
            return None
        resolved: dict[UUID, frozenset[int]] = {}
        assigned: set[TopicPartition] = set()
        for topic_id, indexes in self.target.partitions.items():
            name = names.get(topic_id) or self._names.get(topic_id)
            if name is not None:
                self._names[topic_id] = name
                resolved[topic_id] = indexes
                assigned.update(TopicPartition(name, index) for index in indexes)
        assignment = LocalAssignment(self.target.number, resolved)
        if self.current.number >= 0 and resolved == self.current.partitions:
            # Topics without a name are waited for, but what was given up is said at once.
            if self.current != assignment:
                self.current = assignment
                self._enter(EpochState.ACKNOWLEDGING)
            return None
        if not assigned and not owned and resolved != self.target.partitions:
            return None
        return Reconciliation(
            assignment,
            sorted(set(owned) - assigned),
            sorted(assigned.difference(owned)),
            self._membership,
        )

    def still_wanted(self, steps: Reconciliation) -> bool:
        """Whether to go on with it: the member may have been fenced or have left meanwhile."""
        return self.state is EpochState.RECONCILING and steps.membership == self._membership

    def take(self, steps: Reconciliation) -> list[TopicPartition]:
        """What was to be given up is: the partitions to take now, which are the member's own from
        here on. Of those that were to be added the coordinator may want some back by now, and may
        know already that the member does not have them: these are left out."""
        added = frozenset(steps.added)
        taken: set[TopicPartition] = set()
        kept: dict[UUID, frozenset[int]] = {}
        for topic_id, indexes in steps.assignment.partitions.items():
            name = self._names[topic_id]
            wanted = self.target.partitions.get(topic_id, frozenset())
            new = {index for index in indexes if TopicPartition(name, index) in added}
            kept[topic_id] = (indexes - new) | (new & wanted)
            taken.update(TopicPartition(name, index) for index in new & wanted)
        self.current = LocalAssignment(
            steps.assignment.number, {key: each for key, each in kept.items() if each}
        )
        return sorted(taken)

    def on_reconciled(self, steps: Reconciliation) -> None:
        """The application knows what it has: the next heartbeat reports it."""
        if self.still_wanted(steps):
            self._enter(EpochState.ACKNOWLEDGING)
            known = self.current.partitions
            self._names = {each: self._names[each] for each in known}
