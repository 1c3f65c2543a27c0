"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class OffsetFetchRequest(Message):
    """request, versions 1-10."""

    KIND = "request"
    TYPE = 9
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 10
    FLEXIBLE_FROM = 6
    __slots__ = ("group_id", "topics", "groups", "require_stable",)
    FIELDS = (
        ('group_id', 'string', 0, 7, None, None, '', False),
        ('topics', '[]OffsetFetchRequestTopic', 0, 7, (2, 7), None, (), False),
        ('groups', '[]OffsetFetchRequestGroup', 8, 32767, None, None, (), False),
        ('require_stable', 'bool', 7, 32767, None, None, False, False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
        topics: list[OffsetFetchRequest.OffsetFetchRequestTopic] | None = UNSET,
        groups: list[OffsetFetchRequest.OffsetFetchRequestGroup] = UNSET,
        require_stable: bool = False,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is UNSET else topics
        self.groups = [] if groups is UNSET else groups
        self.require_stable = require_stable
        self.unknown_tagged_fields = None

    class OffsetFetchRequestTopic(Message):
        __slots__ = ("name", "partition_indexes",)
        FIELDS = (
            ('name', 'string', 0, 7, None, None, '', False),
            ('partition_indexes', '[]int32', 0, 7, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            partition_indexes: list[int] = UNSET,
        ) -> None:
            self.name = name
            self.partition_indexes = [] if partition_indexes is UNSET else partition_indexes
            self.unknown_tagged_fields = None

    class OffsetFetchRequestGroup(Message):
        __slots__ = ("group_id", "member_id", "member_epoch", "topics",)
        FIELDS = (
            ('group_id', 'string', 8, 32767, None, None, '', False),
            ('member_id', 'string', 9, 32767, (9, 32767), None, None, True),
            ('member_epoch', 'int32', 9, 32767, None, None, -1, True),
            ('topics', '[]OffsetFetchRequestTopics', 8, 32767, (8, 32767), None, (), False),
        )

        def __init__(
            self,
            *,
            group_id: str = '',
            member_id: str | None = None,
            member_epoch: int = -1,
            topics: list[OffsetFetchRequest.OffsetFetchRequestTopics] | None = UNSET,
        ) -> None:
            self.group_id = group_id
            self.member_id = member_id
            self.member_epoch = member_epoch
            self.topics = [] if topics is UNSET else topics
            self.unknown_tagged_fields = None

    class OffsetFetchRequestTopics(Message):
        __slots__ = ("name", "topic_id", "partition_indexes",)
        FIELDS = (
            ('name', 'string', 8, 9, None, None, '', True),
            ('topic_id', 'uuid', 10, 32767, None, None, (), True),
            ('partition_indexes', '[]int32', 8, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            topic_id: UUID = ZERO_UUID,
            partition_indexes: list[int] = UNSET,
        ) -> None:
            self.name = name
            self.topic_id = topic_id
            self.partition_indexes = [] if partition_indexes is UNSET else partition_indexes
            self.unknown_tagged_fields = None


class OffsetFetchResponse(Message):
    """response, versions 1-10."""

    KIND = "response"
    TYPE = 9
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 10
    FLEXIBLE_FROM = 6
    __slots__ = ("throttle_time_ms", "topics", "error_code", "groups",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 3, 32767, None, None, 0, True),
        ('topics', '[]OffsetFetchResponseTopic', 0, 7, None, None, (), False),
        ('error_code', 'int16', 2, 7, None, None, 0, True),
        ('groups', '[]OffsetFetchResponseGroup', 8, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetFetchResponse.OffsetFetchResponseTopic] = UNSET,
        error_code: int = 0,
        groups: list[OffsetFetchResponse.OffsetFetchResponseGroup] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is UNSET else topics
        self.error_code = error_code
        self.groups = [] if groups is UNSET else groups
        self.unknown_tagged_fields = None

    class OffsetFetchResponseTopic(Message):
        __slots__ = ("name", "partitions",)
        FIELDS = (
            ('name', 'string', 0, 7, None, None, '', False),
            ('partitions', '[]OffsetFetchResponsePartition', 0, 7, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            partitions: list[OffsetFetchResponse.OffsetFetchResponsePartition] = UNSET,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class OffsetFetchResponsePartition(Message):
        __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code",)
        FIELDS = (
            ('partition_index', 'int32', 0, 7, None, None, 0, False),
            ('committed_offset', 'int64', 0, 7, None, None, 0, False),
            ('committed_leader_epoch', 'int32', 5, 7, None, None, -1, True),
            ('metadata', 'string', 0, 7, (0, 7), None, '', False),
            ('error_code', 'int16', 0, 7, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            committed_offset: int = 0,
            committed_leader_epoch: int = -1,
            metadata: str | None = '',
            error_code: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.committed_offset = committed_offset
            self.committed_leader_epoch = committed_leader_epoch
            self.metadata = metadata
            self.error_code = error_code
            self.unknown_tagged_fields = None

    class OffsetFetchResponseGroup(Message):
        __slots__ = ("group_id", "topics", "error_code",)
        FIELDS = (
            ('group_id', 'string', 8, 32767, None, None, '', False),
            ('topics', '[]OffsetFetchResponseTopics', 8, 32767, None, None, (), False),
            ('error_code', 'int16', 8, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            group_id: str = '',
            topics: list[OffsetFetchResponse.OffsetFetchResponseTopics] = UNSET,
            error_code: int = 0,
        ) -> None:
            self.group_id = group_id
            self.topics = [] if topics is UNSET else topics
            self.error_code = error_code
            self.unknown_tagged_fields = None

    class OffsetFetchResponseTopics(Message):
        __slots__ = ("name", "topic_id", "partitions",)
        FIELDS = (
            ('name', 'string', 8, 9, None, None, '', True),
            ('topic_id', 'uuid', 10, 32767, None, None, (), True),
            ('partitions', '[]OffsetFetchResponsePartitions', 8, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            topic_id: UUID = ZERO_UUID,
            partitions: list[OffsetFetchResponse.OffsetFetchResponsePartitions] = UNSET,
        ) -> None:
            self.name = name
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class OffsetFetchResponsePartitions(Message):
        __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code",)
        FIELDS = (
            ('partition_index', 'int32', 8, 32767, None, None, 0, False),
            ('committed_offset', 'int64', 8, 32767, None, None, 0, False),
            ('committed_leader_epoch', 'int32', 8, 32767, None, None, -1, True),
            ('metadata', 'string', 8, 32767, (8, 32767), None, '', False),
            ('error_code', 'int16', 8, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            committed_offset: int = 0,
            committed_leader_epoch: int = -1,
            metadata: str | None = '',
            error_code: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.committed_offset = committed_offset
            self.committed_leader_epoch = committed_leader_epoch
            self.metadata = metadata
            self.error_code = error_code
            self.unknown_tagged_fields = None
