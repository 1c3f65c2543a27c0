"""One member of a consumer group, as stored in records.

A member is a value: every change makes a new one, so the old and the new can be compared to decide
what to write.

Invariants: its assigned partitions and those it still has to revoke are disjoint, and no other
member has any of them; it has partitions to revoke exactly in UNREVOKED_PARTITIONS; its epoch never
decreases; states follow `TRANSITIONS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import NamedTuple, TypeAlias
from uuid import UUID

from moldau.broker.machine.transitions import Transitions
from moldau.invariant import invariant

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2
"""The epoch of a static member that went away for a moment: its partitions wait for it."""

Assignment: TypeAlias = Mapping[UUID, frozenset[int]]
"""Partitions by topic."""
EpochAssignment: TypeAlias = Mapping[UUID, Mapping[int, int]]
"""Partitions by topic, each with the epoch in which the member got it."""


class MemberState(IntEnum):
    """The numbers are those of the record."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """Has to give up partitions before it may have the next epoch."""
    UNRELEASED_PARTITIONS = 2
    """Waits for partitions that others have to give up."""
    UNKNOWN = 127

    @classmethod
    def of(cls, value: int) -> MemberState:
        """A state of some later release is unknown to this one."""
        return _STATES.get(value, cls.UNKNOWN)


_STATES = {int(state): state for state in MemberState}

_SETTLED = frozenset({MemberState.STABLE, MemberState.UNRELEASED_PARTITIONS})
_KNOWN = _SETTLED | {MemberState.UNREVOKED_PARTITIONS}
# A new target may arrive in any state. A member in an unknown state has nothing to give up.
TRANSITIONS = Transitions(
    {
        MemberState.STABLE: _KNOWN,
        MemberState.UNREVOKED_PARTITIONS: _KNOWN,
        MemberState.UNRELEASED_PARTITIONS: _KNOWN,
        MemberState.UNKNOWN: _SETTLED,
    }
)


class ClassicMemberMetadata(NamedTuple):
    """What is stored of a member that uses the classic protocol."""

    session_timeout_ms: int
    supported_protocols: tuple[tuple[str, bytes], ...]
    """Name and metadata of each, in the order of its preference."""


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str | None = ""
    server_assignor: str | None = None
    assigned: EpochAssignment = field(default_factory=dict)
    pending_revocation: EpochAssignment = field(default_factory=dict)
    classic: ClassicMemberMetadata | None = None

    @property
    def uses_classic_protocol(self) -> bool:
        return self.classic is not None

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def assignment_epoch(self, topic_id: UUID, partition: int) -> int | None:
        """Since when the member has the partition, also if it is about to give it up."""
        epoch = self.assigned.get(topic_id, {}).get(partition)
        if epoch is None:
            epoch = self.pending_revocation.get(topic_id, {}).get(partition)
        return epoch

    def reconciled(
        self,
        state: MemberState,
        member_epoch: int,
        assigned: EpochAssignment,
        pending_revocation: EpochAssignment,
    ) -> ConsumerMember:
        """The member after a transition; its present epoch becomes the previous one."""
        TRANSITIONS.check(f"member {self.member_id}", self.state, state)
        invariant(
            member_epoch >= self.member_epoch,
            f"member {self.member_id} would go back from epoch {self.member_epoch}"
            f" to {member_epoch}",
        )
        invariant(
            # A member that was already in the state, as another coordinator wrote it, may stay.
            state is self.state
            or bool(pending_revocation) == (state is MemberState.UNREVOKED_PARTITIONS),
            f"member {self.member_id} would be {state.name} with {pending_revocation} to revoke",
        )
        invariant(
            all(
                assigned[topic_id].keys().isdisjoint(partitions)
                for topic_id, partitions in pending_revocation.items()
                if topic_id in assigned
            ),
            f"member {self.member_id} would keep and revoke the same partition",
        )
        return replace(
            self,
            state=state,
            member_epoch=member_epoch,
            previous_member_epoch=self.member_epoch,
            assigned=assigned,
            pending_revocation=pending_revocation,
        )


def without_epochs(assigned: EpochAssignment) -> dict[UUID, frozenset[int]]:
    return {topic_id: frozenset(partitions) for topic_id, partitions in assigned.items()}


def with_epoch(assigned: Assignment, epoch: int) -> dict[UUID, dict[int, int]]:
    return {topic_id: dict.fromkeys(partitions, epoch) for topic_id, partitions in assigned.items()}
