"""A consumer group as replay has built it from records, and what follows from that.

Only replay changes it, apart from two marks that only save work: the metadata that the hash was
last compared with, and the metadata that the regular expressions were last resolved with. A restart
resets both, and then the work is done once more.

States: Empty without members; Assigning while the target assignment is older than the group;
Reconciling until every member has reached it; then Stable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar
from uuid import UUID

from moldau.broker.coordinator.group.machine.consumer import records
from moldau.broker.coordinator.group.machine.consumer.member import (
    LEAVE_EPOCH,
    Assignment,
    ConsumerMember,
    EpochAssignment,
    MemberState,
)
from moldau.broker.coordinator.group.machine.consumer.subscriptions import (
    ResolvedRegularExpression,
    Subscriptions,
)
from moldau.broker.coordinator.group.machine.group import (
    CommitCaller,
    PartitionCheck,
    any_partition,
)
from moldau.broker.coordinator.group.machine.offsets import CommittedOffset
from moldau.broker.coordinator.machine.decision import CoordinatorRecord
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
)

EMPTY = "Empty"
ASSIGNING = "Assigning"
RECONCILING = "Reconciling"
STABLE = "Stable"

# A group that was never written has these; the first change makes it epoch 2.
_FIRST_EPOCH = 1
NO_ASSIGNMENT_EPOCH = -1
_NO_VERSION = -1

# Members of this protocol speak at least this version of OffsetCommit.
_COMMIT_VERSION_FROM = 9


class ConsumerGroup:
    group_type: ClassVar[str] = "consumer"
    listed_protocol_type = "consumer"

    def __init__(self, group_id: str) -> None:
        self._group_id = group_id
        self.group_epoch = _FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = _FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        """When the target assignment was made; 0 if that is not known."""
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}
        """Instance id: member id."""
        self.target: dict[str, Assignment] = {}
        self.subscriptions = Subscriptions()
        self.owners: dict[UUID, dict[int, str]] = {}
        """The member that has a partition, or has not yet confirmed its revocation."""
        self.assignors: dict[str, int] = {}
        """Server assignor: how many members ask for it."""
        self.classic_member_count = 0
        self.has_partition_metadata = False
        """A release before 4.1 left a record that is of no use any more."""

        # Not from records.
        self.hash_checked_at_version = _NO_VERSION
        self.regexes_resolved_at_version = _NO_VERSION

    @property
    def group_id(self) -> str:
        return self._group_id

    # Replay.

    def put_subscription(self, member_id: str, value: ConsumerGroupMemberMetadataValue) -> None:
        self.put_member(
            replace(
                self.members.get(member_id) or ConsumerMember(member_id),
                instance_id=value.instance_id,
                rack_id=value.rack_id,
                rebalance_timeout_ms=value.rebalance_timeout_ms,
                client_id=value.client_id,
                client_host=value.client_host,
                subscribed_topic_names=frozenset(value.subscribed_topic_names),
                subscribed_topic_regex=value.subscribed_topic_regex,
                server_assignor=value.server_assignor,
                classic=records.classic_of(value),
            )
        )

    def put_current(
        self, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue | None
    ) -> None:
        member = self.members.get(member_id)
        if value is None:
            if member is not None:
                self.put_member(
                    replace(
                        member,
                        member_epoch=LEAVE_EPOCH,
                        previous_member_epoch=LEAVE_EPOCH,
                        assigned={},
                        pending_revocation={},
                    )
                )
            return
        epoch = value.member_epoch
        self.put_member(
            replace(
                member or ConsumerMember(member_id),
                member_epoch=epoch,
                previous_member_epoch=value.previous_member_epoch,
                state=MemberState.of(value.state),
                assigned=records.epochs_of(value.assigned_partitions, epoch),
                pending_revocation=records.epochs_of(value.partitions_pending_revocation, epoch),
            )
        )

    def put_member(self, member: ConsumerMember) -> None:
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        self._replace_member(old, member)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._replace_member(member, None)
        instance_id = member.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == member_id:
            del self.static_members[instance_id]

    def put_target(self, member_id: str, assignment: Assignment | None) -> None:
        if assignment is None:
            self.target.pop(member_id, None)
        else:
            self.target[member_id] = assignment

    def resolve_regex(self, regex: str, resolved: ResolvedRegularExpression | None) -> None:
        self.subscriptions.resolve(regex, resolved)

    def _replace_member(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        self.subscriptions.replace_member(old, new)
        if old is not None:
            self._count_assignor(old.server_assignor, -1)
            self.classic_member_count -= old.uses_classic_protocol
        if new is not None:
            self._count_assignor(new.server_assignor, 1)
            self.classic_member_count += new.uses_classic_protocol
        if old is not None and new is not None and old.assigned is new.assigned:
            # Only the subscription has changed.
            return
        if old is not None:
            self._disown(old.member_id, old.assigned)
            self._disown(old.member_id, old.pending_revocation)
        if new is not None:
            self._own(new.member_id, new.assigned)
            self._own(new.member_id, new.pending_revocation)

    def _count_assignor(self, name: str | None, change: int) -> None:
        if name is None:
            return
        count = self.assignors.get(name, 0) + change
        if count > 0:
            self.assignors[name] = count
        else:
            self.assignors.pop(name, None)

    def _own(self, member_id: str, assigned: EpochAssignment) -> None:
        for topic_id, partitions in assigned.items():
            owners = self.owners.setdefault(topic_id, {})
            for partition in partitions:
                # The later record is right, whatever an odd log has before it.
                owners[partition] = member_id

    def _disown(self, member_id: str, assigned: EpochAssignment) -> None:
        for topic_id, partitions in assigned.items():
            owners = self.owners.get(topic_id)
            if owners is None:
                continue
            for partition in partitions:
                if owners.get(partition) == member_id:
                    del owners[partition]
            if not owners:
                del self.owners[topic_id]

    # What it is.

    @property
    def state_name(self) -> str:
        if not self.members:
            return EMPTY
        epoch = self.assignment_epoch
        if self.group_epoch > epoch:
            return ASSIGNING
        if all(member.is_reconciled_to(epoch) for member in self.members.values()):
            return STABLE
        return RECONCILING

    @property
    def is_empty(self) -> bool:
        return not self.members

    def member(self, member_id: str) -> ConsumerMember:
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {self._group_id}.",
            )
        return member

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        if instance_id is None:
            return None
        return self.members.get(self.static_members.get(instance_id, ""))

    def target_of(self, member_id: str, instance_id: str | None) -> Assignment:
        """The target of a member; a static member's new id inherits from the old one."""
        if instance_id is not None:
            member_id = self.static_members.get(instance_id, "")
        return self.target.get(member_id, {})

    def preferred_assignor(
        self, old: ConsumerMember | None = None, new: ConsumerMember | None = None
    ) -> str | None:
        """What most members ask for, once `new` has replaced `old`; None if no member asks."""
        counts = self.assignors.copy()
        if old is not None and old.server_assignor is not None:
            counts[old.server_assignor] = counts.get(old.server_assignor, 0) - 1
        alone = None
        if new is not None and new.server_assignor is not None:
            votes = counts.get(new.server_assignor, 0)
            counts[new.server_assignor] = votes + 1
            alone = None if votes > 0 else new.server_assignor
        # Among equals Kafka takes what `new` alone asks for, else uniform.
        voted = [(count, name == alone, name) for name, count in counts.items() if count > 0]
        return max(voted)[2] if voted else None

    # As the owner of committed offsets.

    def check_commit(self, caller: CommitCaller) -> PartitionCheck:
        if caller.epoch < 0 and not self.members:
            # An admin client, or a consumer that manages its partitions itself.
            return any_partition
        if (
            caller.transactional
            and caller.epoch == -1
            and caller.member_id == ""
            and caller.instance_id is None
        ):
            # Requests of old producers do not name the consumer.
            return any_partition
        member = self.member(caller.member_id)
        classic = member.uses_classic_protocol
        if not caller.transactional and not classic and caller.version < _COMMIT_VERSION_FROM:
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"OffsetCommit version {_COMMIT_VERSION_FROM} or above must be used by members "
                "using the consumer group protocol",
            )
        if caller.epoch == member.member_epoch:
            return any_partition
        if caller.epoch > member.member_epoch:
            raise _wrong_epoch(member, caller.epoch)
        return _since(member, caller.epoch)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.member_epoch:
            raise _wrong_epoch(member, member_epoch)

    def check_delete_offsets(self) -> None:
        """Always allowed; subscribed topics are rejected one by one."""

    def check_delete(self) -> None:
        if self.members:
            raise ApiError(
                ErrorCode.NON_EMPTY_GROUP,
                f"group {self._group_id} has {len(self.members)} members: stop them first",
            )

    def is_subscribed_to(self, topic: str) -> bool:
        return self.subscriptions.is_subscribed_to(topic)

    def offsets_expire_from(self, offset: CommittedOffset) -> int | None:
        return offset.commit_timestamp_ms

    def tombstones(self) -> list[CoordinatorRecord]:
        group_id = self._group_id
        return [
            *(records.current_tombstone(group_id, member_id) for member_id in self.members),
            *(records.target_tombstone(group_id, member_id) for member_id in self.members),
            records.target_epoch_tombstone(group_id),
            *(records.member_tombstone(group_id, member_id) for member_id in self.members),
            *(records.regex_tombstone(group_id, each) for each in self.subscriptions.resolved),
            records.partition_metadata_tombstone(group_id),
            records.group_epoch_tombstone(group_id),
        ]


def _wrong_epoch(member: ConsumerMember, epoch: int) -> ApiError:
    kind = "generation id" if member.uses_classic_protocol else "member epoch"
    return ApiError(
        _stale(member),
        f"The received {kind} {epoch} does not match the member epoch {member.member_epoch} "
        f"of member {member.member_id}.",
    )


def _stale(member: ConsumerMember) -> ErrorCode:
    if member.uses_classic_protocol:
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.STALE_MEMBER_EPOCH


def _since(member: ConsumerMember, epoch: int) -> Callable[[str, UUID, int], ErrorCode]:
    """An older epoch will do for partitions that the member has had since then (KIP-1251)."""
    refusal = _stale(member)

    def check(topic: str, topic_id: UUID, partition: int) -> ErrorCode:
        since = member.assignment_epoch(topic_id, partition)
        return refusal if since is None or epoch < since else ErrorCode.NONE

    return check
