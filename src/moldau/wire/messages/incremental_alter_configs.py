"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class IncrementalAlterConfigsRequest(Message):
    """request, versions 0-1."""

    KIND = "request"
    TYPE = 44
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 1
    __slots__ = ("resources", "validate_only",)
    FIELDS = (
        ('resources', '[]AlterConfigsResource', 0, 32767, None, None, (), False),
        ('validate_only', 'bool', 0, 32767, None, None, False, False),
    )

    def __init__(
        self,
        *,
        resources: list[IncrementalAlterConfigsRequest.AlterConfigsResource] = UNSET,
        validate_only: bool = False,
    ) -> None:
        self.resources = [] if resources is UNSET else resources
        self.validate_only = validate_only
        self.unknown_tagged_fields = None

    class AlterConfigsResource(Message):
        __slots__ = ("resource_type", "resource_name", "configs",)
        FIELDS = (
            ('resource_type', 'int8', 0, 32767, None, None, 0, False),
            ('resource_name', 'string', 0, 32767, None, None, '', False),
            ('configs', '[]AlterableConfig', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            resource_type: int = 0,
            resource_name: str = '',
            configs: list[IncrementalAlterConfigsRequest.AlterableConfig] = UNSET,
        ) -> None:
            self.resource_type = resource_type
            self.resource_name = resource_name
            self.configs = [] if configs is UNSET else configs
            self.unknown_tagged_fields = None

    class AlterableConfig(Message):
        __slots__ = ("name", "config_operation", "value",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('config_operation', 'int8', 0, 32767, None, None, 0, False),
            ('value', 'string', 0, 32767, (0, 32767), None, '', False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            config_operation: int = 0,
            value: str | None = '',
        ) -> None:
            self.name = name
            self.config_operation = config_operation
            self.value = value
            self.unknown_tagged_fields = None


class IncrementalAlterConfigsResponse(Message):
    """response, versions 0-1."""

    KIND = "response"
    TYPE = 44
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 1
    __slots__ = ("throttle_time_ms", "responses",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('responses', '[]AlterConfigsResourceResponse', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: list[IncrementalAlterConfigsResponse.AlterConfigsResourceResponse] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = [] if responses is UNSET else responses
        self.unknown_tagged_fields = None

    class AlterConfigsResourceResponse(Message):
        __slots__ = ("error_code", "error_message", "resource_type", "resource_name",)
        FIELDS = (
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('error_message', 'string', 0, 32767, (0, 32767), None, '', False),
            ('resource_type', 'int8', 0, 32767, None, None, 0, False),
            ('resource_name', 'string', 0, 32767, None, None, '', False),
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = '',
            resource_type: int = 0,
            resource_name: str = '',
        ) -> None:
            self.error_code = error_code
            self.error_message = error_message
            self.resource_type = resource_type
            self.resource_name = resource_name
            self.unknown_tagged_fields = None
