"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class WriteShareGroupStateRequest(Message):
    """request, versions 0-1."""

    KIND = "request"
    TYPE = 85
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 0
    __slots__ = ("group_id", "topics",)
    FIELDS = (
        ('group_id', 'string', 0, 32767, None, None, '', False),
        ('topics', '[]WriteStateData', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
        topics: list[WriteShareGroupStateRequest.WriteStateData] = UNSET,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is UNSET else topics
        self.unknown_tagged_fields = None

    class WriteStateData(Message):
        __slots__ = ("topic_id", "partitions",)
        FIELDS = (
            ('topic_id', 'uuid', 0, 32767, None, None, (), False),
            ('partitions', '[]PartitionData', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_id: UUID = ZERO_UUID,
            partitions: list[WriteShareGroupStateRequest.PartitionData] = UNSET,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class PartitionData(Message):
        __slots__ = ("partition", "state_epoch", "leader_epoch", "start_offset", "delivery_complete_count", "state_batches",)
        FIELDS = (
            ('partition', 'int32', 0, 32767, None, None, 0, False),
            ('state_epoch', 'int32', 0, 32767, None, None, 0, False),
            ('leader_epoch', 'int32', 0, 32767, None, None, 0, False),
            ('start_offset', 'int64', 0, 32767, None, None, 0, False),
            ('delivery_complete_count', 'int32', 1, 32767, None, None, -1, True),
            ('state_batches', '[]StateBatch', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            partition: int = 0,
            state_epoch: int = 0,
            leader_epoch: int = 0,
            start_offset: int = 0,
            delivery_complete_count: int = -1,
            state_batches: list[WriteShareGroupStateRequest.StateBatch] = UNSET,
        ) -> None:
            self.partition = partition
            self.state_epoch = state_epoch
            self.leader_epoch = leader_epoch
            self.start_offset = start_offset
            self.delivery_complete_count = delivery_complete_count
            self.state_batches = [] if state_batches is UNSET else state_batches
            self.unknown_tagged_fields = None

    class StateBatch(Message):
        __slots__ = ("first_offset", "last_offset", "delivery_state", "delivery_count",)
        FIELDS = (
            ('first_offset', 'int64', 0, 32767, None, None, 0, False),
            ('last_offset', 'int64', 0, 32767, None, None, 0, False),
            ('delivery_state', 'int8', 0, 32767, None, None, 0, False),
            ('delivery_count', 'int16', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            first_offset: int = 0,
            last_offset: int = 0,
            delivery_state: int = 0,
            delivery_count: int = 0,
        ) -> None:
            self.first_offset = first_offset
            self.last_offset = last_offset
            self.delivery_state = delivery_state
            self.delivery_count = delivery_count
            self.unknown_tagged_fields = None


class WriteShareGroupStateResponse(Message):
    """response, versions 0-1."""

    KIND = "response"
    TYPE = 85
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 0
    __slots__ = ("results",)
    FIELDS = (
        ('results', '[]WriteStateResult', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        results: list[WriteShareGroupStateResponse.WriteStateResult] = UNSET,
    ) -> None:
        self.results = [] if results is UNSET else results
        self.unknown_tagged_fields = None

    class WriteStateResult(Message):
        __slots__ = ("topic_id", "partitions",)
        FIELDS = (
            ('topic_id', 'uuid', 0, 32767, None, None, (), False),
            ('partitions', '[]PartitionResult', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_id: UUID = ZERO_UUID,
            partitions: list[WriteShareGroupStateResponse.PartitionResult] = UNSET,
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
