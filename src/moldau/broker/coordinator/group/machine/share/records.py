"""The records of share groups."""

from __future__ import annotations

from moldau.broker.coordinator.group.machine.share.member import Assignment, ShareMember
from moldau.broker.coordinator.group.machine.share.states import PartitionStates
from moldau.broker.coordinator.machine.decision import CoordinatorRecord
from moldau.wire.messages import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)

_STABLE = 0


def member_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    return CoordinatorRecord(
        ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        ShareGroupMemberMetadataValue(
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.subscribed),
        ),
    )


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    return CoordinatorRecord(
        ShareGroupMetadataKey(group_id=group_id),
        ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def target_record(group_id: str, member_id: str, target: Assignment) -> CoordinatorRecord:
    return CoordinatorRecord(
        ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        ShareGroupTargetAssignmentMemberValue(
            topic_partitions=[
                ShareGroupTargetAssignmentMemberValue.TopicPartition(
                    topic_id=topic_id, partitions=sorted(partitions)
                )
                for topic_id, partitions in target.items()
            ]
        ),
    )


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    return CoordinatorRecord(
        ShareGroupTargetAssignmentMetadataKey(group_id=group_id),
        ShareGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=timestamp_ms
        ),
    )


def current_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    return CoordinatorRecord(
        ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        ShareGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=_STABLE,
            assigned_partitions=[
                ShareGroupCurrentMemberAssignmentValue.TopicPartitions(
                    topic_id=topic_id, partitions=sorted(partitions)
                )
                for topic_id, partitions in member.assigned.items()
            ],
        ),
    )


def states_record(group_id: str, states: PartitionStates) -> CoordinatorRecord:
    return CoordinatorRecord(
        ShareGroupStatePartitionMetadataKey(group_id=group_id), states.as_value()
    )


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """In the order in which a reader expects a member to leave."""
    return [
        CoordinatorRecord(
            ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None
        ),
        CoordinatorRecord(
            ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None
        ),
        CoordinatorRecord(
            ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None
        ),
    ]


def group_tombstones(group_id: str) -> list[CoordinatorRecord]:
    """Of a group without members; the last one removes it."""
    return [
        CoordinatorRecord(ShareGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        CoordinatorRecord(ShareGroupStatePartitionMetadataKey(group_id=group_id), None),
        CoordinatorRecord(ShareGroupMetadataKey(group_id=group_id), None),
    ]
