"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class DeleteAclsRequest(Message):
    """request, versions 1-3."""

    KIND = "request"
    TYPE = 31
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 3
    FLEXIBLE_FROM = 2
    __slots__ = ("filters",)
    FIELDS = (
        ('filters', '[]DeleteAclsFilter', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        filters: list[DeleteAclsRequest.DeleteAclsFilter] = UNSET,
    ) -> None:
        self.filters = [] if filters is UNSET else filters
        self.unknown_tagged_fields = None

    class DeleteAclsFilter(Message):
        __slots__ = ("resource_type_filter", "resource_name_filter", "pattern_type_filter", "principal_filter", "host_filter", "operation", "permission_type",)
        FIELDS = (
            ('resource_type_filter', 'int8', 0, 32767, None, None, 0, False),
            ('resource_name_filter', 'string', 0, 32767, (0, 32767), None, '', False),
            ('pattern_type_filter', 'int8', 1, 32767, None, None, 3, False),
            ('principal_filter', 'string', 0, 32767, (0, 32767), None, '', False),
            ('host_filter', 'string', 0, 32767, (0, 32767), None, '', False),
            ('operation', 'int8', 0, 32767, None, None, 0, False),
            ('permission_type', 'int8', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            resource_type_filter: int = 0,
            resource_name_filter: str | None = '',
            pattern_type_filter: int = 3,
            principal_filter: str | None = '',
            host_filter: str | None = '',
            operation: int = 0,
            permission_type: int = 0,
        ) -> None:
            self.resource_type_filter = resource_type_filter
            self.resource_name_filter = resource_name_filter
            self.pattern_type_filter = pattern_type_filter
            self.principal_filter = principal_filter
            self.host_filter = host_filter
            self.operation = operation
            self.permission_type = permission_type
            self.unknown_tagged_fields = None


class DeleteAclsResponse(Message):
    """response, versions 1-3."""

    KIND = "response"
    TYPE = 31
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 3
    FLEXIBLE_FROM = 2
    __slots__ = ("throttle_time_ms", "filter_results",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('filter_results', '[]DeleteAclsFilterResult', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        filter_results: list[DeleteAclsResponse.DeleteAclsFilterResult] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.filter_results = [] if filter_results is UNSET else filter_results
        self.unknown_tagged_fields = None

    class DeleteAclsFilterResult(Message):
        __slots__ = ("error_code", "error_message", "matching_acls",)
        FIELDS = (
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('error_message', 'string', 0, 32767, (0, 32767), None, '', False),
            ('matching_acls', '[]DeleteAclsMatchingAcl', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = '',
            matching_acls: list[DeleteAclsResponse.DeleteAclsMatchingAcl] = UNSET,
        ) -> None:
            self.error_code = error_code
            self.error_message = error_message
            self.matching_acls = [] if matching_acls is UNSET else matching_acls
            self.unknown_tagged_fields = None

    class DeleteAclsMatchingAcl(Message):
        __slots__ = ("error_code", "error_message", "resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type",)
        FIELDS = (
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('error_message', 'string', 0, 32767, (0, 32767), None, '', False),
            ('resource_type', 'int8', 0, 32767, None, None, 0, False),
            ('resource_name', 'string', 0, 32767, None, None, '', False),
            ('pattern_type', 'int8', 1, 32767, None, None, 3, False),
            ('principal', 'string', 0, 32767, None, None, '', False),
            ('host', 'string', 0, 32767, None, None, '', False),
            ('operation', 'int8', 0, 32767, None, None, 0, False),
            ('permission_type', 'int8', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = '',
            resource_type: int = 0,
            resource_name: str = '',
            pattern_type: int = 3,
            principal: str = '',
            host: str = '',
            operation: int = 0,
            permission_type: int = 0,
        ) -> None:
            self.error_code = error_code
            self.error_message = error_message
            self.resource_type = resource_type
            self.resource_name = resource_name
            self.pattern_type = pattern_type
            self.principal = principal
            self.host = host
            self.operation = operation
            self.permission_type = permission_type
            self.unknown_tagged_fields = None
