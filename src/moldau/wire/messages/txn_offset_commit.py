"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class TxnOffsetCommitRequest(Message):
    """request, versions 0-5."""

    KIND = "request"
    TYPE = 28
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 5
    FLEXIBLE_FROM = 3
    __slots__ = ("transactional_id", "group_id", "producer_id", "producer_epoch", "generation_id", "member_id", "group_instance_id", "topics",)
    FIELDS = (
        ('transactional_id', 'string', 0, 32767, None, None, '', False),
        ('group_id', 'string', 0, 32767, None, None, '', False),
        ('producer_id', 'int64', 0, 32767, None, None, 0, False),
        ('producer_epoch', 'int16', 0, 32767, None, None, 0, False),
        ('generation_id', 'int32', 3, 32767, None, None, -1, False),
        ('member_id', 'string', 3, 32767, None, None, '', False),
        ('group_instance_id', 'string', 3, 32767, (3, 32767), None, None, False),
        ('topics', '[]TxnOffsetCommitRequestTopic', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        transactional_id: str = '',
        group_id: str = '',
        producer_id: int = 0,
        producer_epoch: int = 0,
        generation_id: int = -1,
        member_id: str = '',
        group_instance_id: str | None = None,
        topics: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic] = UNSET,
    ) -> None:
        self.transactional_id = transactional_id
        self.group_id = group_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.topics = [] if topics is UNSET else topics
        self.unknown_tagged_fields = None

    class TxnOffsetCommitRequestTopic(Message):
        __slots__ = ("name", "partitions",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]TxnOffsetCommitRequestPartition', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            partitions: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition] = UNSET,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class TxnOffsetCommitRequestPartition(Message):
        __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('committed_offset', 'int64', 0, 32767, None, None, 0, False),
            ('committed_leader_epoch', 'int32', 2, 32767, None, None, -1, True),
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


class TxnOffsetCommitResponse(Message):
    """response, versions 0-5."""

    KIND = "response"
    TYPE = 28
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 5
    FLEXIBLE_FROM = 3
    __slots__ = ("throttle_time_ms", "topics",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('topics', '[]TxnOffsetCommitResponseTopic', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is UNSET else topics
        self.unknown_tagged_fields = None

    class TxnOffsetCommitResponseTopic(Message):
        __slots__ = ("name", "partitions",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]TxnOffsetCommitResponsePartition', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            partitions: list[TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition] = UNSET,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class TxnOffsetCommitResponsePartition(Message):
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
