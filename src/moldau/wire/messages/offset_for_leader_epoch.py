"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class OffsetForLeaderEpochRequest(Message):
    """request, versions 2-4."""

    KIND = "request"
    TYPE = 23
    LOWEST_VERSION = 2
    HIGHEST_VERSION = 4
    FLEXIBLE_FROM = 4
    __slots__ = ("replica_id", "topics",)
    FIELDS = (
        ('replica_id', 'int32', 3, 32767, None, None, -2, True),
        ('topics', '[]OffsetForLeaderTopic', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        replica_id: int = -2,
        topics: list[OffsetForLeaderEpochRequest.OffsetForLeaderTopic] = UNSET,
    ) -> None:
        self.replica_id = replica_id
        self.topics = [] if topics is UNSET else topics
        self.unknown_tagged_fields = None

    class OffsetForLeaderTopic(Message):
        __slots__ = ("topic", "partitions",)
        FIELDS = (
            ('topic', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]OffsetForLeaderPartition', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic: str = '',
            partitions: list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition] = UNSET,
        ) -> None:
            self.topic = topic
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class OffsetForLeaderPartition(Message):
        __slots__ = ("partition", "current_leader_epoch", "leader_epoch",)
        FIELDS = (
            ('partition', 'int32', 0, 32767, None, None, 0, False),
            ('current_leader_epoch', 'int32', 2, 32767, None, None, -1, True),
            ('leader_epoch', 'int32', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            partition: int = 0,
            current_leader_epoch: int = -1,
            leader_epoch: int = 0,
        ) -> None:
            self.partition = partition
            self.current_leader_epoch = current_leader_epoch
            self.leader_epoch = leader_epoch
            self.unknown_tagged_fields = None


class OffsetForLeaderEpochResponse(Message):
    """response, versions 2-4."""

    KIND = "response"
    TYPE = 23
    LOWEST_VERSION = 2
    HIGHEST_VERSION = 4
    FLEXIBLE_FROM = 4
    __slots__ = ("throttle_time_ms", "topics",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 2, 32767, None, None, 0, True),
        ('topics', '[]OffsetForLeaderTopicResult', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is UNSET else topics
        self.unknown_tagged_fields = None

    class OffsetForLeaderTopicResult(Message):
        __slots__ = ("topic", "partitions",)
        FIELDS = (
            ('topic', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]EpochEndOffset', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic: str = '',
            partitions: list[OffsetForLeaderEpochResponse.EpochEndOffset] = UNSET,
        ) -> None:
            self.topic = topic
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class EpochEndOffset(Message):
        __slots__ = ("error_code", "partition", "leader_epoch", "end_offset",)
        FIELDS = (
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('partition', 'int32', 0, 32767, None, None, 0, False),
            ('leader_epoch', 'int32', 1, 32767, None, None, -1, True),
            ('end_offset', 'int64', 0, 32767, None, None, -1, False),
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            partition: int = 0,
            leader_epoch: int = -1,
            end_offset: int = -1,
        ) -> None:
            self.error_code = error_code
            self.partition = partition
            self.leader_epoch = leader_epoch
            self.end_offset = end_offset
            self.unknown_tagged_fields = None
