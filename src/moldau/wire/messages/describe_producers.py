"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class DescribeProducersRequest(Message):
    """request, versions 0."""

    KIND = "request"
    TYPE = 61
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("topics",)
    FIELDS = (
        ('topics', '[]TopicRequest', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        topics: list[DescribeProducersRequest.TopicRequest] = UNSET,
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.unknown_tagged_fields = None

    class TopicRequest(Message):
        __slots__ = ("name", "partition_indexes",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('partition_indexes', '[]int32', 0, 32767, None, None, (), False),
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


class DescribeProducersResponse(Message):
    """response, versions 0."""

    KIND = "response"
    TYPE = 61
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "topics",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('topics', '[]TopicResponse', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DescribeProducersResponse.TopicResponse] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is UNSET else topics
        self.unknown_tagged_fields = None

    class TopicResponse(Message):
        __slots__ = ("name", "partitions",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]PartitionResponse', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            partitions: list[DescribeProducersResponse.PartitionResponse] = UNSET,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class PartitionResponse(Message):
        __slots__ = ("partition_index", "error_code", "error_message", "active_producers",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('error_message', 'string', 0, 32767, (0, 32767), None, None, False),
            ('active_producers', '[]ProducerState', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            active_producers: list[DescribeProducersResponse.ProducerState] = UNSET,
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.error_message = error_message
            self.active_producers = [] if active_producers is UNSET else active_producers
            self.unknown_tagged_fields = None

    class ProducerState(Message):
        __slots__ = ("producer_id", "producer_epoch", "last_sequence", "last_timestamp", "coordinator_epoch", "current_txn_start_offset",)
        FIELDS = (
            ('producer_id', 'int64', 0, 32767, None, None, 0, False),
            ('producer_epoch', 'int32', 0, 32767, None, None, 0, False),
            ('last_sequence', 'int32', 0, 32767, None, None, -1, False),
            ('last_timestamp', 'int64', 0, 32767, None, None, -1, False),
            ('coordinator_epoch', 'int32', 0, 32767, None, None, 0, False),
            ('current_txn_start_offset', 'int64', 0, 32767, None, None, -1, False),
        )

        def __init__(
            self,
            *,
            producer_id: int = 0,
            producer_epoch: int = 0,
            last_sequence: int = -1,
            last_timestamp: int = -1,
            coordinator_epoch: int = 0,
            current_txn_start_offset: int = -1,
        ) -> None:
            self.producer_id = producer_id
            self.producer_epoch = producer_epoch
            self.last_sequence = last_sequence
            self.last_timestamp = last_timestamp
            self.coordinator_epoch = coordinator_epoch
            self.current_txn_start_offset = current_txn_start_offset
            self.unknown_tagged_fields = None
