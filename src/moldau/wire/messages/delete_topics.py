"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class DeleteTopicsRequest(Message):
    """request, versions 1-6."""

    KIND = "request"
    TYPE = 20
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 6
    FLEXIBLE_FROM = 4
    __slots__ = ("topics", "topic_names", "timeout_ms",)
    FIELDS = (
        ('topics', '[]DeleteTopicState', 6, 32767, None, None, (), False),
        ('topic_names', '[]string', 0, 5, None, None, (), True),
        ('timeout_ms', 'int32', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        topics: list[DeleteTopicsRequest.DeleteTopicState] = UNSET,
        topic_names: list[str] = UNSET,
        timeout_ms: int = 0,
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.topic_names = [] if topic_names is UNSET else topic_names
        self.timeout_ms = timeout_ms
        self.unknown_tagged_fields = None

    class DeleteTopicState(Message):
        __slots__ = ("name", "topic_id",)
        FIELDS = (
            ('name', 'string', 6, 32767, (6, 32767), None, None, False),
            ('topic_id', 'uuid', 6, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str | None = None,
            topic_id: UUID = ZERO_UUID,
        ) -> None:
            self.name = name
            self.topic_id = topic_id
            self.unknown_tagged_fields = None


class DeleteTopicsResponse(Message):
    """response, versions 1-6."""

    KIND = "response"
    TYPE = 20
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 6
    FLEXIBLE_FROM = 4
    __slots__ = ("throttle_time_ms", "responses",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 1, 32767, None, None, 0, True),
        ('responses', '[]DeletableTopicResult', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: list[DeleteTopicsResponse.DeletableTopicResult] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = [] if responses is UNSET else responses
        self.unknown_tagged_fields = None

    class DeletableTopicResult(Message):
        __slots__ = ("name", "topic_id", "error_code", "error_message",)
        FIELDS = (
            ('name', 'string', 0, 32767, (6, 32767), None, '', False),
            ('topic_id', 'uuid', 6, 32767, None, None, (), True),
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('error_message', 'string', 5, 32767, (5, 32767), None, None, True),
        )

        def __init__(
            self,
            *,
            name: str | None = '',
            topic_id: UUID = ZERO_UUID,
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None:
            self.name = name
            self.topic_id = topic_id
            self.error_code = error_code
            self.error_message = error_message
            self.unknown_tagged_fields = None
