"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class SyncGroupRequest(Message):
    """request, versions 0-5."""

    KIND = "request"
    TYPE = 14
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 5
    FLEXIBLE_FROM = 4
    __slots__ = ("group_id", "generation_id", "member_id", "group_instance_id", "protocol_type", "protocol_name", "assignments",)
    FIELDS = (
        ('group_id', 'string', 0, 32767, None, None, '', False),
        ('generation_id', 'int32', 0, 32767, None, None, 0, False),
        ('member_id', 'string', 0, 32767, None, None, '', False),
        ('group_instance_id', 'string', 3, 32767, (3, 32767), None, None, False),
        ('protocol_type', 'string', 5, 32767, (5, 32767), None, None, True),
        ('protocol_name', 'string', 5, 32767, (5, 32767), None, None, True),
        ('assignments', '[]SyncGroupRequestAssignment', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
        generation_id: int = 0,
        member_id: str = '',
        group_instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignments: list[SyncGroupRequest.SyncGroupRequestAssignment] = UNSET,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignments = [] if assignments is UNSET else assignments
        self.unknown_tagged_fields = None

    class SyncGroupRequestAssignment(Message):
        __slots__ = ("member_id", "assignment",)
        FIELDS = (
            ('member_id', 'string', 0, 32767, None, None, '', False),
            ('assignment', 'bytes', 0, 32767, None, None, b'', False),
        )

        def __init__(
            self,
            *,
            member_id: str = '',
            assignment: bytes = b'',
        ) -> None:
            self.member_id = member_id
            self.assignment = assignment
            self.unknown_tagged_fields = None


class SyncGroupResponse(Message):
    """response, versions 0-5."""

    KIND = "response"
    TYPE = 14
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 5
    FLEXIBLE_FROM = 4
    __slots__ = ("throttle_time_ms", "error_code", "protocol_type", "protocol_name", "assignment",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 1, 32767, None, None, 0, True),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('protocol_type', 'string', 5, 32767, (5, 32767), None, None, True),
        ('protocol_name', 'string', 5, 32767, (5, 32767), None, None, True),
        ('assignment', 'bytes', 0, 32767, None, None, b'', False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignment: bytes = b'',
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignment = assignment
        self.unknown_tagged_fields = None
