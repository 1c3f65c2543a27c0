"""A classic group becomes a consumer group when a member of the consumer protocol joins.

Decided here: whether that may happen, and what the group and its members are afterwards.
Nothing is changed yet: the records are written, and the returned group is what they will
make when they are replayed, so that the member that joins can be decided upon with it. If
that fails, the classic group lives on as if nothing had been.
"""

from __future__ import annotations

from moldau.broker.coordinator.group.machine.classic import ClassicGroup
from moldau.broker.coordinator.group.machine.config import GroupConfig
from moldau.broker.coordinator.group.machine.consumer import records
from moldau.broker.coordinator.group.machine.consumer.group import ConsumerGroup
from moldau.broker.coordinator.group.machine.consumer.member import (
    Assignment,
    ClassicMemberMetadata,
    ConsumerMember,
    MemberState,
    with_epoch,
)
from moldau.broker.coordinator.group.machine.consumer.timers import MemberSessionTimer
from moldau.broker.coordinator.group.machine.members import ClassicMember
from moldau.broker.coordinator.group.machine.metadata_hash import group_hash, topic_hash
from moldau.broker.coordinator.group.machine.migration import embedded
from moldau.broker.coordinator.machine.decision import Outbox
from moldau.broker.coordinator.machine.topics import ClusterTopics
from moldau.wire.errors import ApiError, ErrorCode, WireError
from moldau.wire.messages import JoinGroupResponse, SyncGroupResponse

_POLICIES = ("bidirectional", "upgrade")


def upgrade(
    classic: ClassicGroup, topics: ClusterTopics, config: GroupConfig, out: Outbox
) -> ConsumerGroup:
    """Write the records that turn a group with members into a consumer group, and return that.

    To be called for a heartbeat of a new member before anything else is decided about it; a
    refusal says that there is no such consumer group.
    """
    _check_policy(classic, config)
    group = _converted(classic, topics)
    _interrupt(classic, out)
    out.records.extend(classic.tombstones())
    _write(group, out)
    for member in group.members.values():
        if member.classic is not None:
            out.schedule(
                MemberSessionTimer(group.group_id, member.member_id),
                member.classic.session_timeout_ms,
            )
    # Timers of the classic group are left alone: without the group they do nothing, and if
    # the write fails it still needs them.
    return group


def _check_policy(classic: ClassicGroup, config: GroupConfig) -> None:
    if config.group_consumer_migration_policy.lower() not in _POLICIES:
        raise _refusal(classic, "online upgrade is disabled")
    if not classic.uses_consumer_protocol:
        raise _refusal(classic, "the group does not use the consumer embedded protocol")
    if len(classic.members) > config.group_consumer_max_size:
        raise _refusal(classic, "the group size exceeds the consumer group maximum size")


def _refusal(classic: ClassicGroup, reason: str) -> ApiError:
    return ApiError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {classic.group_id} to consumer group because {reason}.",
    )


def _converted(classic: ClassicGroup, topics: ClusterTopics) -> ConsumerGroup:
    """All members have what they were given last; a rebalance under way is forgotten."""
    group = ConsumerGroup(classic.group_id)
    group.group_epoch = group.assignment_epoch = classic.generation
    for classic_member in classic.members.values():
        try:
            member, assigned = _member(classic, classic_member, topics)
        except WireError as error:
            raise _refusal(classic, "the embedded consumer protocol is malformed") from error
        _check_sole_owner(group, member)
        group.put_member(member)
        group.put_target(member.member_id, assigned)
    facts = map(topics.topic, group.subscriptions.topics())
    group.metadata_hash = group_hash(
        {each.name: topic_hash(each) for each in facts if each is not None}
    )
    return group


def _check_sole_owner(group: ConsumerGroup, member: ConsumerMember) -> None:
    """A classic leader may give a partition to many; in a consumer group it has one owner."""
    for topic_id, partitions in member.assigned.items():
        shared = partitions.keys() & group.owners.get(topic_id, {}).keys()
        if shared:
            # Kafka fails here too, with this error.
            raise ApiError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"Cannot upgrade classic group {group.group_id} to consumer group because "
                f"partitions {sorted(shared)} of topic {topic_id} are assigned to several members: "
                "switch to a default assignor first.",
            )


def _member(
    classic: ClassicGroup, member: ClassicMember, topics: ClusterTopics
) -> tuple[ConsumerMember, Assignment]:
    assigned: Assignment = {}
    if member.assignment:
        assignment = embedded.read_assignment(member.assignment)
        if assignment.user_data:
            raise _refusal(
                classic,
                "an unsupported custom assignor is in use: its user data would be lost. Switch "
                "to a default assignor before re-attempting the upgrade",
            )
        assigned = embedded.by_topic_id(assignment.assigned_partitions, topics)
    # In its very first rebalance the group has no protocol yet; a member's subscription is
    # the same in all of them.
    protocol = member.protocols[0][0] if classic.protocol is None else classic.protocol
    subscription = embedded.read_subscription(member.metadata(protocol))
    epoch = classic.generation
    consumer_member = ConsumerMember(
        member.member_id,
        member_epoch=epoch,
        previous_member_epoch=epoch,
        state=MemberState.STABLE,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id or None,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=frozenset(subscription.topics),
        assigned=with_epoch(assigned, epoch),
        classic=ClassicMemberMetadata(member.session_timeout_ms, member.protocols),
    )
    return consumer_member, assigned


def _interrupt(classic: ClassicGroup, out: Outbox) -> None:
    """Have waiting members join again: the new member causes a rebalance in any case."""
    error = ErrorCode.REBALANCE_IN_PROGRESS
    for member in classic.members.values():
        if member.awaiting_join is not None:
            response = JoinGroupResponse(error_code=error, member_id=member.member_id)
            out.answer(member.awaiting_join, response)
        if member.awaiting_sync is not None:
            out.answer(member.awaiting_sync, SyncGroupResponse(error_code=error))


def _write(group: ConsumerGroup, out: Outbox) -> None:
    group_id = group.group_id
    members = group.members.values()
    out.records += (records.member_record(group_id, each) for each in members)
    out.write(records.group_epoch_record(group_id, group.group_epoch, group.metadata_hash))
    out.records += (
        records.target_record(group_id, member_id, assigned)
        for member_id, assigned in group.target.items()
    )
    # It is unknown when the classic leader made it.
    out.write(records.target_epoch_record(group_id, group.assignment_epoch, 0))
    out.records += (records.current_record(group_id, each) for each in members)
