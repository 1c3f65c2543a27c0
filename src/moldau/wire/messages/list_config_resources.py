"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class ListConfigResourcesRequest(Message):
    """request, versions 0-1."""

    KIND = "request"
    TYPE = 74
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 0
    __slots__ = ("resource_types",)
    FIELDS = (
        ('resource_types', '[]int8', 1, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        resource_types: list[int] = UNSET,
    ) -> None:
        self.resource_types = [] if resource_types is UNSET else resource_types
        self.unknown_tagged_fields = None


class ListConfigResourcesResponse(Message):
    """response, versions 0-1."""

    KIND = "response"
    TYPE = 74
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "config_resources",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('config_resources', '[]ConfigResource', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        config_resources: list[ListConfigResourcesResponse.ConfigResource] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.config_resources = [] if config_resources is UNSET else config_resources
        self.unknown_tagged_fields = None

    class ConfigResource(Message):
        __slots__ = ("resource_name", "resource_type",)
        FIELDS = (
            ('resource_name', 'string', 0, 32767, None, None, '', False),
            ('resource_type', 'int8', 1, 32767, None, None, 16, True),
        )

        def __init__(
            self,
            *,
            resource_name: str = '',
            resource_type: int = 16,
        ) -> None:
            self.resource_name = resource_name
            self.resource_type = resource_type
            self.unknown_tagged_fields = None
