"""The packets of MQTT 3.1.1 and 5, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from moldau.services.mqtt.machine.properties import NO_PROPERTIES, Properties
from moldau.services.mqtt.machine.reasons import Reason

__all__ = [
    "V4",
    "V5",
    "Ack",
    "Auth",
    "Connect",
    "Disconnect",
    "Packet",
    "PacketType",
    "Ping",
    "Publish",
    "Subscribe",
    "SubscribeRequest",
    "Unsubscribe",
    "Will",
]

V4 = 4
V5 = 5


class PacketType(IntEnum):
    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14
    AUTH = 15


@dataclass(frozen=True, slots=True)
class Will:
    topic: str
    payload: bytes
    qos: int
    retain: bool
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Connect:
    version: int
    client_id: str
    clean_start: bool
    keep_alive_s: int
    properties: Properties = field(default_factory=dict)
    will: Will | None = None
    user: str | None = None
    password: bytes | None = field(default=None, repr=False)


class Publish:
    """`packet_id` is 0 with QoS 0. Not a dataclass: thousands a second are made."""

    __slots__ = ("dup", "packet_id", "payload", "properties", "qos", "retain", "topic")

    def __init__(
        self,
        topic: str,
        payload: bytes,
        qos: int = 0,
        retain: bool = False,
        dup: bool = False,
        packet_id: int = 0,
        properties: Properties = NO_PROPERTIES,
    ) -> None:
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retain = retain
        self.dup = dup
        self.packet_id = packet_id
        self.properties = properties

    def _fields(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Publish) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash((self.topic, self.packet_id, self.payload))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"Publish({shown})"


@dataclass(frozen=True, slots=True)
class Ack:
    """PUBACK, PUBREC, PUBREL or PUBCOMP."""

    kind: PacketType
    packet_id: int
    reason: int = Reason.SUCCESS
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SubscribeRequest:
    filter: str
    qos: int
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0


@dataclass(frozen=True, slots=True)
class Subscribe:
    packet_id: int
    requests: tuple[SubscribeRequest, ...]
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    packet_id: int
    filters: tuple[str, ...]
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ping:
    pass


@dataclass(frozen=True, slots=True)
class Disconnect:
    reason: int = Reason.SUCCESS
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Auth:
    reason: int = Reason.SUCCESS
    properties: Properties = field(default_factory=dict)


Packet = Connect | Publish | Ack | Subscribe | Unsubscribe | Ping | Disconnect | Auth
