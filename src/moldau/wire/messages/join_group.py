"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class JoinGroupRequest(Message):
    """request, versions 0-9."""

    KIND = "request"
    TYPE = 11
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 9
    FLEXIBLE_FROM = 6
    __slots__ = ("group_id", "session_timeout_ms", "rebalance_timeout_ms", "member_id", "group_instance_id", "protocol_type", "protocols", "reason",)
    FIELDS = (
        ('group_id', 'string', 0, 32767, None, None, '', False),
        ('session_timeout_ms', 'int32', 0, 32767, None, None, 0, False),
        ('rebalance_timeout_ms', 'int32', 1, 32767, None, None, -1, True),
        ('member_id', 'string', 0, 32767, None, None, '', False),
        ('group_instance_id', 'string', 5, 32767, (5, 32767), None, None, False),
        ('protocol_type', 'string', 0, 32767, None, None, '', False),
        ('protocols', '[]JoinGroupRequestProtocol', 0, 32767, None, None, (), False),
        ('reason', 'string', 8, 32767, (8, 32767), None, None, True),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = -1,
        member_id: str = '',
        group_instance_id: str | None = None,
        protocol_type: str = '',
        protocols: list[JoinGroupRequest.JoinGroupRequestProtocol] = UNSET,
        reason: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocols = [] if protocols is UNSET else protocols
        self.reason = reason
        self.unknown_tagged_fields = None

    class JoinGroupRequestProtocol(Message):
        __slots__ = ("name", "metadata",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('metadata', 'bytes', 0, 32767, None, None, b'', False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            metadata: bytes = b'',
        ) -> None:
            self.name = name
            self.metadata = metadata
            self.unknown_tagged_fields = None


class JoinGroupResponse(Message):
    """response, versions 0-9."""

    KIND = "response"
    TYPE = 11
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 9
    FLEXIBLE_FROM = 6
    __slots__ = ("throttle_time_ms", "error_code", "generation_id", "protocol_type", "protocol_name", "leader", "skip_assignment", "member_id", "members",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 2, 32767, None, None, 0, True),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('generation_id', 'int32', 0, 32767, None, None, -1, False),
        ('protocol_type', 'string', 7, 32767, (7, 32767), None, None, True),
        ('protocol_name', 'string', 0, 32767, (7, 32767), None, '', False),
        ('leader', 'string', 0, 32767, None, None, '', False),
        ('skip_assignment', 'bool', 9, 32767, None, None, False, False),
        ('member_id', 'string', 0, 32767, None, None, '', False),
        ('members', '[]JoinGroupResponseMember', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        generation_id: int = -1,
        protocol_type: str | None = None,
        protocol_name: str | None = '',
        leader: str = '',
        skip_assignment: bool = False,
        member_id: str = '',
        members: list[JoinGroupResponse.JoinGroupResponseMember] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.generation_id = generation_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.leader = leader
        self.skip_assignment = skip_assignment
        self.member_id = member_id
        self.members = [] if members is UNSET else members
        self.unknown_tagged_fields = None

    class JoinGroupResponseMember(Message):
        __slots__ = ("member_id", "group_instance_id", "metadata",)
        FIELDS = (
            ('member_id', 'string', 0, 32767, None, None, '', False),
            ('group_instance_id', 'string', 5, 32767, (5, 32767), None, None, True),
            ('metadata', 'bytes', 0, 32767, None, None, b'', False),
        )

        def __init__(
            self,
            *,
            member_id: str = '',
            group_instance_id: str | None = None,
            metadata: bytes = b'',
        ) -> None:
            self.member_id = member_id
            self.group_instance_id = group_instance_id
            self.metadata = metadata
            self.unknown_tagged_fields = None
