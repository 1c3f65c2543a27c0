"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class DescribeGroupsRequest(Message):
    """request, versions 0-6."""

    KIND = "request"
    TYPE = 15
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 6
    FLEXIBLE_FROM = 5
    __slots__ = ("groups", "include_authorized_operations",)
    FIELDS = (
        ('groups', '[]string', 0, 32767, None, None, (), False),
        ('include_authorized_operations', 'bool', 3, 32767, None, None, False, False),
    )

    def __init__(
        self,
        *,
        groups: list[str] = UNSET,
        include_authorized_operations: bool = False,
    ) -> None:
        self.groups = [] if groups is UNSET else groups
        self.include_authorized_operations = include_authorized_operations
        self.unknown_tagged_fields = None


class DescribeGroupsResponse(Message):
    """response, versions 0-6."""

    KIND = "response"
    TYPE = 15
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 6
    FLEXIBLE_FROM = 5
    __slots__ = ("throttle_time_ms", "groups",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 1, 32767, None, None, 0, True),
        ('groups', '[]DescribedGroup', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribeGroupsResponse.DescribedGroup] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is UNSET else groups
        self.unknown_tagged_fields = None

    class DescribedGroup(Message):
        __slots__ = ("error_code", "error_message", "group_id", "group_state", "protocol_type", "protocol_data", "members", "authorized_operations",)
        FIELDS = (
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('error_message', 'string', 6, 32767, (6, 32767), None, None, False),
            ('group_id', 'string', 0, 32767, None, None, '', False),
            ('group_state', 'string', 0, 32767, None, None, '', False),
            ('protocol_type', 'string', 0, 32767, None, None, '', False),
            ('protocol_data', 'string', 0, 32767, None, None, '', False),
            ('members', '[]DescribedGroupMember', 0, 32767, None, None, (), False),
            ('authorized_operations', 'int32', 3, 32767, None, None, -2147483648, False),
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = None,
            group_id: str = '',
            group_state: str = '',
            protocol_type: str = '',
            protocol_data: str = '',
            members: list[DescribeGroupsResponse.DescribedGroupMember] = UNSET,
            authorized_operations: int = -2147483648,
        ) -> None:
            self.error_code = error_code
            self.error_message = error_message
            self.group_id = group_id
            self.group_state = group_state
            self.protocol_type = protocol_type
            self.protocol_data = protocol_data
            self.members = [] if members is UNSET else members
            self.authorized_operations = authorized_operations
            self.unknown_tagged_fields = None

    class DescribedGroupMember(Message):
        __slots__ = ("member_id", "group_instance_id", "client_id", "client_host", "member_metadata", "member_assignment",)
        FIELDS = (
            ('member_id', 'string', 0, 32767, None, None, '', False),
            ('group_instance_id', 'string', 4, 32767, (4, 32767), None, None, True),
            ('client_id', 'string', 0, 32767, None, None, '', False),
            ('client_host', 'string', 0, 32767, None, None, '', False),
            ('member_metadata', 'bytes', 0, 32767, None, None, b'', False),
            ('member_assignment', 'bytes', 0, 32767, None, None, b'', False),
        )

        def __init__(
            self,
            *,
            member_id: str = '',
            group_instance_id: str | None = None,
            client_id: str = '',
            client_host: str = '',
            member_metadata: bytes = b'',
            member_assignment: bytes = b'',
        ) -> None:
            self.member_id = member_id
            self.group_instance_id = group_instance_id
            self.client_id = client_id
            self.client_host = client_host
            self.member_metadata = member_metadata
            self.member_assignment = member_assignment
            self.unknown_tagged_fields = None
