"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class AlterClientQuotasRequest(Message):
    """request, versions 0-1."""

    KIND = "request"
    TYPE = 49
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 1
    __slots__ = ("entries", "validate_only",)
    FIELDS = (
        ('entries', '[]EntryData', 0, 32767, None, None, (), False),
        ('validate_only', 'bool', 0, 32767, None, None, False, False),
    )

    def __init__(
        self,
        *,
        entries: list[AlterClientQuotasRequest.EntryData] = UNSET,
        validate_only: bool = False,
    ) -> None:
        self.entries = [] if entries is UNSET else entries
        self.validate_only = validate_only
        self.unknown_tagged_fields = None

    class EntryData(Message):
        __slots__ = ("entity", "ops",)
        FIELDS = (
            ('entity', '[]EntityData', 0, 32767, None, None, (), False),
            ('ops', '[]OpData', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            entity: list[AlterClientQuotasRequest.EntityData] = UNSET,
            ops: list[AlterClientQuotasRequest.OpData] = UNSET,
        ) -> None:
            self.entity = [] if entity is UNSET else entity
            self.ops = [] if ops is UNSET else ops
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

    class OpData(Message):
        __slots__ = ("key", "value", "remove",)
        FIELDS = (
            ('key', 'string', 0, 32767, None, None, '', False),
            ('value', 'float64', 0, 32767, None, None, 0.0, False),
            ('remove', 'bool', 0, 32767, None, None, False, False),
        )

        def __init__(
            self,
            *,
            key: str = '',
            value: float = 0.0,
            remove: bool = False,
        ) -> None:
            self.key = key
            self.value = value
            self.remove = remove
            self.unknown_tagged_fields = None


class AlterClientQuotasResponse(Message):
    """response, versions 0-1."""

    KIND = "response"
    TYPE = 49
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 1
    __slots__ = ("throttle_time_ms", "entries",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('entries', '[]EntryData', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        entries: list[AlterClientQuotasResponse.EntryData] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.entries = [] if entries is UNSET else entries
        self.unknown_tagged_fields = None

    class EntryData(Message):
        __slots__ = ("error_code", "error_message", "entity",)
        FIELDS = (
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('error_message', 'string', 0, 32767, (0, 32767), None, '', False),
            ('entity', '[]EntityData', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = '',
            entity: list[AlterClientQuotasResponse.EntityData] = UNSET,
        ) -> None:
            self.error_code = error_code
            self.error_message = error_message
            self.entity = [] if entity is UNSET else entity
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
