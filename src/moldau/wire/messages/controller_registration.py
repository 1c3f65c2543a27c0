"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class ControllerRegistrationRequest(Message):
    """request, versions 0."""

    KIND = "request"
    TYPE = 70
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("controller_id", "incarnation_id", "zk_migration_ready", "listeners", "features",)
    FIELDS = (
        ('controller_id', 'int32', 0, 32767, None, None, 0, False),
        ('incarnation_id', 'uuid', 0, 32767, None, None, (), False),
        ('zk_migration_ready', 'bool', 0, 32767, None, None, False, False),
        ('listeners', '[]Listener', 0, 32767, None, None, (), False),
        ('features', '[]Feature', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        controller_id: int = 0,
        incarnation_id: UUID = ZERO_UUID,
        zk_migration_ready: bool = False,
        listeners: list[ControllerRegistrationRequest.Listener] = UNSET,
        features: list[ControllerRegistrationRequest.Feature] = UNSET,
    ) -> None:
        self.controller_id = controller_id
        self.incarnation_id = incarnation_id
        self.zk_migration_ready = zk_migration_ready
        self.listeners = [] if listeners is UNSET else listeners
        self.features = [] if features is UNSET else features
        self.unknown_tagged_fields = None

    class Listener(Message):
        __slots__ = ("name", "host", "port", "security_protocol",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('host', 'string', 0, 32767, None, None, '', False),
            ('port', 'uint16', 0, 32767, None, None, 0, False),
            ('security_protocol', 'int16', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            host: str = '',
            port: int = 0,
            security_protocol: int = 0,
        ) -> None:
            self.name = name
            self.host = host
            self.port = port
            self.security_protocol = security_protocol
            self.unknown_tagged_fields = None

    class Feature(Message):
        __slots__ = ("name", "min_supported_version", "max_supported_version",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('min_supported_version', 'int16', 0, 32767, None, None, 0, False),
            ('max_supported_version', 'int16', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            min_supported_version: int = 0,
            max_supported_version: int = 0,
        ) -> None:
            self.name = name
            self.min_supported_version = min_supported_version
            self.max_supported_version = max_supported_version
            self.unknown_tagged_fields = None


class ControllerRegistrationResponse(Message):
    """response, versions 0."""

    KIND = "response"
    TYPE = 70
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "error_message",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('error_message', 'string', 0, 32767, (0, 32767), None, '', False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = '',
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tagged_fields = None
