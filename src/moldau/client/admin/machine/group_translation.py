"""What responses about groups mean, as values."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from moldau.client.admin.acl_values import operations_of
from moldau.client.admin.group_values import (
    ClassicGroupDescription,
    ClassicGroupState,
    ConsumerGroupDescription,
    GroupState,
    GroupType,
    MemberAssignment,
    MemberDescription,
    ShareGroupDescription,
    ShareMemberAssignment,
    ShareMemberDescription,
    StreamsEndpoint,
    StreamsGroupDescription,
    StreamsGroupMemberAssignment,
    StreamsGroupMemberDescription,
    StreamsGroupSubtopologyDescription,
    StreamsGroupTaskIds,
    StreamsGroupTopicInfo,
    TaskOffset,
)
from moldau.client.errors import IllegalStateError, KafkaError
from moldau.client.topics import Node, TopicPartition
from moldau.wire.codec import decode_prefix
from moldau.wire.errors import WireError
from moldau.wire.messages import (
    ConsumerGroupDescribeResponse,
    ConsumerProtocolAssignment,
    DescribeGroupsResponse,
    ShareGroupDescribeResponse,
    StreamsGroupDescribeResponse,
)

__all__ = [
    "CONSUMER_PROTOCOL",
    "assigned_partitions",
    "classic_group",
    "consumer_group",
    "consumer_group_of_classic",
    "share_group",
    "streams_group",
]

CONSUMER_PROTOCOL = "consumer"
_VERSION = struct.Struct(">h")


def consumer_group(
    found: ConsumerGroupDescribeResponse.DescribedGroup, coordinator: Node
) -> ConsumerGroupDescription:
    """A group of the new protocol."""
    members = tuple(
        MemberDescription(
            each.member_id,
            each.instance_id,
            each.rack_id,
            each.client_id,
            each.client_host,
            MemberAssignment(_partitions(each.assignment)),
            MemberAssignment(_partitions(each.target_assignment)),
            each.member_epoch,
            None if each.member_type < 0 else each.member_type == 1,
        )
        for each in found.members
    )
    return ConsumerGroupDescription(
        found.group_id,
        False,
        members,
        found.assignor_name,
        GroupType.CONSUMER,
        GroupState.parse(found.group_state),
        coordinator,
        operations_of(found.authorized_operations),
        found.group_epoch,
        found.assignment_epoch,
    )


def consumer_group_of_classic(
    found: DescribeGroupsResponse.DescribedGroup, coordinator: Node
) -> ConsumerGroupDescription:
    """A consumer group of the classic protocol, or one that has only offsets."""
    return ConsumerGroupDescription(
        found.group_id,
        not found.protocol_type,
        tuple(_classic_member(each, of_consumers=True) for each in found.members),
        found.protocol_data,
        GroupType.CLASSIC,
        GroupState.parse(found.group_state),
        coordinator,
        operations_of(found.authorized_operations),
    )


def classic_group(
    found: DescribeGroupsResponse.DescribedGroup, coordinator: Node
) -> ClassicGroupDescription:
    """A group of the classic protocol, whatever it is used for (Connect, for one)."""
    of_consumers = found.protocol_type in (CONSUMER_PROTOCOL, "")
    return ClassicGroupDescription(
        found.group_id,
        found.protocol_type,
        found.protocol_data,
        tuple(_classic_member(each, of_consumers=of_consumers) for each in found.members),
        ClassicGroupState.parse(found.group_state),
        coordinator,
        operations_of(found.authorized_operations),
    )


def share_group(
    found: ShareGroupDescribeResponse.DescribedGroup, coordinator: Node
) -> ShareGroupDescription:
    members = tuple(
        ShareMemberDescription(
            each.member_id,
            each.rack_id,
            each.client_id,
            each.client_host,
            ShareMemberAssignment(_partitions(each.assignment)),
            each.member_epoch,
        )
        for each in found.members
    )
    return ShareGroupDescription(
        found.group_id,
        members,
        GroupState.parse(found.group_state),
        coordinator,
        found.group_epoch,
        found.assignment_epoch,
        operations_of(found.authorized_operations),
    )


def streams_group(
    found: StreamsGroupDescribeResponse.DescribedGroup, coordinator: Node
) -> StreamsGroupDescription | KafkaError:
    """A streams group, or what is wrong with it."""
    topology = found.topology
    if topology is None:
        return IllegalStateError(f"the topology of the streams group {found.group_id} is missing")
    return StreamsGroupDescription(
        found.group_id,
        found.group_epoch,
        found.assignment_epoch,
        topology.epoch,
        tuple(map(_subtopology, topology.subtopologies or ())),
        tuple(map(_streams_member, found.members)),
        GroupState.parse(found.group_state),
        coordinator,
        operations_of(found.authorized_operations),
    )


def _classic_member(
    found: DescribeGroupsResponse.DescribedGroupMember, *, of_consumers: bool
) -> MemberDescription:
    assigned = assigned_partitions(found.member_assignment) if of_consumers else frozenset()
    return MemberDescription(
        found.member_id,
        found.group_instance_id,
        None,
        found.client_id,
        found.client_host,
        MemberAssignment(assigned),
        metadata=found.member_metadata,
    )


def assigned_partitions(data: bytes) -> frozenset[TopicPartition]:
    """The partitions in a member's assignment of the consumer protocol."""
    if len(data) < _VERSION.size:
        return frozenset()
    (version,) = _VERSION.unpack_from(data)
    try:
        # A later version begins like the last one that is known.
        known = min(max(version, 0), ConsumerProtocolAssignment.HIGHEST_VERSION)
        assignment, _ = decode_prefix(ConsumerProtocolAssignment, known, data, _VERSION.size)
    except WireError:
        return frozenset()
    return frozenset(
        TopicPartition(each.topic, partition)
        for each in assignment.assigned_partitions
        for partition in each.partitions
    )


def _partitions(
    assignment: ConsumerGroupDescribeResponse.Assignment | ShareGroupDescribeResponse.Assignment,
) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(each.topic_name, partition)
        for each in assignment.topic_partitions
        for partition in each.partitions
    )


def _subtopology(
    found: StreamsGroupDescribeResponse.Subtopology,
) -> StreamsGroupSubtopologyDescription:
    return StreamsGroupSubtopologyDescription(
        found.subtopology_id,
        tuple(found.source_topics),
        tuple(found.repartition_sink_topics),
        _topics(found.state_changelog_topics),
        _topics(found.repartition_source_topics),
    )


def _topics(
    found: Iterable[StreamsGroupDescribeResponse.TopicInfo],
) -> dict[str, StreamsGroupTopicInfo]:
    return {
        each.name: StreamsGroupTopicInfo(
            each.partitions,
            each.replication_factor,
            {entry.key: entry.value for entry in each.topic_configs},
        )
        for each in found
    }


def _streams_member(found: StreamsGroupDescribeResponse.Member) -> StreamsGroupMemberDescription:
    endpoint = found.user_endpoint
    return StreamsGroupMemberDescription(
        found.member_id,
        found.member_epoch,
        found.instance_id,
        found.rack_id,
        found.client_id,
        found.client_host,
        found.topology_epoch,
        found.process_id,
        None if endpoint is None else StreamsEndpoint(endpoint.host, endpoint.port),
        {each.key: each.value for each in found.client_tags},
        tuple(map(_task_offset, found.task_offsets)),
        tuple(map(_task_offset, found.task_end_offsets)),
        _tasks(found.assignment),
        _tasks(found.target_assignment),
        found.is_classic,
    )


def _task_offset(found: StreamsGroupDescribeResponse.TaskOffset) -> TaskOffset:
    return TaskOffset(found.subtopology_id, found.partition, found.offset)


def _tasks(found: StreamsGroupDescribeResponse.Assignment) -> StreamsGroupMemberAssignment:
    return StreamsGroupMemberAssignment(
        _task_ids(found.active_tasks),
        _task_ids(found.standby_tasks),
        _task_ids(found.warmup_tasks),
    )


def _task_ids(
    found: Iterable[StreamsGroupDescribeResponse.TaskIds],
) -> tuple[StreamsGroupTaskIds, ...]:
    return tuple(StreamsGroupTaskIds(each.subtopology_id, tuple(each.partitions)) for each in found)
