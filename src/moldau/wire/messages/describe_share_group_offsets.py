"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class DescribeShareGroupOffsetsRequest(Message):
    """request, versions 0-1."""

    KIND = "request"
    TYPE = 90
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 0
    __slots__ = ("groups",)
    FIELDS = (
        ('groups', '[]DescribeShareGroupOffsetsRequestGroup', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        groups: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup] = UNSET,
    ) -> None:
        self.groups = [] if groups is UNSET else groups
        self.unknown_tagged_fields = None

    class DescribeShareGroupOffsetsRequestGroup(Message):
        __slots__ = ("group_id", "topics",)
        FIELDS = (
            ('group_id', 'string', 0, 32767, None, None, '', False),
            ('topics', '[]DescribeShareGroupOffsetsRequestTopic', 0, 32767, (0, 32767), None, (), False),
        )

        def __init__(
            self,
            *,
            group_id: str = '',
            topics: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic] | None = UNSET,
        ) -> None:
            self.group_id = group_id
            self.topics = [] if topics is UNSET else topics
            self.unknown_tagged_fields = None

    class DescribeShareGroupOffsetsRequestTopic(Message):
        __slots__ = ("topic_name", "partitions",)
        FIELDS = (
            ('topic_name', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]int32', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_name: str = '',
            partitions: list[int] = UNSET,
        ) -> None:
            self.topic_name = topic_name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None


class DescribeShareGroupOffsetsResponse(Message):
    """response, versions 0-1."""

    KIND = "response"
    TYPE = 90
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "groups",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('groups', '[]DescribeShareGroupOffsetsResponseGroup', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is UNSET else groups
        self.unknown_tagged_fields = None

    class DescribeShareGroupOffsetsResponseGroup(Message):
        __slots__ = ("group_id", "topics", "error_code", "error_message",)
        FIELDS = (
            ('group_id', 'string', 0, 32767, None, None, '', False),
            ('topics', '[]DescribeShareGroupOffsetsResponseTopic', 0, 32767, None, None, (), False),
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('error_message', 'string', 0, 32767, (0, 32767), None, None, False),
        )

        def __init__(
            self,
            *,
            group_id: str = '',
            topics: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic] = UNSET,
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None:
            self.group_id = group_id
            self.topics = [] if topics is UNSET else topics
            self.error_code = error_code
            self.error_message = error_message
            self.unknown_tagged_fields = None

    class DescribeShareGroupOffsetsResponseTopic(Message):
        __slots__ = ("topic_name", "topic_id", "partitions",)
        FIELDS = (
            ('topic_name', 'string', 0, 32767, None, None, '', False),
            ('topic_id', 'uuid', 0, 32767, None, None, (), False),
            ('partitions', '[]DescribeShareGroupOffsetsResponsePartition', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_name: str = '',
            topic_id: UUID = ZERO_UUID,
            partitions: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition] = UNSET,
        ) -> None:
            self.topic_name = topic_name
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class DescribeShareGroupOffsetsResponsePartition(Message):
        __slots__ = ("partition_index", "start_offset", "leader_epoch", "lag", "error_code", "error_message",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('start_offset', 'int64', 0, 32767, None, None, 0, False),
            ('leader_epoch', 'int32', 0, 32767, None, None, 0, False),
            ('lag', 'int64', 1, 32767, None, None, -1, True),
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('error_message', 'string', 0, 32767, (0, 32767), None, None, False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            start_offset: int = 0,
            leader_epoch: int = 0,
            lag: int = -1,
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None:
            self.partition_index = partition_index
            self.start_offset = start_offset
            self.leader_epoch = leader_epoch
            self.lag = lag
            self.error_code = error_code
            self.error_message = error_message
            self.unknown_tagged_fields = None
