"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class ListGroupsRequest(Message):
    """request, versions 0-5."""

    KIND = "request"
    TYPE = 16
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 5
    FLEXIBLE_FROM = 3
    __slots__ = ("states_filter", "types_filter",)
    FIELDS = (
        ('states_filter', '[]string', 4, 32767, None, None, (), False),
        ('types_filter', '[]string', 5, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        states_filter: list[str] = UNSET,
        types_filter: list[str] = UNSET,
    ) -> None:
        self.states_filter = [] if states_filter is UNSET else states_filter
        self.types_filter = [] if types_filter is UNSET else types_filter
        self.unknown_tagged_fields = None


class ListGroupsResponse(Message):
    """response, versions 0-5."""

    KIND = "response"
    TYPE = 16
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 5
    FLEXIBLE_FROM = 3
    __slots__ = ("throttle_time_ms", "error_code", "groups",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 1, 32767, None, None, 0, True),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('groups', '[]ListedGroup', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        groups: list[ListGroupsResponse.ListedGroup] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.groups = [] if groups is UNSET else groups
        self.unknown_tagged_fields = None

    class ListedGroup(Message):
        __slots__ = ("group_id", "protocol_type", "group_state", "group_type",)
        FIELDS = (
            ('group_id', 'string', 0, 32767, None, None, '', False),
            ('protocol_type', 'string', 0, 32767, None, None, '', False),
            ('group_state', 'string', 4, 32767, None, None, '', True),
            ('group_type', 'string', 5, 32767, None, None, '', True),
        )

        def __init__(
            self,
            *,
            group_id: str = '',
            protocol_type: str = '',
            group_state: str = '',
            group_type: str = '',
        ) -> None:
            self.group_id = group_id
            self.protocol_type = protocol_type
            self.group_state = group_state
            self.group_type = group_type
            self.unknown_tagged_fields = None
