"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class LeaveGroupRequest(Message):
    """request, versions 0-5."""

    KIND = "request"
    TYPE = 13
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 5
    FLEXIBLE_FROM = 4
    __slots__ = ("group_id", "member_id", "members",)
    FIELDS = (
        ('group_id', 'string', 0, 32767, None, None, '', False),
        ('member_id', 'string', 0, 2, None, None, '', False),
        ('members', '[]MemberIdentity', 3, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
        member_id: str = '',
        members: list[LeaveGroupRequest.MemberIdentity] = UNSET,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.members = [] if members is UNSET else members
        self.unknown_tagged_fields = None

    class MemberIdentity(Message):
        __slots__ = ("member_id", "group_instance_id", "reason",)
        FIELDS = (
            ('member_id', 'string', 3, 32767, None, None, '', False),
            ('group_instance_id', 'string', 3, 32767, (3, 32767), None, None, False),
            ('reason', 'string', 5, 32767, (5, 32767), None, None, True),
        )

        def __init__(
            self,
            *,
            member_id: str = '',
            group_instance_id: str | None = None,
            reason: str | None = None,
        ) -> None:
            self.member_id = member_id
            self.group_instance_id = group_instance_id
            self.reason = reason
            self.unknown_tagged_fields = None


class LeaveGroupResponse(Message):
    """response, versions 0-5."""

    KIND = "response"
    TYPE = 13
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 5
    FLEXIBLE_FROM = 4
    __slots__ = ("throttle_time_ms", "error_code", "members",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 1, 32767, None, None, 0, True),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('members', '[]MemberResponse', 3, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        members: list[LeaveGroupResponse.MemberResponse] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.members = [] if members is UNSET else members
        self.unknown_tagged_fields = None

    class MemberResponse(Message):
        __slots__ = ("member_id", "group_instance_id", "error_code",)
        FIELDS = (
            ('member_id', 'string', 3, 32767, None, None, '', False),
            ('group_instance_id', 'string', 3, 32767, (3, 32767), None, '', False),
            ('error_code', 'int16', 3, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            member_id: str = '',
            group_instance_id: str | None = '',
            error_code: int = 0,
        ) -> None:
            self.member_id = member_id
            self.group_instance_id = group_instance_id
            self.error_code = error_code
            self.unknown_tagged_fields = None
