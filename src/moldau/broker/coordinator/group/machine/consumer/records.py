"""The records of a consumer group, as Kafka 4.3 writes them.

Every kind is written in version 0; what came later has tagged fields. Lists within records
are sorted, so that equal states have equal records.
"""

from __future__ import annotations

from uuid import UUID

from moldau.broker.coordinator.group.machine.consumer.member import (
    Assignment,
    ClassicMemberMetadata,
    ConsumerMember,
    EpochAssignment,
)
from moldau.broker.coordinator.group.machine.consumer.subscriptions import ResolvedRegularExpression
from moldau.broker.coordinator.machine.decision import CoordinatorRecord
from moldau.wire.messages import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

_Current = ConsumerGroupCurrentMemberAssignmentValue
_Member = ConsumerGroupMemberMetadataValue
_Target = ConsumerGroupTargetAssignmentMemberValue


def member_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    value = _Member(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=_classic_to_record(member.classic),
    )
    return CoordinatorRecord(_member_key(group_id, member.member_id), value)


def member_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(_member_key(group_id, member_id), None)


def group_epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    return CoordinatorRecord(
        ConsumerGroupMetadataKey(group_id=group_id),
        ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def group_epoch_tombstone(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(ConsumerGroupMetadataKey(group_id=group_id), None)


def partition_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """Removes what releases before 4.1 stored instead of the metadata hash."""
    return CoordinatorRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def target_record(group_id: str, member_id: str, assignment: Assignment) -> CoordinatorRecord:
    value = _Target(
        topic_partitions=[
            _Target.TopicPartition(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in sorted(assignment.items())
        ]
    )
    return CoordinatorRecord(_target_key(group_id, member_id), value)


def target_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(_target_key(group_id, member_id), None)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    return CoordinatorRecord(
        ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=timestamp_ms
        ),
    )


def target_epoch_tombstone(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None)


def current_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    value = _Current(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=_epochs_to_record(member.assigned),
        partitions_pending_revocation=_epochs_to_record(member.pending_revocation),
    )
    return CoordinatorRecord(_current_key(group_id, member.member_id), value)


def current_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(_current_key(group_id, member_id), None)


def regex_record(
    group_id: str, regex: str, resolved: ResolvedRegularExpression
) -> CoordinatorRecord:
    return CoordinatorRecord(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex),
        ConsumerGroupRegularExpressionValue(
            topics=sorted(resolved.topics),
            version=resolved.version,
            timestamp=resolved.timestamp_ms,
        ),
    )


def regex_tombstone(group_id: str, regex: str) -> CoordinatorRecord:
    return CoordinatorRecord(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None
    )


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """All that removes a member; a Kafka that replays them insists on this order."""
    return [
        current_tombstone(group_id, member_id),
        target_tombstone(group_id, member_id),
        member_tombstone(group_id, member_id),
    ]


# Reading them back.


def epochs_of(topics: list[_Current.TopicPartitions], member_epoch: int) -> EpochAssignment:
    """Partitions with their epochs; records of releases before 4.3 have none of these."""
    found: dict[UUID, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is not None and len(epochs) == len(topic.partitions):
            found[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
        else:
            found[topic.topic_id] = dict.fromkeys(topic.partitions, max(member_epoch, 0))
    return found


def target_of(value: ConsumerGroupTargetAssignmentMemberValue) -> Assignment:
    return {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}


def classic_of(value: ConsumerGroupMemberMetadataValue) -> ClassicMemberMetadata | None:
    classic = value.classic_member_metadata
    if classic is None:
        return None
    return ClassicMemberMetadata(
        classic.session_timeout_ms,
        tuple((protocol.name, protocol.metadata) for protocol in classic.supported_protocols),
    )


def _classic_to_record(
    classic: ClassicMemberMetadata | None,
) -> ConsumerGroupMemberMetadataValue.ClassicMemberMetadata | None:
    if classic is None:
        return None
    return _Member.ClassicMemberMetadata(
        session_timeout_ms=classic.session_timeout_ms,
        supported_protocols=[
            _Member.ClassicProtocol(name=name, metadata=metadata)
            for name, metadata in classic.supported_protocols
        ],
    )


def _epochs_to_record(assigned: EpochAssignment) -> list[_Current.TopicPartitions]:
    topics = []
    for topic_id, epochs in sorted(assigned.items()):
        partitions = sorted(epochs)
        topics.append(
            _Current.TopicPartitions(
                topic_id=topic_id,
                partitions=partitions,
                assignment_epochs=[epochs[partition] for partition in partitions],
            )
        )
    return topics


def _member_key(group_id: str, member_id: str) -> ConsumerGroupMemberMetadataKey:
    return ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)


def _target_key(group_id: str, member_id: str) -> ConsumerGroupTargetAssignmentMemberKey:
    return ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)


def _current_key(group_id: str, member_id: str) -> ConsumerGroupCurrentMemberAssignmentKey:
    return ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
