"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class DescribeClientQuotasRequest(Message):
    """request, versions 0-1."""

    KIND = "request"
    TYPE = 48
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 1
    __slots__ = ("components", "strict",)
    FIELDS = (
        ('components', '[]ComponentData', 0, 32767, None, None, (), False),
        ('strict', 'bool', 0, 32767, None, None, False, False),
    )

    def __init__(
        self,
        *,
        components: list[DescribeClientQuotasRequest.ComponentData] = UNSET,
        strict: bool = False,
    ) -> None:
        self.components = [] if components is UNSET else components
        self.strict = strict
        self.unknown_tagged_fields = None

    class ComponentData(Message):
        __slots__ = ("entity_type", "match_type", "match",)
        FIELDS = (
            ('entity_type', 'string', 0, 32767, None, None, '', False),
            ('match_type', 'int8', 0, 32767, None, None, 0, False),
            ('match', 'string', 0, 32767, (0, 32767), None, '', False),
        )

        def __init__(
            self,
            *,
            entity_type: str = '',
            match_type: int = 0,
            match: str | None = '',
        ) -> None:
            self.entity_type = entity_type
            self.match_type = match_type
            self.match = match
            self.unknown_tagged_fields = None


class DescribeClientQuotasResponse(Message):
    """response, versions 0-1."""

    KIND = "response"
    TYPE = 48
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 1
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "entries",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('error_message', 'string', 0, 32767, (0, 32767), None, '', False),
        ('entries', '[]EntryData', 0, 32767, (0, 32767), None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = '',
        entries: list[DescribeClientQuotasResponse.EntryData] | None = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.entries = [] if entries is UNSET else entries
        self.unknown_tagged_fields = None

    class EntryData(Message):
        __slots__ = ("entity", "values",)
        FIELDS = (
            ('entity', '[]EntityData', 0, 32767, None, None, (), False),
            ('values', '[]ValueData', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            entity: list[DescribeClientQuotasResponse.EntityData] = UNSET,
            values: list[DescribeClientQuotasResponse.ValueData] = UNSET,
        ) -> None:
            self.entity = [] if entity is UNSET else entity
            self.values = [] if values is UNSET else values
            self.unknown_tagged_fields = None

    class EntityData(Message):
        __slots__ = ("entity_type", "entity_name",)
        FIELDS = (
            ('entity_type', 'string', 0, 32767, None, None, '', False),
            ('entity_name', 'string', 0, 32767, (0, 32767), None, '', False),
        )

        def __init__(
            self,
            *,
            entity_type: str = '',
            entity_name: str | None = '',
        ) -> None:
            self.entity_type = entity_type
            self.entity_name = entity_name
            self.unknown_tagged_fields = None

    class ValueData(Message):
        __slots__ = ("key", "value",)
        FIELDS = (
            ('key', 'string', 0, 32767, None, None, '', False),
            ('value', 'float64', 0, 32767, None, None, 0.0, False),
        )

        def __init__(
            self,
            *,
            key: str = '',
            value: float = 0.0,
        ) -> None:
            self.key = key
            self.value = value
            self.unknown_tagged_fields = None
