"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class DescribeConfigsRequest(Message):
    """request, versions 1-4."""

    KIND = "request"
    TYPE = 32
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 4
    FLEXIBLE_FROM = 4
    __slots__ = ("resources", "include_synonyms", "include_documentation",)
    FIELDS = (
        ('resources', '[]DescribeConfigsResource', 0, 32767, None, None, (), False),
        ('include_synonyms', 'bool', 1, 32767, None, None, False, False),
        ('include_documentation', 'bool', 3, 32767, None, None, False, False),
    )

    def __init__(
        self,
        *,
        resources: list[DescribeConfigsRequest.DescribeConfigsResource] = UNSET,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> None:
        self.resources = [] if resources is UNSET else resources
        self.include_synonyms = include_synonyms
        self.include_documentation = include_documentation
        self.unknown_tagged_fields = None

    class DescribeConfigsResource(Message):
        __slots__ = ("resource_type", "resource_name", "configuration_keys",)
        FIELDS = (
            ('resource_type', 'int8', 0, 32767, None, None, 0, False),
            ('resource_name', 'string', 0, 32767, None, None, '', False),
            ('configuration_keys', '[]string', 0, 32767, (0, 32767), None, (), False),
        )

        def __init__(
            self,
            *,
            resource_type: int = 0,
            resource_name: str = '',
            configuration_keys: list[str] | None = UNSET,
        ) -> None:
            self.resource_type = resource_type
            self.resource_name = resource_name
            self.configuration_keys = [] if configuration_keys is UNSET else configuration_keys
            self.unknown_tagged_fields = None


class DescribeConfigsResponse(Message):
    """response, versions 1-4."""

    KIND = "response"
    TYPE = 32
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 4
    FLEXIBLE_FROM = 4
    __slots__ = ("throttle_time_ms", "results",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('results', '[]DescribeConfigsResult', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[DescribeConfigsResponse.DescribeConfigsResult] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is UNSET else results
        self.unknown_tagged_fields = None

    class DescribeConfigsResult(Message):
        __slots__ = ("error_code", "error_message", "resource_type", "resource_name", "configs",)
        FIELDS = (
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('error_message', 'string', 0, 32767, (0, 32767), None, '', False),
            ('resource_type', 'int8', 0, 32767, None, None, 0, False),
            ('resource_name', 'string', 0, 32767, None, None, '', False),
            ('configs', '[]DescribeConfigsResourceResult', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = '',
            resource_type: int = 0,
            resource_name: str = '',
            configs: list[DescribeConfigsResponse.DescribeConfigsResourceResult] = UNSET,
        ) -> None:
            self.error_code = error_code
            self.error_message = error_message
            self.resource_type = resource_type
            self.resource_name = resource_name
            self.configs = [] if configs is UNSET else configs
            self.unknown_tagged_fields = None

    class DescribeConfigsResourceResult(Message):
        __slots__ = ("name", "value", "read_only", "config_source", "is_sensitive", "synonyms", "config_type", "documentation",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('value', 'string', 0, 32767, (0, 32767), None, '', False),
            ('read_only', 'bool', 0, 32767, None, None, False, False),
            ('config_source', 'int8', 1, 32767, None, None, -1, True),
            ('is_sensitive', 'bool', 0, 32767, None, None, False, False),
            ('synonyms', '[]DescribeConfigsSynonym', 1, 32767, None, None, (), True),
            ('config_type', 'int8', 3, 32767, None, None, 0, True),
            ('documentation', 'string', 3, 32767, (0, 32767), None, '', True),
        )

        def __init__(
            self,
            *,
            name: str = '',
            value: str | None = '',
            read_only: bool = False,
            config_source: int = -1,
            is_sensitive: bool = False,
            synonyms: list[DescribeConfigsResponse.DescribeConfigsSynonym] = UNSET,
            config_type: int = 0,
            documentation: str | None = '',
        ) -> None:
            self.name = name
            self.value = value
            self.read_only = read_only
            self.config_source = config_source
            self.is_sensitive = is_sensitive
            self.synonyms = [] if synonyms is UNSET else synonyms
            self.config_type = config_type
            self.documentation = documentation
            self.unknown_tagged_fields = None

    class DescribeConfigsSynonym(Message):
        __slots__ = ("name", "value", "source",)
        FIELDS = (
            ('name', 'string', 1, 32767, None, None, '', False),
            ('value', 'string', 1, 32767, (0, 32767), None, '', False),
            ('source', 'int8', 1, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            value: str | None = '',
            source: int = 0,
        ) -> None:
            self.name = name
            self.value = value
            self.source = source
            self.unknown_tagged_fields = None
