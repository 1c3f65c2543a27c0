"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class DeleteGroupsRequest(Message):
    """request, versions 0-2."""

    KIND = "request"
    TYPE = 42
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 2
    FLEXIBLE_FROM = 2
    __slots__ = ("groups_names",)
    FIELDS = (
        ('groups_names', '[]string', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        groups_names: list[str] = UNSET,
    ) -> None:
        self.groups_names = [] if groups_names is UNSET else groups_names
        self.unknown_tagged_fields = None


class DeleteGroupsResponse(Message):
    """response, versions 0-2."""

    KIND = "response"
    TYPE = 42
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 2
    FLEXIBLE_FROM = 2
    __slots__ = ("throttle_time_ms", "results",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('results', '[]DeletableGroupResult', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[DeleteGroupsResponse.DeletableGroupResult] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is UNSET else results
        self.unknown_tagged_fields = None

    class DeletableGroupResult(Message):
        __slots__ = ("group_id", "error_code",)
        FIELDS = (
            ('group_id', 'string', 0, 32767, None, None, '', False),
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            group_id: str = '',
            error_code: int = 0,
        ) -> None:
            self.group_id = group_id
            self.error_code = error_code
            self.unknown_tagged_fields = None
