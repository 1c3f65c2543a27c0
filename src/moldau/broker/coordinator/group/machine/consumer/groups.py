"""All consumer groups of one shard: heartbeats in, records and responses out.

A member sends heartbeats only: to join, to report its subscription and owned partitions, to leave.
The response has the member's epoch and, when it has changed, its assignment. Invariants: a
partition has at most one owner; the group epoch never decreases; a member is removed when its
session expires, or when it does not revoke partitions in time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Protocol
from uuid import UUID

from moldau.broker.coordinator.group.machine.assignors import ASSIGNORS
from moldau.broker.coordinator.group.machine.assignors.interface import Assignor
from moldau.broker.coordinator.group.machine.config import GroupConfig
from moldau.broker.coordinator.group.machine.consumer import membership, records
from moldau.broker.coordinator.group.machine.consumer.context import ConsumerContext
from moldau.broker.coordinator.group.machine.consumer.description import described
from moldau.broker.coordinator.group.machine.consumer.group import (
    NO_ASSIGNMENT_EPOCH,
    ConsumerGroup,
)
from moldau.broker.coordinator.group.machine.consumer.member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    Assignment,
    ConsumerMember,
    EpochAssignment,
    MemberState,
)
from moldau.broker.coordinator.group.machine.consumer.subscriptions import ResolvedRegularExpression
from moldau.broker.coordinator.group.machine.consumer.timers import (
    ClassicJoinTimer,
    ClassicSyncTimer,
    ConsumerTimer,
    MemberRebalanceTimer,
    MemberSessionTimer,
    RegexTimer,
)
from moldau.broker.coordinator.group.machine.consumer.update import MemberUpdate
from moldau.broker.coordinator.group.machine.consumer.validation import check_heartbeat
from moldau.broker.coordinator.group.machine.group import ClientInfo, Group
from moldau.broker.coordinator.group.machine.regular_expressions import matching_topics
from moldau.broker.coordinator.group.machine.settings import GroupSettings
from moldau.broker.coordinator.machine.decision import Outbox
from moldau.broker.coordinator.machine.topics import ClusterTopics
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)

_Response = ConsumerGroupHeartbeatResponse
_UNCHANGED = -1
_CLASSIC = "classic"


class Migration(Protocol):
    """Moves groups between the classic and the consumer protocol while members are in them."""

    def upgrade(self, classic: Group, out: Outbox) -> ConsumerGroup:
        """Write the records that convert a classic group, and return the consumer group.

        Raises GROUP_ID_NOT_FOUND where that is not allowed or not possible.
        """
        ...

    def downgrade(
        self, group: ConsumerGroup, leaving: Collection[ConsumerMember], out: Outbox
    ) -> bool:
        """Write the records that convert it to a classic group, if only classic members remain."""
        ...


class ConsumerGroups:
    KEYS: ClassVar[tuple[type, ...]] = (
        ConsumerGroupMetadataKey,
        ConsumerGroupPartitionMetadataKey,
        ConsumerGroupMemberMetadataKey,
        ConsumerGroupTargetAssignmentMetadataKey,
        ConsumerGroupTargetAssignmentMemberKey,
        ConsumerGroupCurrentMemberAssignmentKey,
        ConsumerGroupRegularExpressionKey,
    )
    TIMERS: ClassVar[tuple[type, ...]] = (
        MemberSessionTimer,
        MemberRebalanceTimer,
        ClassicJoinTimer,
        ClassicSyncTimer,
        RegexTimer,
    )

    def __init__(
        self,
        config: GroupConfig,
        topics: ClusterTopics,
        settings: GroupSettings,
        migration: Migration,
        assignors: Mapping[str, Assignor] = ASSIGNORS,
    ) -> None:
        self.context = ConsumerContext(config, topics, settings, assignors)
        self.groups: dict[str, ConsumerGroup] = {}
        self._migration = migration

    # Replay: the only mutator of the groups.

    def replay(self, key: Any, value: Any) -> None:
        group = self.groups.get(key.group_id)
        if group is None:
            if value is None:
                # Compaction may leave a tombstone behind and nothing else.
                return
            group = self.groups[key.group_id] = ConsumerGroup(key.group_id)
        match key:
            case ConsumerGroupMetadataKey():
                if value is None:
                    del self.groups[key.group_id]
                else:
                    group.group_epoch = value.epoch
                    group.metadata_hash = value.metadata_hash
            case ConsumerGroupPartitionMetadataKey():
                group.has_partition_metadata = value is not None
            case ConsumerGroupMemberMetadataKey():
                if value is None:
                    group.remove_member(key.member_id)
                else:
                    group.put_subscription(key.member_id, value)
            case ConsumerGroupTargetAssignmentMetadataKey():
                if value is None:
                    group.assignment_epoch = NO_ASSIGNMENT_EPOCH
                    group.assignment_timestamp_ms = 0
                else:
                    group.assignment_epoch = value.assignment_epoch
                    group.assignment_timestamp_ms = value.assignment_timestamp
            case ConsumerGroupTargetAssignmentMemberKey():
                target = None if value is None else records.target_of(value)
                group.put_target(key.member_id, target)
            case ConsumerGroupCurrentMemberAssignmentKey():
                group.put_current(key.member_id, value)
            case ConsumerGroupRegularExpressionKey():
                _replay_regex(group, key.regular_expression, value)

    # Life of the shard.

    def on_loaded(self, out: Outbox) -> None:
        for group in self.groups.values():
            # The versions in the log are those of another process.
            group.regexes_resolved_at_version = -1
            timeout_ms = self.context.session_timeout_ms(group.group_id)
            for member in group.members.values():
                out.schedule(MemberSessionTimer(group.group_id, member.member_id), timeout_ms)
                if member.state is MemberState.UNREVOKED_PARTITIONS:
                    out.schedule(
                        MemberRebalanceTimer(group.group_id, member.member_id),
                        member.rebalance_timeout_ms,
                    )

    def on_timer(self, timer: ConsumerTimer, out: Outbox) -> None:
        group = self.groups.get(timer.group_id)
        if group is None:
            return
        if isinstance(timer, RegexTimer):
            self._resolve_regexes(group, timer.may_describe, out)
            return
        member = group.members.get(timer.member_id)
        if member is None:
            return
        if isinstance(timer, MemberRebalanceTimer) and (
            member.state is not MemberState.UNREVOKED_PARTITIONS
            or member.member_epoch == LEAVE_STATIC_EPOCH
        ):
            return
        self.fence(group, (member,), out)

    def fence(self, group: ConsumerGroup, members: Collection[ConsumerMember], out: Outbox) -> None:
        """Members leave for good; a group of classic members alone becomes a classic one."""
        if members and not self._migration.downgrade(group, members, out):
            membership.remove_members(group, members, self.context, out)

    def _resolve_regexes(
        self, group: ConsumerGroup, may_describe: Callable[[str], bool] | None, out: Outbox
    ) -> None:
        """All of the group's expressions at once, so that they cause one new epoch at most."""
        version = self.context.topics.version
        names = self.context.topic_names()
        after = group.subscriptions.copy()
        bump = False
        for regex in group.subscriptions.by_regex:
            matched = matching_topics(regex, names)
            if may_describe is not None:
                matched = frozenset(filter(may_describe, matched))
            before = after.resolved.get(regex)
            bump = bump or matched != (before.topics if before is not None else frozenset())
            resolved = ResolvedRegularExpression(matched, version, out.now_ms)
            after.resolve(regex, resolved)
            out.write(records.regex_record(group.group_id, regex, resolved))
        metadata_hash = self.context.metadata_hash(after)
        if bump or metadata_hash != group.metadata_hash:
            epoch = group.group_epoch + 1
            out.write(records.group_epoch_record(group.group_id, epoch, metadata_hash))

    # Requests.

    def heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        version: int,
        client: ClientInfo,
        fresh_member_id: str,
        out: Outbox,
        *,
        other: Group | None = None,
    ) -> ConsumerGroupHeartbeatResponse:
        """`other` is the group of another kind that has the id, if one has."""
        check_heartbeat(request, version, self.context.assignors)
        if request.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
            return self._leave(request, other, out)
        group = self.groups.get(request.group_id)
        if group is None:
            group = self._new_group(request, other, out)
        size_max = self.context.config.group_consumer_max_size
        membership.check_size(group, request.member_id, size_max)
        member_id = request.member_id or fresh_member_id
        owned = _owned(request)
        member = _member(group, request, member_id, owned, out)
        updated_member = _updated(member, request, client)
        update = MemberUpdate(self.context, group, member, updated_member, out, client.may_describe)
        update.write_subscription()
        target_epoch, target = update.update_target()
        updated = update.reconcile(target_epoch, target, owned)
        out.schedule(
            MemberSessionTimer(request.group_id, member_id),
            self.context.session_timeout_ms(request.group_id),
        )
        response = _Response(
            member_id=member_id,
            member_epoch=updated.member_epoch,
            heartbeat_interval_ms=self.context.heartbeat_interval_ms(request.group_id),
        )
        if (
            request.member_epoch == JOIN_EPOCH
            or _is_full(request)
            or (updated is not member and updated.assigned != member.assigned)
        ):
            response.assignment = _assignment(updated.assigned)
        return response

    def describe(
        self, group_id: str, other: Group | None = None
    ) -> ConsumerGroupDescribeResponse.DescribedGroup:
        group = self.groups.get(group_id)
        if group is None:
            raise _not_found(group_id, other)
        return described(group, self.context)

    def _new_group(
        self, request: ConsumerGroupHeartbeatRequest, other: Group | None, out: Outbox
    ) -> ConsumerGroup:
        group_id = request.group_id
        if request.member_epoch != JOIN_EPOCH:
            if other is None:
                raise ApiError(
                    ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found."
                )
            raise _not_found(group_id, other)
        if other is None:
            return ConsumerGroup(group_id)
        if other.group_type != _CLASSIC:
            raise _not_found(group_id, other)
        if other.is_empty:
            out.records += other.tombstones()
            return ConsumerGroup(group_id)
        return self._migration.upgrade(other, out)

    def _leave(
        self, request: ConsumerGroupHeartbeatRequest, other: Group | None, out: Outbox
    ) -> ConsumerGroupHeartbeatResponse:
        group = self.groups.get(request.group_id)
        if group is None:
            raise _not_found(request.group_id, other)
        member_id, instance_id = request.member_id, request.instance_id
        if instance_id is None:
            member = group.member(member_id)
        else:
            member = membership.existing_static_member(group, member_id, instance_id)
        if instance_id is not None and request.member_epoch == LEAVE_STATIC_EPOCH:
            membership.leave_for_a_while(group, member, out)
        else:
            self.fence(group, (member,), out)
        return _Response(member_id=member_id, member_epoch=request.member_epoch)


def _replay_regex(group: ConsumerGroup, regex: str, value: Any) -> None:
    if value is None:
        group.resolve_regex(regex, None)
        return
    group.resolve_regex(
        regex,
        ResolvedRegularExpression(frozenset(value.topics), value.version, value.timestamp),
    )
    group.regexes_resolved_at_version = value.version


def _not_found(group_id: str, other: Group | None) -> ApiError:
    found = "not found" if other is None else "is not a consumer group"
    return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {found}.")


def _member(
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeatRequest,
    member_id: str,
    owned: Assignment | None,
    out: Outbox,
) -> ConsumerMember:
    epoch, instance_id = request.member_epoch, request.instance_id
    if instance_id is None:
        return membership.dynamic_member(group, member_id, epoch, owned)
    if epoch == JOIN_EPOCH:
        return membership.joining_static_member(
            group, member_id, instance_id, classic=False, out=out
        )
    member = membership.existing_static_member(group, member_id, instance_id)
    membership.check_epoch(member, epoch, owned)
    return member


def _updated(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, client: ClientInfo
) -> ConsumerMember:
    """The member as the request has it; itself if nothing changes. Null means unchanged."""
    changes: dict[str, Any] = {}
    if request.instance_id is not None and request.instance_id != member.instance_id:
        changes["instance_id"] = request.instance_id
    if request.rack_id is not None and request.rack_id != member.rack_id:
        changes["rack_id"] = request.rack_id
    timeout_ms = request.rebalance_timeout_ms
    if timeout_ms not in (_UNCHANGED, member.rebalance_timeout_ms):
        changes["rebalance_timeout_ms"] = timeout_ms
    if request.server_assignor is not None and request.server_assignor != member.server_assignor:
        changes["server_assignor"] = request.server_assignor
    if request.subscribed_topic_names is not None:
        names = frozenset(request.subscribed_topic_names)
        if names != member.subscribed_topic_names:
            changes["subscribed_topic_names"] = names
    regex = request.subscribed_topic_regex
    if regex is not None and regex != member.subscribed_topic_regex:
        changes["subscribed_topic_regex"] = regex
    if client.client_id != member.client_id:
        changes["client_id"] = client.client_id
    if client.client_host != member.client_host:
        changes["client_host"] = client.client_host
    if member.classic is not None:
        changes["classic"] = None
    return replace(member, **changes) if changes else member


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the request is complete, as after an error: then the response is complete too."""
    return (
        request.rebalance_timeout_ms != _UNCHANGED
        and (
            request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        )
        and request.topic_partitions is not None
    )


def _owned(request: ConsumerGroupHeartbeatRequest) -> Assignment | None:
    if request.topic_partitions is None:
        return None
    owned: dict[UUID, frozenset[int]] = {}
    for topic in request.topic_partitions:
        owned[topic.topic_id] = owned.get(topic.topic_id, frozenset()).union(topic.partitions)
    return owned


def _assignment(assigned: EpochAssignment) -> ConsumerGroupHeartbeatResponse.Assignment:
    return _Response.Assignment(
        topic_partitions=[
            _Response.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in assigned.items()
        ]
    )
