"""One member of a consumer group, as the records of the log tell of it.

A member is a value: every change makes a new one, so the old and the new can be compared
to find out what to write. What always holds: its assigned partitions and those it still
has to give up are disjoint, and no other member has any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import NamedTuple, TypeAlias
from uuid import UUID

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


class ClassicMemberMetadata(NamedTuple):
    """What is kept of a member that speaks the classic protocol."""

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
        """One step on: the epoch it leaves becomes the previous one."""
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
