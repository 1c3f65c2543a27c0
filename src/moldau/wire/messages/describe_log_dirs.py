"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class DescribeLogDirsRequest(Message):
    """request, versions 1-5."""

    KIND = "request"
    TYPE = 35
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 5
    FLEXIBLE_FROM = 2
    __slots__ = ("topics",)
    FIELDS = (
        ('topics', '[]DescribableLogDirTopic', 0, 32767, (0, 32767), None, (), False),
    )

    def __init__(
        self,
        *,
        topics: list[DescribeLogDirsRequest.DescribableLogDirTopic] | None = UNSET,
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.unknown_tagged_fields = None

    class DescribableLogDirTopic(Message):
        __slots__ = ("topic", "partitions",)
        FIELDS = (
            ('topic', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]int32', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic: str = '',
            partitions: list[int] = UNSET,
        ) -> None:
            self.topic = topic
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None


class DescribeLogDirsResponse(Message):
    """response, versions 1-5."""

    KIND = "response"
    TYPE = 35
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 5
    FLEXIBLE_FROM = 2
    __slots__ = ("throttle_time_ms", "error_code", "results",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('error_code', 'int16', 3, 32767, None, None, 0, True),
        ('results', '[]DescribeLogDirsResult', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results: list[DescribeLogDirsResponse.DescribeLogDirsResult] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results = [] if results is UNSET else results
        self.unknown_tagged_fields = None

    class DescribeLogDirsResult(Message):
        __slots__ = ("error_code", "log_dir", "topics", "total_bytes", "usable_bytes", "is_cordoned",)
        FIELDS = (
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('log_dir', 'string', 0, 32767, None, None, '', False),
            ('topics', '[]DescribeLogDirsTopic', 0, 32767, None, None, (), False),
            ('total_bytes', 'int64', 4, 32767, None, None, -1, True),
            ('usable_bytes', 'int64', 4, 32767, None, None, -1, True),
            ('is_cordoned', 'bool', 5, 32767, None, None, False, True),
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            log_dir: str = '',
            topics: list[DescribeLogDirsResponse.DescribeLogDirsTopic] = UNSET,
            total_bytes: int = -1,
            usable_bytes: int = -1,
            is_cordoned: bool = False,
        ) -> None:
            self.error_code = error_code
            self.log_dir = log_dir
            self.topics = [] if topics is UNSET else topics
            self.total_bytes = total_bytes
            self.usable_bytes = usable_bytes
            self.is_cordoned = is_cordoned
            self.unknown_tagged_fields = None

    class DescribeLogDirsTopic(Message):
        __slots__ = ("name", "partitions",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]DescribeLogDirsPartition', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            partitions: list[DescribeLogDirsResponse.DescribeLogDirsPartition] = UNSET,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class DescribeLogDirsPartition(Message):
        __slots__ = ("partition_index", "partition_size", "offset_lag", "is_future_key",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('partition_size', 'int64', 0, 32767, None, None, 0, False),
            ('offset_lag', 'int64', 0, 32767, None, None, 0, False),
            ('is_future_key', 'bool', 0, 32767, None, None, False, False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            partition_size: int = 0,
            offset_lag: int = 0,
            is_future_key: bool = False,
        ) -> None:
            self.partition_index = partition_index
            self.partition_size = partition_size
            self.offset_lag = offset_lag
            self.is_future_key = is_future_key
            self.unknown_tagged_fields = None
