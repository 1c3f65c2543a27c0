"""A share group as replay has built it from records, and what follows from that.

Only replay changes it, apart from a mark that saves work: the version of the cluster's topics which
the metadata hash was last compared with. States: Empty without members, else Stable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import ClassVar, NoReturn
from uuid import UUID

from moldau.broker.coordinator.group.machine.group import CommitCaller, PartitionCheck
from moldau.broker.coordinator.group.machine.offsets import CommittedOffset
from moldau.broker.coordinator.group.machine.share.member import Assignment, ShareMember
from moldau.broker.coordinator.group.machine.share.records import (
    group_tombstones,
    member_tombstones,
)
from moldau.broker.coordinator.group.machine.share.states import PartitionStates
from moldau.broker.coordinator.machine.decision import CoordinatorRecord
from moldau.wire.errors import ApiError, ErrorCode

# A group that was never written has these; the first change makes it epoch 2.
_FIRST_EPOCH = 1
NO_ASSIGNMENT_EPOCH = -1
_NO_VERSION = -1


class ShareGroup:
    group_type: ClassVar[str] = "share"
    listed_protocol_type = "share"

    def __init__(self, group_id: str) -> None:
        self._group_id = group_id
        self.group_epoch = _FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = _FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        """When the target assignment was made; 0 if that is not known."""
        self.members: dict[str, ShareMember] = {}
        self.target: dict[str, Assignment] = {}
        self.states: PartitionStates | None = None
        """None: nothing was ever initialised."""
        self.subscriptions: Counter[str] = Counter()
        """Topic name: how many members subscribe to it."""
        self._assigned: dict[UUID, frozenset[int]] | None = None

        # Not from records.
        self.hash_checked_at_version = _NO_VERSION

    @property
    def group_id(self) -> str:
        return self._group_id

    @property
    def state_name(self) -> str:
        return "Stable" if self.members else "Empty"

    @property
    def is_empty(self) -> bool:
        return not self.members

    # Replay.

    def put_member(self, member: ShareMember) -> None:
        before = self.members.get(member.member_id)
        if before is not None:
            self._unsubscribe(before)
        self.members[member.member_id] = member
        self.subscriptions.update(member.subscribed)

    def remove_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self._unsubscribe(member)

    def put_target(self, member_id: str, target: Assignment | None) -> None:
        self._assigned = None
        if target is None:
            self.target.pop(member_id, None)
        else:
            self.target[member_id] = target

    def _unsubscribe(self, member: ShareMember) -> None:
        for name in member.subscribed:
            self.subscriptions[name] -= 1
            if not self.subscriptions[name]:
                del self.subscriptions[name]

    # What follows from it.

    def subscriptions_with(self, member: ShareMember) -> Counter[str]:
        """The subscriptions of the group once the member is as given."""
        counts = self.subscriptions.copy()
        before = self.members.get(member.member_id)
        if before is not None:
            if before.subscribed == member.subscribed:
                return counts
            counts.subtract(before.subscribed)
        counts.update(member.subscribed)
        return +counts

    def subscriptions_without(self, member: ShareMember) -> Counter[str]:
        counts = self.subscriptions.copy()
        counts.subtract(member.subscribed)
        return +counts

    @property
    def assigned(self) -> dict[UUID, frozenset[int]]:
        """Every partition in the target assignment."""
        if self._assigned is None:
            found: dict[UUID, set[int]] = {}
            for target in self.target.values():
                for topic_id, partitions in target.items():
                    found.setdefault(topic_id, set()).update(partitions)
            self._assigned = {topic_id: frozenset(each) for topic_id, each in found.items()}
        return self._assigned

    def has_unassigned_partitions(self, exists: Callable[[UUID], bool]) -> bool:
        """Initialised partitions of subscribed topics that the target assignment leaves out."""
        if self.states is None or not self.members:
            return False
        return any(
            topic.name in self.subscriptions
            and self.assigned.get(topic_id) != topic.partitions
            # What is left of a deleted topic can never be assigned.
            and exists(topic_id)
            for topic_id, topic in self.states.initialized.items()
        )

    # Commits, expiry and deletion see the group like this: it has no committed offsets.

    def check_commit(self, caller: CommitCaller) -> PartitionCheck:
        self._refuse_offsets()

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Allowed; the response has no offsets."""

    def check_delete_offsets(self) -> None:
        self._refuse_offsets()

    def _refuse_offsets(self) -> NoReturn:
        raise ApiError(
            ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self._group_id} is not a consumer group."
        )

    def check_delete(self) -> None:
        self.check_empty()

    def check_empty(self) -> None:
        if self.members:
            raise ApiError(
                ErrorCode.NON_EMPTY_GROUP,
                f"The group {self._group_id} has members: stop them first.",
            )

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscriptions

    def offsets_expire_from(self, offset: CommittedOffset) -> int | None:
        return None

    def tombstones(self) -> list[CoordinatorRecord]:
        records: list[CoordinatorRecord] = []
        for member_id in self.members:
            records += member_tombstones(self._group_id, member_id)
        return records + group_tombstones(self._group_id)
