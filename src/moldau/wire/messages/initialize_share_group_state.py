"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class InitializeShareGroupStateRequest(Message):
    """request, versions 0."""

    KIND = "request"
    TYPE = 83
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("group_id", "topics",)
    FIELDS = (
        ('group_id', 'string', 0, 32767, None, None, '', False),
        ('topics', '[]InitializeStateData', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
        topics: list[InitializeShareGroupStateRequest.InitializeStateData] = UNSET,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is UNSET else topics
        self.unknown_tagged_fields = None

    class InitializeStateData(Message):
        __slots__ = ("topic_id", "partitions",)
        FIELDS = (
            ('topic_id', 'uuid', 0, 32767, None, None, (), False),
            ('partitions', '[]PartitionData', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_id: UUID = ZERO_UUID,
            partitions: list[InitializeShareGroupStateRequest.PartitionData] = UNSET,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class PartitionData(Message):
        __slots__ = ("partition", "state_epoch", "start_offset",)
        FIELDS = (
            ('partition', 'int32', 0, 32767, None, None, 0, False),
            ('state_epoch', 'int32', 0, 32767, None, None, 0, False),
            ('start_offset', 'int64', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            partition: int = 0,
            state_epoch: int = 0,
            start_offset: int = 0,
        ) -> None:
            self.partition = partition
            self.state_epoch = state_epoch
            self.start_offset = start_offset
            self.unknown_tagged_fields = None


class InitializeShareGroupStateResponse(Message):
    """response, versions 0."""

    KIND = "response"
    TYPE = 83
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("results",)
    FIELDS = (
        ('results', '[]InitializeStateResult', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        results: list[InitializeShareGroupStateResponse.InitializeStateResult] = UNSET,
    ) -> None:
        self.results = [] if results is UNSET else results
        self.unknown_tagged_fields = None

    class InitializeStateResult(Message):
        __slots__ = ("topic_id", "partitions",)
        FIELDS = (
            ('topic_id', 'uuid', 0, 32767, None, None, (), False),
            ('partitions', '[]PartitionResult', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_id: UUID = ZERO_UUID,
            partitions: list[InitializeShareGroupStateResponse.PartitionResult] = UNSET,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class PartitionResult(Message):
        __slots__ = ("partition", "error_code", "error_message",)
        FIELDS = (
            ('partition', 'int32', 0, 32767, None, None, 0, False),
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('error_message', 'string', 0, 32767, (0, 32767), None, None, False),
        )

        def __init__(
            self,
            *,
            partition: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None:
            self.partition = partition
            self.error_code = error_code
            self.error_message = error_message
            self.unknown_tagged_fields = None
