"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import Message


class HeartbeatRequest(Message):
    """request, versions 0-4."""

    KIND = "request"
    TYPE = 12
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 4
    FLEXIBLE_FROM = 4
    __slots__ = ("group_id", "generation_id", "member_id", "group_instance_id",)
    FIELDS = (
        ('group_id', 'string', 0, 32767, None, None, '', False),
        ('generation_id', 'int32', 0, 32767, None, None, 0, False),
        ('member_id', 'string', 0, 32767, None, None, '', False),
        ('group_instance_id', 'string', 3, 32767, (3, 32767), None, None, False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
        generation_id: int = 0,
        member_id: str = '',
        group_instance_id: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.unknown_tagged_fields = None


class HeartbeatResponse(Message):
    """response, versions 0-4."""

    KIND = "response"
    TYPE = 12
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 4
    FLEXIBLE_FROM = 4
    __slots__ = ("throttle_time_ms", "error_code",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 1, 32767, None, None, 0, True),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_tagged_fields = None
