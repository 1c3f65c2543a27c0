"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class OffsetCommitRequest(Message):
    """request, versions 2-10."""

    KIND = "request"
    TYPE = 8
    LOWEST_VERSION = 2
    HIGHEST_VERSION = 10
    FLEXIBLE_FROM = 8
    __slots__ = ("group_id", "generation_id_or_member_epoch", "member_id", "group_instance_id", "retention_time_ms", "topics",)
    FIELDS = (
        ('group_id', 'string', 0, 32767, None, None, '', False),
        ('generation_id_or_member_epoch', 'int32', 1, 32767, None, None, -1, True),
        ('member_id', 'string', 1, 32767, None, None, '', True),
        ('group_instance_id', 'string', 7, 32767, (7, 32767), None, None, False),
        ('retention_time_ms', 'int64', 2, 4, None, None, -1, True),
        ('topics', '[]OffsetCommitRequestTopic', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
        generation_id_or_member_epoch: int = -1,
        member_id: str = '',
        group_instance_id: str | None = None,
        retention_time_ms: int = -1,
        topics: list[OffsetCommitRequest.OffsetCommitRequestTopic] = UNSET,
    ) -> None:
        self.group_id = group_id
        self.generation_id_or_member_epoch = generation_id_or_member_epoch
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.retention_time_ms = retention_time_ms
        self.topics = [] if topics is UNSET else topics
        self.unknown_tagged_fields = None

    class OffsetCommitRequestTopic(Message):
        __slots__ = ("name", "topic_id", "partitions",)
        FIELDS = (
            ('name', 'string', 0, 9, None, None, '', True),
            ('topic_id', 'uuid', 10, 32767, None, None, (), True),
            ('partitions', '[]OffsetCommitRequestPartition', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            topic_id: UUID = ZERO_UUID,
            partitions: list[OffsetCommitRequest.OffsetCommitRequestPartition] = UNSET,
        ) -> None:
            self.name = name
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class OffsetCommitRequestPartition(Message):
        __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('committed_offset', 'int64', 0, 32767, None, None, 0, False),
            ('committed_leader_epoch', 'int32', 6, 32767, None, None, -1, True),
            ('committed_metadata', 'string', 0, 32767, (0, 32767), None, '', False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            committed_offset: int = 0,
            committed_leader_epoch: int = -1,
            committed_metadata: str | None = '',
        ) -> None:
            self.partition_index = partition_index
            self.committed_offset = committed_offset
            self.committed_leader_epoch = committed_leader_epoch
            self.committed_metadata = committed_metadata
            self.unknown_tagged_fields = None


class OffsetCommitResponse(Message):
    """response, versions 2-10."""

    KIND = "response"
    TYPE = 8
    LOWEST_VERSION = 2
    HIGHEST_VERSION = 10
    FLEXIBLE_FROM = 8
    __slots__ = ("throttle_time_ms", "topics",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 3, 32767, None, None, 0, True),
        ('topics', '[]OffsetCommitResponseTopic', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetCommitResponse.OffsetCommitResponseTopic] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is UNSET else topics
        self.unknown_tagged_fields = None

    class OffsetCommitResponseTopic(Message):
        __slots__ = ("name", "topic_id", "partitions",)
        FIELDS = (
            ('name', 'string', 0, 9, None, None, '', True),
            ('topic_id', 'uuid', 10, 32767, None, None, (), True),
            ('partitions', '[]OffsetCommitResponsePartition', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            topic_id: UUID = ZERO_UUID,
            partitions: list[OffsetCommitResponse.OffsetCommitResponsePartition] = UNSET,
        ) -> None:
            self.name = name
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class OffsetCommitResponsePartition(Message):
        __slots__ = ("partition_index", "error_code",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.unknown_tagged_fields = None
