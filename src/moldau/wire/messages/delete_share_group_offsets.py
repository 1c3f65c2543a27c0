"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class DeleteShareGroupOffsetsRequest(Message):
    """request, versions 0."""

    KIND = "request"
    TYPE = 92
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("group_id", "topics",)
    FIELDS = (
        ('group_id', 'string', 0, 32767, None, None, '', False),
        ('topics', '[]DeleteShareGroupOffsetsRequestTopic', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
        topics: list[DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic] = UNSET,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is UNSET else topics
        self.unknown_tagged_fields = None

    class DeleteShareGroupOffsetsRequestTopic(Message):
        __slots__ = ("topic_name",)
        FIELDS = (
            ('topic_name', 'string', 0, 32767, None, None, '', False),
        )

        def __init__(
            self,
            *,
            topic_name: str = '',
        ) -> None:
            self.topic_name = topic_name
            self.unknown_tagged_fields = None


class DeleteShareGroupOffsetsResponse(Message):
    """response, versions 0."""

    KIND = "response"
    TYPE = 92
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "responses",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('error_message', 'string', 0, 32767, (0, 32767), None, None, False),
        ('responses', '[]DeleteShareGroupOffsetsResponseTopic', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is UNSET else responses
        self.unknown_tagged_fields = None

    class DeleteShareGroupOffsetsResponseTopic(Message):
        __slots__ = ("topic_name", "topic_id", "error_code", "error_message",)
        FIELDS = (
            ('topic_name', 'string', 0, 32767, None, None, '', False),
            ('topic_id', 'uuid', 0, 32767, None, None, (), False),
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('error_message', 'string', 0, 32767, (0, 32767), None, None, False),
        )

        def __init__(
            self,
            *,
            topic_name: str = '',
            topic_id: UUID = ZERO_UUID,
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None:
            self.topic_name = topic_name
            self.topic_id = topic_id
            self.error_code = error_code
            self.error_message = error_message
            self.unknown_tagged_fields = None
