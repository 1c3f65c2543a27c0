"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class DeleteRecordsRequest(Message):
    """request, versions 0-2."""

    KIND = "request"
    TYPE = 21
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 2
    FLEXIBLE_FROM = 2
    __slots__ = ("topics", "timeout_ms",)
    FIELDS = (
        ('topics', '[]DeleteRecordsTopic', 0, 32767, None, None, (), False),
        ('timeout_ms', 'int32', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        topics: list[DeleteRecordsRequest.DeleteRecordsTopic] = UNSET,
        timeout_ms: int = 0,
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.timeout_ms = timeout_ms
        self.unknown_tagged_fields = None

    class DeleteRecordsTopic(Message):
        __slots__ = ("name", "partitions",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]DeleteRecordsPartition', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            partitions: list[DeleteRecordsRequest.DeleteRecordsPartition] = UNSET,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class DeleteRecordsPartition(Message):
        __slots__ = ("partition_index", "offset",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('offset', 'int64', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            offset: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.offset = offset
            self.unknown_tagged_fields = None


class DeleteRecordsResponse(Message):
    """response, versions 0-2."""

    KIND = "response"
    TYPE = 21
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 2
    FLEXIBLE_FROM = 2
    __slots__ = ("throttle_time_ms", "topics",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('topics', '[]DeleteRecordsTopicResult', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DeleteRecordsResponse.DeleteRecordsTopicResult] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is UNSET else topics
        self.unknown_tagged_fields = None

    class DeleteRecordsTopicResult(Message):
        __slots__ = ("name", "partitions",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]DeleteRecordsPartitionResult', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            partitions: list[DeleteRecordsResponse.DeleteRecordsPartitionResult] = UNSET,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class DeleteRecordsPartitionResult(Message):
        __slots__ = ("partition_index", "low_watermark", "error_code",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('low_watermark', 'int64', 0, 32767, None, None, 0, False),
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            low_watermark: int = 0,
            error_code: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.low_watermark = low_watermark
            self.error_code = error_code
            self.unknown_tagged_fields = None
