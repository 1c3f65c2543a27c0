"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class CreateAclsRequest(Message):
    """request, versions 1-3."""

    KIND = "request"
    TYPE = 30
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 3
    FLEXIBLE_FROM = 2
    __slots__ = ("creations",)
    FIELDS = (
        ('creations', '[]AclCreation', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        creations: list[CreateAclsRequest.AclCreation] = UNSET,
    ) -> None:
        self.creations = [] if creations is UNSET else creations
        self.unknown_tagged_fields = None

    class AclCreation(Message):
        __slots__ = ("resource_type", "resource_name", "resource_pattern_type", "principal", "host", "operation", "permission_type",)
        FIELDS = (
            ('resource_type', 'int8', 0, 32767, None, None, 0, False),
            ('resource_name', 'string', 0, 32767, None, None, '', False),
            ('resource_pattern_type', 'int8', 1, 32767, None, None, 3, False),
            ('principal', 'string', 0, 32767, None, None, '', False),
            ('host', 'string', 0, 32767, None, None, '', False),
            ('operation', 'int8', 0, 32767, None, None, 0, False),
            ('permission_type', 'int8', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            resource_type: int = 0,
            resource_name: str = '',
            resource_pattern_type: int = 3,
            principal: str = '',
            host: str = '',
            operation: int = 0,
            permission_type: int = 0,
        ) -> None:
            self.resource_type = resource_type
            self.resource_name = resource_name
            self.resource_pattern_type = resource_pattern_type
            self.principal = principal
            self.host = host
            self.operation = operation
            self.permission_type = permission_type
            self.unknown_tagged_fields = None


class CreateAclsResponse(Message):
    """response, versions 1-3."""

    KIND = "response"
    TYPE = 30
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 3
    FLEXIBLE_FROM = 2
    __slots__ = ("throttle_time_ms", "results",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('results', '[]AclCreationResult', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[CreateAclsResponse.AclCreationResult] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is UNSET else results
        self.unknown_tagged_fields = None

    class AclCreationResult(Message):
        __slots__ = ("error_code", "error_message",)
        FIELDS = (
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('error_message', 'string', 0, 32767, (0, 32767), None, '', False),
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = '',
        ) -> None:
            self.error_code = error_code
            self.error_message = error_message
            self.unknown_tagged_fields = None
