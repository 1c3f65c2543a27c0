"""A consumer group as ConsumerGroupDescribe shows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from moldau.broker.coordinator.group.machine.consumer.context import ConsumerContext
from moldau.broker.coordinator.group.machine.consumer.group import ConsumerGroup
from moldau.broker.coordinator.group.machine.consumer.member import ConsumerMember
from moldau.broker.coordinator.machine.topics import ClusterTopics
from moldau.wire.messages import ConsumerGroupDescribeResponse

_Group = ConsumerGroupDescribeResponse.DescribedGroup
_Member = ConsumerGroupDescribeResponse.Member
_Assignment = ConsumerGroupDescribeResponse.Assignment
_TopicPartitions = ConsumerGroupDescribeResponse.TopicPartitions

_CLASSIC_MEMBER = 0
_CONSUMER_MEMBER = 1


def described(group: ConsumerGroup, context: ConsumerContext) -> _Group:
    return _Group(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor() or context.default_assignor,
        members=[_member(group, each, context.topics) for each in group.members.values()],
    )


def _member(group: ConsumerGroup, member: ConsumerMember, topics: ClusterTopics) -> _Member:
    # What it is about to give up is still its own until it has done so.
    current: dict[UUID, set[int]] = {}
    for part in (member.assigned, member.pending_revocation):
        for topic_id, partitions in part.items():
            current.setdefault(topic_id, set()).update(partitions)
    return _Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment(current, topics),
        target_assignment=_assignment(group.target.get(member.member_id, {}), topics),
        member_type=_CLASSIC_MEMBER if member.uses_classic_protocol else _CONSUMER_MEMBER,
    )


def _assignment(partitions: Mapping[UUID, Iterable[int]], topics: ClusterTopics) -> _Assignment:
    """With names; topics that are gone have none and are left out."""
    shown = []
    for topic_id, indexes in sorted(partitions.items()):
        facts = topics.topic_by_id(topic_id)
        if facts is not None:
            shown.append(
                _TopicPartitions(
                    topic_id=topic_id, topic_name=facts.name, partitions=sorted(indexes)
                )
            )
    return _Assignment(topic_partitions=shown)
