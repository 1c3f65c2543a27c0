"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class LegacyOffsetCommitKey(Message):
    """group-key, versions 0."""

    KIND = "group-key"
    TYPE = 0
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("group", "topic", "partition",)
    FIELDS = (
        ('group', 'string', 0, 0, None, None, '', False),
        ('topic', 'string', 0, 0, None, None, '', False),
        ('partition', 'int32', 0, 0, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        group: str = '',
        topic: str = '',
        partition: int = 0,
    ) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition
        self.unknown_tagged_fields = None


class LegacyOffsetCommitValue(Message):
    """group-value, versions 0."""

    KIND = "group-value"
    TYPE = 0
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("offset", "metadata", "commit_timestamp",)
    FIELDS = (
        ('offset', 'int64', 0, 0, None, None, 0, False),
        ('metadata', 'string', 0, 0, None, None, '', False),
        ('commit_timestamp', 'int64', 0, 0, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        offset: int = 0,
        metadata: str = '',
        commit_timestamp: int = 0,
    ) -> None:
        self.offset = offset
        self.metadata = metadata
        self.commit_timestamp = commit_timestamp
        self.unknown_tagged_fields = None


class OffsetCommitKey(Message):
    """group-key, versions 0."""

    KIND = "group-key"
    TYPE = 1
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("group", "topic", "partition",)
    FIELDS = (
        ('group', 'string', 0, 0, None, None, '', False),
        ('topic', 'string', 0, 0, None, None, '', False),
        ('partition', 'int32', 0, 0, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        group: str = '',
        topic: str = '',
        partition: int = 0,
    ) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition
        self.unknown_tagged_fields = None


class OffsetCommitValue(Message):
    """group-value, versions 0-4."""

    KIND = "group-value"
    TYPE = 1
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 4
    FLEXIBLE_FROM = 4
    __slots__ = ("offset", "leader_epoch", "metadata", "commit_timestamp", "expire_timestamp", "topic_id",)
    FIELDS = (
        ('offset', 'int64', 0, 32767, None, None, 0, False),
        ('leader_epoch', 'int32', 3, 32767, None, None, -1, True),
        ('metadata', 'string', 0, 32767, None, None, '', False),
        ('commit_timestamp', 'int64', 0, 32767, None, None, 0, False),
        ('expire_timestamp', 'int64', 1, 1, None, None, -1, True),
        ('topic_id', 'uuid', 4, 32767, None, (0, 4, 32767), (), True),
    )

    def __init__(
        self,
        *,
        offset: int = 0,
        leader_epoch: int = -1,
        metadata: str = '',
        commit_timestamp: int = 0,
        expire_timestamp: int = -1,
        topic_id: UUID = ZERO_UUID,
    ) -> None:
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.metadata = metadata
        self.commit_timestamp = commit_timestamp
        self.expire_timestamp = expire_timestamp
        self.topic_id = topic_id
        self.unknown_tagged_fields = None


class GroupMetadataKey(Message):
    """group-key, versions 0."""

    KIND = "group-key"
    TYPE = 2
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("group",)
    FIELDS = (
        ('group', 'string', 0, 0, None, None, '', False),
    )

    def __init__(
        self,
        *,
        group: str = '',
    ) -> None:
        self.group = group
        self.unknown_tagged_fields = None


class GroupMetadataValue(Message):
    """group-value, versions 0-4."""

    KIND = "group-value"
    TYPE = 2
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 4
    FLEXIBLE_FROM = 4
    __slots__ = ("protocol_type", "generation", "protocol", "leader", "current_state_timestamp", "members",)
    FIELDS = (
        ('protocol_type', 'string', 0, 32767, None, None, '', False),
        ('generation', 'int32', 0, 32767, None, None, 0, False),
        ('protocol', 'string', 0, 32767, (0, 32767), None, '', False),
        ('leader', 'string', 0, 32767, (0, 32767), None, '', False),
        ('current_state_timestamp', 'int64', 2, 32767, None, None, -1, True),
        ('members', '[]MemberMetadata', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        protocol_type: str = '',
        generation: int = 0,
        protocol: str | None = '',
        leader: str | None = '',
        current_state_timestamp: int = -1,
        members: list[GroupMetadataValue.MemberMetadata] = UNSET,
    ) -> None:
        self.protocol_type = protocol_type
        self.generation = generation
        self.protocol = protocol
        self.leader = leader
        self.current_state_timestamp = current_state_timestamp
        self.members = [] if members is UNSET else members
        self.unknown_tagged_fields = None

    class MemberMetadata(Message):
        __slots__ = ("member_id", "group_instance_id", "client_id", "client_host", "rebalance_timeout", "session_timeout", "subscription", "assignment",)
        FIELDS = (
            ('member_id', 'string', 0, 32767, None, None, '', False),
            ('group_instance_id', 'string', 3, 32767, (3, 32767), None, None, True),
            ('client_id', 'string', 0, 32767, None, None, '', False),
            ('client_host', 'string', 0, 32767, None, None, '', False),
            ('rebalance_timeout', 'int32', 1, 32767, None, None, -1, True),
            ('session_timeout', 'int32', 0, 32767, None, None, 0, False),
            ('subscription', 'bytes', 0, 32767, None, None, b'', False),
            ('assignment', 'bytes', 0, 32767, None, None, b'', False),
        )

        def __init__(
            self,
            *,
            member_id: str = '',
            group_instance_id: str | None = None,
            client_id: str = '',
            client_host: str = '',
            rebalance_timeout: int = -1,
            session_timeout: int = 0,
            subscription: bytes = b'',
            assignment: bytes = b'',
        ) -> None:
            self.member_id = member_id
            self.group_instance_id = group_instance_id
            self.client_id = client_id
            self.client_host = client_host
            self.rebalance_timeout = rebalance_timeout
            self.session_timeout = session_timeout
            self.subscription = subscription
            self.assignment = assignment
            self.unknown_tagged_fields = None


class ConsumerGroupMetadataKey(Message):
    """group-key, versions 0."""

    KIND = "group-key"
    TYPE = 3
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("group_id",)
    FIELDS = (
        ('group_id', 'string', 0, 0, None, None, '', False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
    ) -> None:
        self.group_id = group_id
        self.unknown_tagged_fields = None


class ConsumerGroupMetadataValue(Message):
    """group-value, versions 0."""

    KIND = "group-value"
    TYPE = 3
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("epoch", "metadata_hash",)
    FIELDS = (
        ('epoch', 'int32', 0, 32767, None, None, 0, False),
        ('metadata_hash', 'int64', 0, 32767, None, (0, 0, 32767), 0, False),
    )

    def __init__(
        self,
        *,
        epoch: int = 0,
        metadata_hash: int = 0,
    ) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash
        self.unknown_tagged_fields = None


class ConsumerGroupPartitionMetadataKey(Message):
    """group-key, versions 0."""

    KIND = "group-key"
    TYPE = 4
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("group_id",)
    FIELDS = (
        ('group_id', 'string', 0, 0, None, None, '', False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
    ) -> None:
        self.group_id = group_id
        self.unknown_tagged_fields = None


class ConsumerGroupPartitionMetadataValue(Message):
    """group-value, versions 0."""

    KIND = "group-value"
    TYPE = 4
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("topics",)
    FIELDS = (
        ('topics', '[]TopicMetadata', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        topics: list[ConsumerGroupPartitionMetadataValue.TopicMetadata] = UNSET,
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.unknown_tagged_fields = None

    class TopicMetadata(Message):
        __slots__ = ("topic_id", "topic_name", "num_partitions", "partition_metadata",)
        FIELDS = (
            ('topic_id', 'uuid', 0, 32767, None, None, (), False),
            ('topic_name', 'string', 0, 32767, None, None, '', False),
            ('num_partitions', 'int32', 0, 32767, None, None, 0, False),
            ('partition_metadata', '[]PartitionMetadata', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_id: UUID = ZERO_UUID,
            topic_name: str = '',
            num_partitions: int = 0,
            partition_metadata: list[ConsumerGroupPartitionMetadataValue.PartitionMetadata] = UNSET,
        ) -> None:
            self.topic_id = topic_id
            self.topic_name = topic_name
            self.num_partitions = num_partitions
            self.partition_metadata = [] if partition_metadata is UNSET else partition_metadata
            self.unknown_tagged_fields = None

    class PartitionMetadata(Message):
        __slots__ = ("partition", "racks",)
        FIELDS = (
            ('partition', 'int32', 0, 32767, None, None, 0, False),
            ('racks', '[]string', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            partition: int = 0,
            racks: list[str] = UNSET,
        ) -> None:
            self.partition = partition
            self.racks = [] if racks is UNSET else racks
            self.unknown_tagged_fields = None


class ConsumerGroupMemberMetadataKey(Message):
    """group-key, versions 0."""

    KIND = "group-key"
    TYPE = 5
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("group_id", "member_id",)
    FIELDS = (
        ('group_id', 'string', 0, 0, None, None, '', False),
        ('member_id', 'string', 0, 0, None, None, '', False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
        member_id: str = '',
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.unknown_tagged_fields = None


class ConsumerGroupMemberMetadataValue(Message):
    """group-value, versions 0."""

    KIND = "group-value"
    TYPE = 5
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("instance_id", "rack_id", "client_id", "client_host", "subscribed_topic_names", "subscribed_topic_regex", "rebalance_timeout_ms", "server_assignor", "classic_member_metadata",)
    FIELDS = (
        ('instance_id', 'string', 0, 32767, (0, 32767), None, '', False),
        ('rack_id', 'string', 0, 32767, (0, 32767), None, '', False),
        ('client_id', 'string', 0, 32767, None, None, '', False),
        ('client_host', 'string', 0, 32767, None, None, '', False),
        ('subscribed_topic_names', '[]string', 0, 32767, None, None, (), False),
        ('subscribed_topic_regex', 'string', 0, 32767, (0, 32767), None, '', False),
        ('rebalance_timeout_ms', 'int32', 0, 32767, None, None, -1, False),
        ('server_assignor', 'string', 0, 32767, (0, 32767), None, '', False),
        ('classic_member_metadata', 'ClassicMemberMetadata', 0, 32767, (0, 32767), (0, 0, 32767), (), False),
    )

    def __init__(
        self,
        *,
        instance_id: str | None = '',
        rack_id: str | None = '',
        client_id: str = '',
        client_host: str = '',
        subscribed_topic_names: list[str] = UNSET,
        subscribed_topic_regex: str | None = '',
        rebalance_timeout_ms: int = -1,
        server_assignor: str | None = '',
        classic_member_metadata: ConsumerGroupMemberMetadataValue.ClassicMemberMetadata | None = UNSET,
    ) -> None:
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is UNSET else subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.server_assignor = server_assignor
        self.classic_member_metadata = ConsumerGroupMemberMetadataValue.ClassicMemberMetadata() if classic_member_metadata is UNSET else classic_member_metadata
        self.unknown_tagged_fields = None

    class ClassicMemberMetadata(Message):
        __slots__ = ("session_timeout_ms", "supported_protocols",)
        FIELDS = (
            ('session_timeout_ms', 'int32', 0, 32767, None, None, 0, False),
            ('supported_protocols', '[]ClassicProtocol', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            session_timeout_ms: int = 0,
            supported_protocols: list[ConsumerGroupMemberMetadataValue.ClassicProtocol] = UNSET,
        ) -> None:
            self.session_timeout_ms = session_timeout_ms
            self.supported_protocols = [] if supported_protocols is UNSET else supported_protocols
            self.unknown_tagged_fields = None

    class ClassicProtocol(Message):
        __slots__ = ("name", "metadata",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('metadata', 'bytes', 0, 32767, None, None, b'', False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            metadata: bytes = b'',
        ) -> None:
            self.name = name
            self.metadata = metadata
            self.unknown_tagged_fields = None


class ConsumerGroupTargetAssignmentMetadataKey(Message):
    """group-key, versions 0."""

    KIND = "group-key"
    TYPE = 6
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("group_id",)
    FIELDS = (
        ('group_id', 'string', 0, 0, None, None, '', False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
    ) -> None:
        self.group_id = group_id
        self.unknown_tagged_fields = None


class ConsumerGroupTargetAssignmentMetadataValue(Message):
    """group-value, versions 0."""

    KIND = "group-value"
    TYPE = 6
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("assignment_epoch", "assignment_timestamp",)
    FIELDS = (
        ('assignment_epoch', 'int32', 0, 32767, None, None, 0, False),
        ('assignment_timestamp', 'int64', 0, 32767, None, (0, 0, 32767), 0, True),
    )

    def __init__(
        self,
        *,
        assignment_epoch: int = 0,
        assignment_timestamp: int = 0,
    ) -> None:
        self.assignment_epoch = assignment_epoch
        self.assignment_timestamp = assignment_timestamp
        self.unknown_tagged_fields = None


class ConsumerGroupTargetAssignmentMemberKey(Message):
    """group-key, versions 0."""

    KIND = "group-key"
    TYPE = 7
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("group_id", "member_id",)
    FIELDS = (
        ('group_id', 'string', 0, 0, None, None, '', False),
        ('member_id', 'string', 0, 0, None, None, '', False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
        member_id: str = '',
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.unknown_tagged_fields = None


class ConsumerGroupTargetAssignmentMemberValue(Message):
    """group-value, versions 0."""

    KIND = "group-value"
    TYPE = 7
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("topic_partitions",)
    FIELDS = (
        ('topic_partitions', '[]TopicPartition', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        topic_partitions: list[ConsumerGroupTargetAssignmentMemberValue.TopicPartition] = UNSET,
    ) -> None:
        self.topic_partitions = [] if topic_partitions is UNSET else topic_partitions
        self.unknown_tagged_fields = None

    class TopicPartition(Message):
        __slots__ = ("topic_id", "partitions",)
        FIELDS = (
            ('topic_id', 'uuid', 0, 32767, None, None, (), False),
            ('partitions', '[]int32', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_id: UUID = ZERO_UUID,
            partitions: list[int] = UNSET,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None


class ConsumerGroupCurrentMemberAssignmentKey(Message):
    """group-key, versions 0."""

    KIND = "group-key"
    TYPE = 8
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("group_id", "member_id",)
    FIELDS = (
        ('group_id', 'string', 0, 0, None, None, '', False),
        ('member_id', 'string', 0, 0, None, None, '', False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
        member_id: str = '',
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.unknown_tagged_fields = None


class ConsumerGroupCurrentMemberAssignmentValue(Message):
    """group-value, versions 0."""

    KIND = "group-value"
    TYPE = 8
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("member_epoch", "previous_member_epoch", "state", "assigned_partitions", "partitions_pending_revocation",)
    FIELDS = (
        ('member_epoch', 'int32', 0, 32767, None, None, 0, False),
        ('previous_member_epoch', 'int32', 0, 32767, None, None, 0, False),
        ('state', 'int8', 0, 32767, None, None, 0, False),
        ('assigned_partitions', '[]TopicPartitions', 0, 32767, None, None, (), False),
        ('partitions_pending_revocation', '[]TopicPartitions', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions] = UNSET,
        partitions_pending_revocation: list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions] = UNSET,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.assigned_partitions = [] if assigned_partitions is UNSET else assigned_partitions
        self.partitions_pending_revocation = [] if partitions_pending_revocation is UNSET else partitions_pending_revocation
        self.unknown_tagged_fields = None

    class TopicPartitions(Message):
        __slots__ = ("topic_id", "partitions", "assignment_epochs",)
        FIELDS = (
            ('topic_id', 'uuid', 0, 32767, None, None, (), False),
            ('partitions', '[]int32', 0, 32767, None, None, (), False),
            ('assignment_epochs', '[]int32', 0, 32767, (0, 32767), (0, 0, 32767), (), False),
        )

        def __init__(
            self,
            *,
            topic_id: UUID = ZERO_UUID,
            partitions: list[int] = UNSET,
            assignment_epochs: list[int] | None = UNSET,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self.assignment_epochs = [] if assignment_epochs is UNSET else assignment_epochs
            self.unknown_tagged_fields = None


class ShareGroupMemberMetadataKey(Message):
    """group-key, versions 0."""

    KIND = "group-key"
    TYPE = 10
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("group_id", "member_id",)
    FIELDS = (
        ('group_id', 'string', 0, 0, None, None, '', False),
        ('member_id', 'string', 0, 0, None, None, '', False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
        member_id: str = '',
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.unknown_tagged_fields = None


class ShareGroupMemberMetadataValue(Message):
    """group-value, versions 0."""

    KIND = "group-value"
    TYPE = 10
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("rack_id", "client_id", "client_host", "subscribed_topic_names",)
    FIELDS = (
        ('rack_id', 'string', 0, 32767, (0, 32767), None, '', False),
        ('client_id', 'string', 0, 32767, None, None, '', False),
        ('client_host', 'string', 0, 32767, None, None, '', False),
        ('subscribed_topic_names', '[]string', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        rack_id: str | None = '',
        client_id: str = '',
        client_host: str = '',
        subscribed_topic_names: list[str] = UNSET,
    ) -> None:
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is UNSET else subscribed_topic_names
        self.unknown_tagged_fields = None


class ShareGroupMetadataKey(Message):
    """group-key, versions 0."""

    KIND = "group-key"
    TYPE = 11
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("group_id",)
    FIELDS = (
        ('group_id', 'string', 0, 0, None, None, '', False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
    ) -> None:
        self.group_id = group_id
        self.unknown_tagged_fields = None


class ShareGroupMetadataValue(Message):
    """group-value, versions 0."""

    KIND = "group-value"
    TYPE = 11
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("epoch", "metadata_hash",)
    FIELDS = (
        ('epoch', 'int32', 0, 32767, None, None, 0, False),
        ('metadata_hash', 'int64', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        epoch: int = 0,
        metadata_hash: int = 0,
    ) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash
        self.unknown_tagged_fields = None


class ShareGroupTargetAssignmentMetadataKey(Message):
    """group-key, versions 0."""

    KIND = "group-key"
    TYPE = 12
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("group_id",)
    FIELDS = (
        ('group_id', 'string', 0, 0, None, None, '', False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
    ) -> None:
        self.group_id = group_id
        self.unknown_tagged_fields = None


class ShareGroupTargetAssignmentMetadataValue(Message):
    """group-value, versions 0."""

    KIND = "group-value"
    TYPE = 12
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("assignment_epoch", "assignment_timestamp",)
    FIELDS = (
        ('assignment_epoch', 'int32', 0, 32767, None, None, 0, False),
        ('assignment_timestamp', 'int64', 0, 32767, None, (0, 0, 32767), 0, True),
    )

    def __init__(
        self,
        *,
        assignment_epoch: int = 0,
        assignment_timestamp: int = 0,
    ) -> None:
        self.assignment_epoch = assignment_epoch
        self.assignment_timestamp = assignment_timestamp
        self.unknown_tagged_fields = None


class ShareGroupTargetAssignmentMemberKey(Message):
    """group-key, versions 0."""

    KIND = "group-key"
    TYPE = 13
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("group_id", "member_id",)
    FIELDS = (
        ('group_id', 'string', 0, 0, None, None, '', False),
        ('member_id', 'string', 0, 0, None, None, '', False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
        member_id: str = '',
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.unknown_tagged_fields = None


class ShareGroupTargetAssignmentMemberValue(Message):
    """group-value, versions 0."""

    KIND = "group-value"
    TYPE = 13
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("topic_partitions",)
    FIELDS = (
        ('topic_partitions', '[]TopicPartition', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        topic_partitions: list[ShareGroupTargetAssignmentMemberValue.TopicPartition] = UNSET,
    ) -> None:
        self.topic_partitions = [] if topic_partitions is UNSET else topic_partitions
        self.unknown_tagged_fields = None

    class TopicPartition(Message):
        __slots__ = ("topic_id", "partitions",)
        FIELDS = (
            ('topic_id', 'uuid', 0, 32767, None, None, (), False),
            ('partitions', '[]int32', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_id: UUID = ZERO_UUID,
            partitions: list[int] = UNSET,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None


class ShareGroupCurrentMemberAssignmentKey(Message):
    """group-key, versions 0."""

    KIND = "group-key"
    TYPE = 14
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("group_id", "member_id",)
    FIELDS = (
        ('group_id', 'string', 0, 0, None, None, '', False),
        ('member_id', 'string', 0, 0, None, None, '', False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
        member_id: str = '',
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.unknown_tagged_fields = None


class ShareGroupCurrentMemberAssignmentValue(Message):
    """group-value, versions 0."""

    KIND = "group-value"
    TYPE = 14
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("member_epoch", "previous_member_epoch", "state", "assigned_partitions",)
    FIELDS = (
        ('member_epoch', 'int32', 0, 32767, None, None, 0, False),
        ('previous_member_epoch', 'int32', 0, 32767, None, None, 0, False),
        ('state', 'int8', 0, 32767, None, None, 0, False),
        ('assigned_partitions', '[]TopicPartitions', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[ShareGroupCurrentMemberAssignmentValue.TopicPartitions] = UNSET,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.assigned_partitions = [] if assigned_partitions is UNSET else assigned_partitions
        self.unknown_tagged_fields = None

    class TopicPartitions(Message):
        __slots__ = ("topic_id", "partitions",)
        FIELDS = (
            ('topic_id', 'uuid', 0, 32767, None, None, (), False),
            ('partitions', '[]int32', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_id: UUID = ZERO_UUID,
            partitions: list[int] = UNSET,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None


class ShareGroupStatePartitionMetadataKey(Message):
    """group-key, versions 0."""

    KIND = "group-key"
    TYPE = 15
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("group_id",)
    FIELDS = (
        ('group_id', 'string', 0, 0, None, None, '', False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
    ) -> None:
        self.group_id = group_id
        self.unknown_tagged_fields = None


class ShareGroupStatePartitionMetadataValue(Message):
    """group-value, versions 0."""

    KIND = "group-value"
    TYPE = 15
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("initializing_topics", "initialized_topics", "deleting_topics",)
    FIELDS = (
        ('initializing_topics', '[]TopicPartitionsInfo', 0, 32767, None, None, (), False),
        ('initialized_topics', '[]TopicPartitionsInfo', 0, 32767, None, None, (), False),
        ('deleting_topics', '[]TopicInfo', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        initializing_topics: list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo] = UNSET,
        initialized_topics: list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo] = UNSET,
        deleting_topics: list[ShareGroupStatePartitionMetadataValue.TopicInfo] = UNSET,
    ) -> None:
        self.initializing_topics = [] if initializing_topics is UNSET else initializing_topics
        self.initialized_topics = [] if initialized_topics is UNSET else initialized_topics
        self.deleting_topics = [] if deleting_topics is UNSET else deleting_topics
        self.unknown_tagged_fields = None

    class TopicPartitionsInfo(Message):
        __slots__ = ("topic_id", "topic_name", "partitions",)
        FIELDS = (
            ('topic_id', 'uuid', 0, 32767, None, None, (), False),
            ('topic_name', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]int32', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_id: UUID = ZERO_UUID,
            topic_name: str = '',
            partitions: list[int] = UNSET,
        ) -> None:
            self.topic_id = topic_id
            self.topic_name = topic_name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class TopicInfo(Message):
        __slots__ = ("topic_id", "topic_name",)
        FIELDS = (
            ('topic_id', 'uuid', 0, 32767, None, None, (), False),
            ('topic_name', 'string', 0, 32767, None, None, '', False),
        )

        def __init__(
            self,
            *,
            topic_id: UUID = ZERO_UUID,
            topic_name: str = '',
        ) -> None:
            self.topic_id = topic_id
            self.topic_name = topic_name
            self.unknown_tagged_fields = None


class ConsumerGroupRegularExpressionKey(Message):
    """group-key, versions 0."""

    KIND = "group-key"
    TYPE = 16
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("group_id", "regular_expression",)
    FIELDS = (
        ('group_id', 'string', 0, 0, None, None, '', False),
        ('regular_expression', 'string', 0, 0, None, None, '', False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
        regular_expression: str = '',
    ) -> None:
        self.group_id = group_id
        self.regular_expression = regular_expression
        self.unknown_tagged_fields = None


class ConsumerGroupRegularExpressionValue(Message):
    """group-value, versions 0."""

    KIND = "group-value"
    TYPE = 16
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("topics", "version", "timestamp",)
    FIELDS = (
        ('topics', '[]string', 0, 32767, None, None, (), False),
        ('version', 'int64', 0, 32767, None, None, 0, False),
        ('timestamp', 'int64', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        topics: list[str] = UNSET,
        version: int = 0,
        timestamp: int = 0,
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.version = version
        self.timestamp = timestamp
        self.unknown_tagged_fields = None


class StreamsGroupMetadataKey(Message):
    """group-key, versions 0."""

    KIND = "group-key"
    TYPE = 17
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("group_id",)
    FIELDS = (
        ('group_id', 'string', 0, 0, None, None, '', False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
    ) -> None:
        self.group_id = group_id
        self.unknown_tagged_fields = None


class StreamsGroupMetadataValue(Message):
    """group-value, versions 0."""

    KIND = "group-value"
    TYPE = 17
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("epoch", "metadata_hash", "validated_topology_epoch", "last_assignment_configs",)
    FIELDS = (
        ('epoch', 'int32', 0, 32767, None, None, 0, False),
        ('metadata_hash', 'int64', 0, 32767, None, None, 0, False),
        ('validated_topology_epoch', 'int32', 0, 32767, None, (0, 0, 32767), -1, False),
        ('last_assignment_configs', '[]LastAssignmentConfig', 0, 32767, (0, 32767), (1, 0, 32767), (), False),
    )

    def __init__(
        self,
        *,
        epoch: int = 0,
        metadata_hash: int = 0,
        validated_topology_epoch: int = -1,
        last_assignment_configs: list[StreamsGroupMetadataValue.LastAssignmentConfig] | None = UNSET,
    ) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash
        self.validated_topology_epoch = validated_topology_epoch
        self.last_assignment_configs = [] if last_assignment_configs is UNSET else last_assignment_configs
        self.unknown_tagged_fields = None

    class LastAssignmentConfig(Message):
        __slots__ = ("key", "value",)
        FIELDS = (
            ('key', 'string', 0, 32767, None, None, '', False),
            ('value', 'string', 0, 32767, None, None, '', False),
        )

        def __init__(
            self,
            *,
            key: str = '',
            value: str = '',
        ) -> None:
            self.key = key
            self.value = value
            self.unknown_tagged_fields = None


class StreamsGroupMemberMetadataKey(Message):
    """group-key, versions 0."""

    KIND = "group-key"
    TYPE = 19
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("group_id", "member_id",)
    FIELDS = (
        ('group_id', 'string', 0, 0, None, None, '', False),
        ('member_id', 'string', 0, 0, None, None, '', False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
        member_id: str = '',
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.unknown_tagged_fields = None


class StreamsGroupMemberMetadataValue(Message):
    """group-value, versions 0."""

    KIND = "group-value"
    TYPE = 19
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("instance_id", "rack_id", "client_id", "client_host", "rebalance_timeout_ms", "topology_epoch", "process_id", "user_endpoint", "client_tags",)
    FIELDS = (
        ('instance_id', 'string', 0, 32767, (0, 32767), None, '', False),
        ('rack_id', 'string', 0, 32767, (0, 32767), None, '', False),
        ('client_id', 'string', 0, 32767, None, None, '', False),
        ('client_host', 'string', 0, 32767, None, None, '', False),
        ('rebalance_timeout_ms', 'int32', 0, 32767, None, None, -1, False),
        ('topology_epoch', 'int32', 0, 32767, None, None, 0, False),
        ('process_id', 'string', 0, 32767, None, None, '', False),
        ('user_endpoint', 'Endpoint', 0, 32767, (0, 32767), None, None, False),
        ('client_tags', '[]KeyValue', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        instance_id: str | None = '',
        rack_id: str | None = '',
        client_id: str = '',
        client_host: str = '',
        rebalance_timeout_ms: int = -1,
        topology_epoch: int = 0,
        process_id: str = '',
        user_endpoint: StreamsGroupMemberMetadataValue.Endpoint | None = None,
        client_tags: list[StreamsGroupMemberMetadataValue.KeyValue] = UNSET,
    ) -> None:
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.topology_epoch = topology_epoch
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = [] if client_tags is UNSET else client_tags
        self.unknown_tagged_fields = None

    class Endpoint(Message):
        __slots__ = ("host", "port",)
        FIELDS = (
            ('host', 'string', 0, 32767, None, None, '', False),
            ('port', 'uint16', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            host: str = '',
            port: int = 0,
        ) -> None:
            self.host = host
            self.port = port
            self.unknown_tagged_fields = None

    class KeyValue(Message):
        __slots__ = ("key", "value",)
        FIELDS = (
            ('key', 'string', 0, 32767, None, None, '', False),
            ('value', 'string', 0, 32767, None, None, '', False),
        )

        def __init__(
            self,
            *,
            key: str = '',
            value: str = '',
        ) -> None:
            self.key = key
            self.value = value
            self.unknown_tagged_fields = None


class StreamsGroupTargetAssignmentMetadataKey(Message):
    """group-key, versions 0."""

    KIND = "group-key"
    TYPE = 20
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("group_id",)
    FIELDS = (
        ('group_id', 'string', 0, 0, None, None, '', False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
    ) -> None:
        self.group_id = group_id
        self.unknown_tagged_fields = None


class StreamsGroupTargetAssignmentMetadataValue(Message):
    """group-value, versions 0."""

    KIND = "group-value"
    TYPE = 20
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("assignment_epoch", "assignment_timestamp",)
    FIELDS = (
        ('assignment_epoch', 'int32', 0, 32767, None, None, 0, False),
        ('assignment_timestamp', 'int64', 0, 32767, None, (0, 0, 32767), 0, True),
    )

    def __init__(
        self,
        *,
        assignment_epoch: int = 0,
        assignment_timestamp: int = 0,
    ) -> None:
        self.assignment_epoch = assignment_epoch
        self.assignment_timestamp = assignment_timestamp
        self.unknown_tagged_fields = None


class StreamsGroupTargetAssignmentMemberKey(Message):
    """group-key, versions 0."""

    KIND = "group-key"
    TYPE = 21
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("group_id", "member_id",)
    FIELDS = (
        ('group_id', 'string', 0, 0, None, None, '', False),
        ('member_id', 'string', 0, 0, None, None, '', False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
        member_id: str = '',
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.unknown_tagged_fields = None


class StreamsGroupTargetAssignmentMemberValue(Message):
    """group-value, versions 0."""

    KIND = "group-value"
    TYPE = 21
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("active_tasks", "standby_tasks", "warmup_tasks",)
    FIELDS = (
        ('active_tasks', '[]TaskIds', 0, 32767, None, None, (), False),
        ('standby_tasks', '[]TaskIds', 0, 32767, None, None, (), False),
        ('warmup_tasks', '[]TaskIds', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        active_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds] = UNSET,
        standby_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds] = UNSET,
        warmup_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds] = UNSET,
    ) -> None:
        self.active_tasks = [] if active_tasks is UNSET else active_tasks
        self.standby_tasks = [] if standby_tasks is UNSET else standby_tasks
        self.warmup_tasks = [] if warmup_tasks is UNSET else warmup_tasks
        self.unknown_tagged_fields = None

    class TaskIds(Message):
        __slots__ = ("subtopology_id", "partitions",)
        FIELDS = (
            ('subtopology_id', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]int32', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            subtopology_id: str = '',
            partitions: list[int] = UNSET,
        ) -> None:
            self.subtopology_id = subtopology_id
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None


class StreamsGroupCurrentMemberAssignmentKey(Message):
    """group-key, versions 0."""

    KIND = "group-key"
    TYPE = 22
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("group_id", "member_id",)
    FIELDS = (
        ('group_id', 'string', 0, 0, None, None, '', False),
        ('member_id', 'string', 0, 0, None, None, '', False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
        member_id: str = '',
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.unknown_tagged_fields = None


class StreamsGroupCurrentMemberAssignmentValue(Message):
    """group-value, versions 0."""

    KIND = "group-value"
    TYPE = 22
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("member_epoch", "previous_member_epoch", "state", "active_tasks", "standby_tasks", "warmup_tasks", "active_tasks_pending_revocation", "standby_tasks_pending_revocation", "warmup_tasks_pending_revocation",)
    FIELDS = (
        ('member_epoch', 'int32', 0, 32767, None, None, 0, False),
        ('previous_member_epoch', 'int32', 0, 32767, None, None, 0, False),
        ('state', 'int8', 0, 32767, None, None, 0, False),
        ('active_tasks', '[]TaskIds', 0, 32767, None, None, (), False),
        ('standby_tasks', '[]TaskIds', 0, 32767, None, None, (), False),
        ('warmup_tasks', '[]TaskIds', 0, 32767, None, None, (), False),
        ('active_tasks_pending_revocation', '[]TaskIds', 0, 32767, None, None, (), False),
        ('standby_tasks_pending_revocation', '[]TaskIds', 0, 32767, None, None, (), False),
        ('warmup_tasks_pending_revocation', '[]TaskIds', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        active_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = UNSET,
        standby_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = UNSET,
        warmup_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = UNSET,
        active_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = UNSET,
        standby_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = UNSET,
        warmup_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = UNSET,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.active_tasks = [] if active_tasks is UNSET else active_tasks
        self.standby_tasks = [] if standby_tasks is UNSET else standby_tasks
        self.warmup_tasks = [] if warmup_tasks is UNSET else warmup_tasks
        self.active_tasks_pending_revocation = [] if active_tasks_pending_revocation is UNSET else active_tasks_pending_revocation
        self.standby_tasks_pending_revocation = [] if standby_tasks_pending_revocation is UNSET else standby_tasks_pending_revocation
        self.warmup_tasks_pending_revocation = [] if warmup_tasks_pending_revocation is UNSET else warmup_tasks_pending_revocation
        self.unknown_tagged_fields = None

    class TaskIds(Message):
        __slots__ = ("subtopology_id", "partitions", "assignment_epochs",)
        FIELDS = (
            ('subtopology_id', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]int32', 0, 32767, None, None, (), False),
            ('assignment_epochs', '[]int32', 0, 32767, (0, 32767), (0, 0, 32767), (), False),
        )

        def __init__(
            self,
            *,
            subtopology_id: str = '',
            partitions: list[int] = UNSET,
            assignment_epochs: list[int] | None = UNSET,
        ) -> None:
            self.subtopology_id = subtopology_id
            self.partitions = [] if partitions is UNSET else partitions
            self.assignment_epochs = [] if assignment_epochs is UNSET else assignment_epochs
            self.unknown_tagged_fields = None


class StreamsGroupTopologyKey(Message):
    """group-key, versions 0."""

    KIND = "group-key"
    TYPE = 23
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("group_id",)
    FIELDS = (
        ('group_id', 'string', 0, 0, None, None, '', False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
    ) -> None:
        self.group_id = group_id
        self.unknown_tagged_fields = None


class StreamsGroupTopologyValue(Message):
    """group-value, versions 0."""

    KIND = "group-value"
    TYPE = 23
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("epoch", "subtopologies",)
    FIELDS = (
        ('epoch', 'int32', 0, 32767, None, None, 0, False),
        ('subtopologies', '[]Subtopology', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        epoch: int = 0,
        subtopologies: list[StreamsGroupTopologyValue.Subtopology] = UNSET,
    ) -> None:
        self.epoch = epoch
        self.subtopologies = [] if subtopologies is UNSET else subtopologies
        self.unknown_tagged_fields = None

    class Subtopology(Message):
        __slots__ = ("subtopology_id", "source_topics", "source_topic_regex", "state_changelog_topics", "repartition_sink_topics", "repartition_source_topics", "copartition_groups",)
        FIELDS = (
            ('subtopology_id', 'string', 0, 32767, None, None, '', False),
            ('source_topics', '[]string', 0, 32767, None, None, (), False),
            ('source_topic_regex', '[]string', 0, 32767, None, None, (), False),
            ('state_changelog_topics', '[]TopicInfo', 0, 32767, None, None, (), False),
            ('repartition_sink_topics', '[]string', 0, 32767, None, None, (), False),
            ('repartition_source_topics', '[]TopicInfo', 0, 32767, None, None, (), False),
            ('copartition_groups', '[]CopartitionGroup', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            subtopology_id: str = '',
            source_topics: list[str] = UNSET,
            source_topic_regex: list[str] = UNSET,
            state_changelog_topics: list[StreamsGroupTopologyValue.TopicInfo] = UNSET,
            repartition_sink_topics: list[str] = UNSET,
            repartition_source_topics: list[StreamsGroupTopologyValue.TopicInfo] = UNSET,
            copartition_groups: list[StreamsGroupTopologyValue.CopartitionGroup] = UNSET,
        ) -> None:
            self.subtopology_id = subtopology_id
            self.source_topics = [] if source_topics is UNSET else source_topics
            self.source_topic_regex = [] if source_topic_regex is UNSET else source_topic_regex
            self.state_changelog_topics = [] if state_changelog_topics is UNSET else state_changelog_topics
            self.repartition_sink_topics = [] if repartition_sink_topics is UNSET else repartition_sink_topics
            self.repartition_source_topics = [] if repartition_source_topics is UNSET else repartition_source_topics
            self.copartition_groups = [] if copartition_groups is UNSET else copartition_groups
            self.unknown_tagged_fields = None

    class CopartitionGroup(Message):
        __slots__ = ("source_topics", "source_topic_regex", "repartition_source_topics",)
        FIELDS = (
            ('source_topics', '[]int16', 0, 32767, None, None, (), False),
            ('source_topic_regex', '[]int16', 0, 32767, None, None, (), False),
            ('repartition_source_topics', '[]int16', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            source_topics: list[int] = UNSET,
            source_topic_regex: list[int] = UNSET,
            repartition_source_topics: list[int] = UNSET,
        ) -> None:
            self.source_topics = [] if source_topics is UNSET else source_topics
            self.source_topic_regex = [] if source_topic_regex is UNSET else source_topic_regex
            self.repartition_source_topics = [] if repartition_source_topics is UNSET else repartition_source_topics
            self.unknown_tagged_fields = None

    class TopicConfig(Message):
        __slots__ = ("key", "value",)
        FIELDS = (
            ('key', 'string', 0, 32767, None, None, '', False),
            ('value', 'string', 0, 32767, None, None, '', False),
        )

        def __init__(
            self,
            *,
            key: str = '',
            value: str = '',
        ) -> None:
            self.key = key
            self.value = value
            self.unknown_tagged_fields = None

    class TopicInfo(Message):
        __slots__ = ("name", "partitions", "replication_factor", "topic_configs",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('partitions', 'int32', 0, 32767, None, None, 0, False),
            ('replication_factor', 'int16', 0, 32767, None, None, 0, False),
            ('topic_configs', '[]TopicConfig', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            partitions: int = 0,
            replication_factor: int = 0,
            topic_configs: list[StreamsGroupTopologyValue.TopicConfig] = UNSET,
        ) -> None:
            self.name = name
            self.partitions = partitions
            self.replication_factor = replication_factor
            self.topic_configs = [] if topic_configs is UNSET else topic_configs
            self.unknown_tagged_fields = None
