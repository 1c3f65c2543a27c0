"""What one learns about groups of all kinds, and the offsets they keep."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from moldau.client.admin.acl_values import AclOperation
from moldau.client.admin.enums import NamedEnum
from moldau.client.topics import Node, TopicPartition

__all__ = [
    "ClassicGroupDescription",
    "ClassicGroupState",
    "ConsumerGroupDescription",
    "GroupListing",
    "GroupState",
    "GroupType",
    "ListConsumerGroupOffsetsSpec",
    "ListShareGroupOffsetsSpec",
    "ListStreamsGroupOffsetsSpec",
    "MemberAssignment",
    "MemberDescription",
    "MemberToRemove",
    "ShareGroupDescription",
    "ShareMemberAssignment",
    "ShareMemberDescription",
    "SharePartitionOffsetInfo",
    "StreamsEndpoint",
    "StreamsGroupDescription",
    "StreamsGroupMemberAssignment",
    "StreamsGroupMemberDescription",
    "StreamsGroupSubtopologyDescription",
    "StreamsGroupTaskIds",
    "StreamsGroupTopicInfo",
    "TaskOffset",
]


class GroupState(NamedEnum):
    UNKNOWN = "Unknown"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    NOT_READY = "NotReady"


class ClassicGroupState(NamedEnum):
    UNKNOWN = "Unknown"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
    EMPTY = "Empty"


class GroupType(NamedEnum):
    UNKNOWN = "Unknown"
    CONSUMER = "Consumer"
    CLASSIC = "Classic"
    SHARE = "Share"
    STREAMS = "Streams"


class GroupListing(NamedTuple):
    """A group; an old broker returns neither its type nor its state."""

    group_id: str
    type: GroupType | None
    protocol: str
    group_state: GroupState | None

    @property
    def is_simple_consumer_group(self) -> bool:
        """Whether it has only offsets that were committed without ever joining it."""
        return self.type is GroupType.CLASSIC and not self.protocol


class MemberAssignment(NamedTuple):
    topic_partitions: frozenset[TopicPartition] = frozenset()


class MemberDescription(NamedTuple):
    """A member. What only the new protocol has is None for members of the classic one."""

    consumer_id: str
    group_instance_id: str | None
    rack_id: str | None
    client_id: str
    host: str
    assignment: MemberAssignment
    target_assignment: MemberAssignment | None = None
    member_epoch: int | None = None
    #: Whether it speaks the new protocol in a group that does.
    upgraded: bool | None = None
    #: What a member of the classic protocol said when it joined, as its assignor reads it.
    metadata: bytes = b""


class ConsumerGroupDescription(NamedTuple):
    group_id: str
    is_simple_consumer_group: bool
    members: tuple[MemberDescription, ...]
    partition_assignor: str
    type: GroupType
    group_state: GroupState
    coordinator: Node
    authorized_operations: frozenset[AclOperation] | None = None
    group_epoch: int | None = None
    target_assignment_epoch: int | None = None


class ClassicGroupDescription(NamedTuple):
    group_id: str
    protocol: str
    protocol_data: str
    members: tuple[MemberDescription, ...]
    state: ClassicGroupState
    coordinator: Node
    authorized_operations: frozenset[AclOperation] | None = None

    @property
    def is_simple_consumer_group(self) -> bool:
        return not self.protocol


class ShareMemberAssignment(NamedTuple):
    topic_partitions: frozenset[TopicPartition] = frozenset()


class ShareMemberDescription(NamedTuple):
    consumer_id: str
    rack_id: str | None
    client_id: str
    host: str
    assignment: ShareMemberAssignment
    member_epoch: int


class ShareGroupDescription(NamedTuple):
    group_id: str
    members: tuple[ShareMemberDescription, ...]
    group_state: GroupState
    coordinator: Node
    group_epoch: int
    target_assignment_epoch: int
    authorized_operations: frozenset[AclOperation] | None = None


class StreamsGroupTopicInfo(NamedTuple):
    partitions: int
    replication_factor: int
    topic_configs: Mapping[str, str]


class StreamsGroupSubtopologyDescription(NamedTuple):
    subtopology_id: str
    source_topics: tuple[str, ...]
    repartition_sink_topics: tuple[str, ...]
    state_changelog_topics: Mapping[str, StreamsGroupTopicInfo]
    repartition_source_topics: Mapping[str, StreamsGroupTopicInfo]


class StreamsGroupTaskIds(NamedTuple):
    subtopology_id: str
    partitions: tuple[int, ...]


class StreamsGroupMemberAssignment(NamedTuple):
    active_tasks: tuple[StreamsGroupTaskIds, ...] = ()
    standby_tasks: tuple[StreamsGroupTaskIds, ...] = ()
    warmup_tasks: tuple[StreamsGroupTaskIds, ...] = ()


class StreamsEndpoint(NamedTuple):
    host: str
    port: int


class TaskOffset(NamedTuple):
    subtopology_id: str
    partition: int
    offset: int


class StreamsGroupMemberDescription(NamedTuple):
    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topology_epoch: int
    process_id: str
    user_endpoint: StreamsEndpoint | None
    client_tags: Mapping[str, str]
    task_offsets: tuple[TaskOffset, ...]
    task_end_offsets: tuple[TaskOffset, ...]
    assignment: StreamsGroupMemberAssignment
    target_assignment: StreamsGroupMemberAssignment
    is_classic: bool


class StreamsGroupDescription(NamedTuple):
    group_id: str
    group_epoch: int
    target_assignment_epoch: int
    topology_epoch: int
    subtopologies: tuple[StreamsGroupSubtopologyDescription, ...]
    members: tuple[StreamsGroupMemberDescription, ...]
    group_state: GroupState
    coordinator: Node
    authorized_operations: frozenset[AclOperation] | None = None


class ListConsumerGroupOffsetsSpec(NamedTuple):
    """Which partitions' offsets are wanted; None for all that the group has."""

    topic_partitions: Collection[TopicPartition] | None = None


class ListStreamsGroupOffsetsSpec(NamedTuple):
    topic_partitions: Collection[TopicPartition] | None = None


class ListShareGroupOffsetsSpec(NamedTuple):
    topic_partitions: Collection[TopicPartition] | None = None


class SharePartitionOffsetInfo(NamedTuple):
    """Where a share group starts in a partition, and how many records are left to it."""

    start_offset: int
    leader_epoch: int | None = None
    lag: int | None = None


class MemberToRemove(NamedTuple):
    """A static member, by its `group.instance.id`."""

    group_instance_id: str
