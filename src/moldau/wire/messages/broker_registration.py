"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class BrokerRegistrationRequest(Message):
    """request, versions 0-4."""

    KIND = "request"
    TYPE = 62
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 4
    FLEXIBLE_FROM = 0
    __slots__ = ("broker_id", "cluster_id", "incarnation_id", "listeners", "features", "rack", "is_migrating_zk_broker", "log_dirs", "previous_broker_epoch",)
    FIELDS = (
        ('broker_id', 'int32', 0, 32767, None, None, 0, False),
        ('cluster_id', 'string', 0, 32767, None, None, '', False),
        ('incarnation_id', 'uuid', 0, 32767, None, None, (), False),
        ('listeners', '[]Listener', 0, 32767, None, None, (), False),
        ('features', '[]Feature', 0, 32767, None, None, (), False),
        ('rack', 'string', 0, 32767, (0, 32767), None, '', False),
        ('is_migrating_zk_broker', 'bool', 1, 32767, None, None, False, False),
        ('log_dirs', '[]uuid', 2, 32767, None, None, (), True),
        ('previous_broker_epoch', 'int64', 3, 32767, None, None, -1, True),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        cluster_id: str = '',
        incarnation_id: UUID = ZERO_UUID,
        listeners: list[BrokerRegistrationRequest.Listener] = UNSET,
        features: list[BrokerRegistrationRequest.Feature] = UNSET,
        rack: str | None = '',
        is_migrating_zk_broker: bool = False,
        log_dirs: list[UUID] = UNSET,
        previous_broker_epoch: int = -1,
    ) -> None:
        self.broker_id = broker_id
        self.cluster_id = cluster_id
        self.incarnation_id = incarnation_id
        self.listeners = [] if listeners is UNSET else listeners
        self.features = [] if features is UNSET else features
        self.rack = rack
        self.is_migrating_zk_broker = is_migrating_zk_broker
        self.log_dirs = [] if log_dirs is UNSET else log_dirs
        self.previous_broker_epoch = previous_broker_epoch
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


class BrokerRegistrationResponse(Message):
    """response, versions 0-4."""

    KIND = "response"
    TYPE = 62
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 4
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "broker_epoch",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('broker_epoch', 'int64', 0, 32767, None, None, -1, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        broker_epoch: int = -1,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.broker_epoch = broker_epoch
        self.unknown_tagged_fields = None
