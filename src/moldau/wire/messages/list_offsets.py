"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class ListOffsetsRequest(Message):
    """request, versions 1-11."""

    KIND = "request"
    TYPE = 2
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 11
    FLEXIBLE_FROM = 6
    __slots__ = ("replica_id", "isolation_level", "topics", "timeout_ms",)
    FIELDS = (
        ('replica_id', 'int32', 0, 32767, None, None, 0, False),
        ('isolation_level', 'int8', 2, 32767, None, None, 0, False),
        ('topics', '[]ListOffsetsTopic', 0, 32767, None, None, (), False),
        ('timeout_ms', 'int32', 10, 32767, None, None, 0, True),
    )

    def __init__(
        self,
        *,
        replica_id: int = 0,
        isolation_level: int = 0,
        topics: list[ListOffsetsRequest.ListOffsetsTopic] = UNSET,
        timeout_ms: int = 0,
    ) -> None:
        self.replica_id = replica_id
        self.isolation_level = isolation_level
        self.topics = [] if topics is UNSET else topics
        self.timeout_ms = timeout_ms
        self.unknown_tagged_fields = None

    class ListOffsetsTopic(Message):
        __slots__ = ("name", "partitions",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]ListOffsetsPartition', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            partitions: list[ListOffsetsRequest.ListOffsetsPartition] = UNSET,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class ListOffsetsPartition(Message):
        __slots__ = ("partition_index", "current_leader_epoch", "timestamp",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('current_leader_epoch', 'int32', 4, 32767, None, None, -1, True),
            ('timestamp', 'int64', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            current_leader_epoch: int = -1,
            timestamp: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.current_leader_epoch = current_leader_epoch
            self.timestamp = timestamp
            self.unknown_tagged_fields = None


class ListOffsetsResponse(Message):
    """response, versions 1-11."""

    KIND = "response"
    TYPE = 2
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 11
    FLEXIBLE_FROM = 6
    __slots__ = ("throttle_time_ms", "topics",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 2, 32767, None, None, 0, True),
        ('topics', '[]ListOffsetsTopicResponse', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[ListOffsetsResponse.ListOffsetsTopicResponse] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is UNSET else topics
        self.unknown_tagged_fields = None

    class ListOffsetsTopicResponse(Message):
        __slots__ = ("name", "partitions",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]ListOffsetsPartitionResponse', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            partitions: list[ListOffsetsResponse.ListOffsetsPartitionResponse] = UNSET,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class ListOffsetsPartitionResponse(Message):
        __slots__ = ("partition_index", "error_code", "timestamp", "offset", "leader_epoch",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('timestamp', 'int64', 1, 32767, None, None, -1, False),
            ('offset', 'int64', 1, 32767, None, None, -1, False),
            ('leader_epoch', 'int32', 4, 32767, None, None, -1, False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            timestamp: int = -1,
            offset: int = -1,
            leader_epoch: int = -1,
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.timestamp = timestamp
            self.offset = offset
            self.leader_epoch = leader_epoch
            self.unknown_tagged_fields = None
