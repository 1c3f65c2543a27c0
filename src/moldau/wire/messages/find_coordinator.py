"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class FindCoordinatorRequest(Message):
    """request, versions 0-6."""

    KIND = "request"
    TYPE = 10
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 6
    FLEXIBLE_FROM = 3
    __slots__ = ("key", "key_type", "coordinator_keys",)
    FIELDS = (
        ('key', 'string', 0, 3, None, None, '', False),
        ('key_type', 'int8', 1, 32767, None, None, 0, False),
        ('coordinator_keys', '[]string', 4, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        key: str = '',
        key_type: int = 0,
        coordinator_keys: list[str] = UNSET,
    ) -> None:
        self.key = key
        self.key_type = key_type
        self.coordinator_keys = [] if coordinator_keys is UNSET else coordinator_keys
        self.unknown_tagged_fields = None


class FindCoordinatorResponse(Message):
    """response, versions 0-6."""

    KIND = "response"
    TYPE = 10
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 6
    FLEXIBLE_FROM = 3
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "node_id", "host", "port", "coordinators",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 1, 32767, None, None, 0, True),
        ('error_code', 'int16', 0, 3, None, None, 0, False),
        ('error_message', 'string', 1, 3, (1, 3), None, '', True),
        ('node_id', 'int32', 0, 3, None, None, 0, False),
        ('host', 'string', 0, 3, None, None, '', False),
        ('port', 'int32', 0, 3, None, None, 0, False),
        ('coordinators', '[]Coordinator', 4, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = '',
        node_id: int = 0,
        host: str = '',
        port: int = 0,
        coordinators: list[FindCoordinatorResponse.Coordinator] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.node_id = node_id
        self.host = host
        self.port = port
        self.coordinators = [] if coordinators is UNSET else coordinators
        self.unknown_tagged_fields = None

    class Coordinator(Message):
        __slots__ = ("key", "node_id", "host", "port", "error_code", "error_message",)
        FIELDS = (
            ('key', 'string', 4, 32767, None, None, '', False),
            ('node_id', 'int32', 4, 32767, None, None, 0, False),
            ('host', 'string', 4, 32767, None, None, '', False),
            ('port', 'int32', 4, 32767, None, None, 0, False),
            ('error_code', 'int16', 4, 32767, None, None, 0, False),
            ('error_message', 'string', 4, 32767, (4, 32767), None, '', True),
        )

        def __init__(
            self,
            *,
            key: str = '',
            node_id: int = 0,
            host: str = '',
            port: int = 0,
            error_code: int = 0,
            error_message: str | None = '',
        ) -> None:
            self.key = key
            self.node_id = node_id
            self.host = host
            self.port = port
            self.error_code = error_code
            self.error_message = error_message
            self.unknown_tagged_fields = None
