"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class AlterShareGroupOffsetsRequest(Message):
    """request, versions 0."""

    KIND = "request"
    TYPE = 91
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("group_id", "topics",)
    FIELDS = (
        ('group_id', 'string', 0, 32767, None, None, '', False),
        ('topics', '[]AlterShareGroupOffsetsRequestTopic', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
        topics: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic] = UNSET,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is UNSET else topics
        self.unknown_tagged_fields = None

    class AlterShareGroupOffsetsRequestTopic(Message):
        __slots__ = ("topic_name", "partitions",)
        FIELDS = (
            ('topic_name', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]AlterShareGroupOffsetsRequestPartition', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_name: str = '',
            partitions: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition] = UNSET,
        ) -> None:
            self.topic_name = topic_name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class AlterShareGroupOffsetsRequestPartition(Message):
        __slots__ = ("partition_index", "start_offset",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('start_offset', 'int64', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            start_offset: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.start_offset = start_offset
            self.unknown_tagged_fields = None


class AlterShareGroupOffsetsResponse(Message):
    """response, versions 0."""

    KIND = "response"
    TYPE = 91
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "responses",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('error_message', 'string', 0, 32767, (0, 32767), None, None, False),
        ('responses', '[]AlterShareGroupOffsetsResponseTopic', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is UNSET else responses
        self.unknown_tagged_fields = None

    class AlterShareGroupOffsetsResponseTopic(Message):
        __slots__ = ("topic_name", "topic_id", "partitions",)
        FIELDS = (
            ('topic_name', 'string', 0, 32767, None, None, '', False),
            ('topic_id', 'uuid', 0, 32767, None, None, (), False),
            ('partitions', '[]AlterShareGroupOffsetsResponsePartition', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_name: str = '',
            topic_id: UUID = ZERO_UUID,
            partitions: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition] = UNSET,
        ) -> None:
            self.topic_name = topic_name
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class AlterShareGroupOffsetsResponsePartition(Message):
        __slots__ = ("partition_index", "error_code", "error_message",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('error_message', 'string', 0, 32767, (0, 32767), None, None, False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.error_message = error_message
            self.unknown_tagged_fields = None
