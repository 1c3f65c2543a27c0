"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class CreatePartitionsRequest(Message):
    """request, versions 0-3."""

    KIND = "request"
    TYPE = 37
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 3
    FLEXIBLE_FROM = 2
    __slots__ = ("topics", "timeout_ms", "validate_only",)
    FIELDS = (
        ('topics', '[]CreatePartitionsTopic', 0, 32767, None, None, (), False),
        ('timeout_ms', 'int32', 0, 32767, None, None, 0, False),
        ('validate_only', 'bool', 0, 32767, None, None, False, False),
    )

    def __init__(
        self,
        *,
        topics: list[CreatePartitionsRequest.CreatePartitionsTopic] = UNSET,
        timeout_ms: int = 0,
        validate_only: bool = False,
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only
        self.unknown_tagged_fields = None

    class CreatePartitionsTopic(Message):
        __slots__ = ("name", "count", "assignments",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('count', 'int32', 0, 32767, None, None, 0, False),
            ('assignments', '[]CreatePartitionsAssignment', 0, 32767, (0, 32767), None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            count: int = 0,
            assignments: list[CreatePartitionsRequest.CreatePartitionsAssignment] | None = UNSET,
        ) -> None:
            self.name = name
            self.count = count
            self.assignments = [] if assignments is UNSET else assignments
            self.unknown_tagged_fields = None

    class CreatePartitionsAssignment(Message):
        __slots__ = ("broker_ids",)
        FIELDS = (
            ('broker_ids', '[]int32', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            broker_ids: list[int] = UNSET,
        ) -> None:
            self.broker_ids = [] if broker_ids is UNSET else broker_ids
            self.unknown_tagged_fields = None


class CreatePartitionsResponse(Message):
    """response, versions 0-3."""

    KIND = "response"
    TYPE = 37
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 3
    FLEXIBLE_FROM = 2
    __slots__ = ("throttle_time_ms", "results",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('results', '[]CreatePartitionsTopicResult', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[CreatePartitionsResponse.CreatePartitionsTopicResult] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is UNSET else results
        self.unknown_tagged_fields = None

    class CreatePartitionsTopicResult(Message):
        __slots__ = ("name", "error_code", "error_message",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('error_message', 'string', 0, 32767, (0, 32767), None, None, False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None:
            self.name = name
            self.error_code = error_code
            self.error_message = error_message
            self.unknown_tagged_fields = None
