"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class DescribeTopicPartitionsRequest(Message):
    """request, versions 0."""

    KIND = "request"
    TYPE = 75
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("topics", "response_partition_limit", "cursor",)
    FIELDS = (
        ('topics', '[]TopicRequest', 0, 32767, None, None, (), False),
        ('response_partition_limit', 'int32', 0, 32767, None, None, 2000, False),
        ('cursor', 'Cursor', 0, 32767, (0, 32767), None, None, False),
    )

    def __init__(
        self,
        *,
        topics: list[DescribeTopicPartitionsRequest.TopicRequest] = UNSET,
        response_partition_limit: int = 2000,
        cursor: DescribeTopicPartitionsRequest.Cursor | None = None,
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.response_partition_limit = response_partition_limit
        self.cursor = cursor
        self.unknown_tagged_fields = None

    class TopicRequest(Message):
        __slots__ = ("name",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
        )

        def __init__(
            self,
            *,
            name: str = '',
        ) -> None:
            self.name = name
            self.unknown_tagged_fields = None

    class Cursor(Message):
        __slots__ = ("topic_name", "partition_index",)
        FIELDS = (
            ('topic_name', 'string', 0, 32767, None, None, '', False),
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            topic_name: str = '',
            partition_index: int = 0,
        ) -> None:
            self.topic_name = topic_name
            self.partition_index = partition_index
            self.unknown_tagged_fields = None


class DescribeTopicPartitionsResponse(Message):
    """response, versions 0."""

    KIND = "response"
    TYPE = 75
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "topics", "next_cursor",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, True),
        ('topics', '[]DescribeTopicPartitionsResponseTopic', 0, 32767, None, None, (), False),
        ('next_cursor', 'Cursor', 0, 32767, (0, 32767), None, None, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic] = UNSET,
        next_cursor: DescribeTopicPartitionsResponse.Cursor | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is UNSET else topics
        self.next_cursor = next_cursor
        self.unknown_tagged_fields = None

    class DescribeTopicPartitionsResponseTopic(Message):
        __slots__ = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations",)
        FIELDS = (
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('name', 'string', 0, 32767, (0, 32767), None, '', False),
            ('topic_id', 'uuid', 0, 32767, None, None, (), True),
            ('is_internal', 'bool', 0, 32767, None, None, False, True),
            ('partitions', '[]DescribeTopicPartitionsResponsePartition', 0, 32767, None, None, (), False),
            ('topic_authorized_operations', 'int32', 0, 32767, None, None, -2147483648, False),
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            name: str | None = '',
            topic_id: UUID = ZERO_UUID,
            is_internal: bool = False,
            partitions: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition] = UNSET,
            topic_authorized_operations: int = -2147483648,
        ) -> None:
            self.error_code = error_code
            self.name = name
            self.topic_id = topic_id
            self.is_internal = is_internal
            self.partitions = [] if partitions is UNSET else partitions
            self.topic_authorized_operations = topic_authorized_operations
            self.unknown_tagged_fields = None

    class DescribeTopicPartitionsResponsePartition(Message):
        __slots__ = ("error_code", "partition_index", "leader_id", "leader_epoch", "replica_nodes", "isr_nodes", "eligible_leader_replicas", "last_known_elr", "offline_replicas",)
        FIELDS = (
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('leader_id', 'int32', 0, 32767, None, None, 0, False),
            ('leader_epoch', 'int32', 0, 32767, None, None, -1, True),
            ('replica_nodes', '[]int32', 0, 32767, None, None, (), False),
            ('isr_nodes', '[]int32', 0, 32767, None, None, (), False),
            ('eligible_leader_replicas', '[]int32', 0, 32767, (0, 32767), None, None, False),
            ('last_known_elr', '[]int32', 0, 32767, (0, 32767), None, None, False),
            ('offline_replicas', '[]int32', 0, 32767, None, None, (), True),
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            partition_index: int = 0,
            leader_id: int = 0,
            leader_epoch: int = -1,
            replica_nodes: list[int] = UNSET,
            isr_nodes: list[int] = UNSET,
            eligible_leader_replicas: list[int] | None = None,
            last_known_elr: list[int] | None = None,
            offline_replicas: list[int] = UNSET,
        ) -> None:
            self.error_code = error_code
            self.partition_index = partition_index
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.replica_nodes = [] if replica_nodes is UNSET else replica_nodes
            self.isr_nodes = [] if isr_nodes is UNSET else isr_nodes
            self.eligible_leader_replicas = eligible_leader_replicas
            self.last_known_elr = last_known_elr
            self.offline_replicas = [] if offline_replicas is UNSET else offline_replicas
            self.unknown_tagged_fields = None

    class Cursor(Message):
        __slots__ = ("topic_name", "partition_index",)
        FIELDS = (
            ('topic_name', 'string', 0, 32767, None, None, '', False),
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            topic_name: str = '',
            partition_index: int = 0,
        ) -> None:
            self.topic_name = topic_name
            self.partition_index = partition_index
            self.unknown_tagged_fields = None
