"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class OffsetDeleteRequest(Message):
    """request, versions 0."""

    KIND = "request"
    TYPE = 47
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("group_id", "topics",)
    FIELDS = (
        ('group_id', 'string', 0, 32767, None, None, '', False),
        ('topics', '[]OffsetDeleteRequestTopic', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
        topics: list[OffsetDeleteRequest.OffsetDeleteRequestTopic] = UNSET,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is UNSET else topics
        self.unknown_tagged_fields = None

    class OffsetDeleteRequestTopic(Message):
        __slots__ = ("name", "partitions",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]OffsetDeleteRequestPartition', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            partitions: list[OffsetDeleteRequest.OffsetDeleteRequestPartition] = UNSET,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class OffsetDeleteRequestPartition(Message):
        __slots__ = ("partition_index",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.unknown_tagged_fields = None


class OffsetDeleteResponse(Message):
    """response, versions 0."""

    KIND = "response"
    TYPE = 47
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("error_code", "throttle_time_ms", "topics",)
    FIELDS = (
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, True),
        ('topics', '[]OffsetDeleteResponseTopic', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        throttle_time_ms: int = 0,
        topics: list[OffsetDeleteResponse.OffsetDeleteResponseTopic] = UNSET,
    ) -> None:
        self.error_code = error_code
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is UNSET else topics
        self.unknown_tagged_fields = None

    class OffsetDeleteResponseTopic(Message):
        __slots__ = ("name", "partitions",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]OffsetDeleteResponsePartition', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            partitions: list[OffsetDeleteResponse.OffsetDeleteResponsePartition] = UNSET,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class OffsetDeleteResponsePartition(Message):
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
