"""Decodes what clients send. Whatever is wrong raises MqttError; no input does anything else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moldau.services.mqtt.machine.packets import (
    V4,
    V5,
    Ack,
    Auth,
    Connect,
    Disconnect,
    Packet,
    PacketType,
    Ping,
    Publish,
    Subscribe,
    SubscribeRequest,
    Unsubscribe,
    Will,
)
from moldau.services.mqtt.machine.properties import (
    NO_PROPERTIES,
    Properties,
    Property,
    read_binary,
    read_properties,
    read_text,
    read_varint,
)
from moldau.services.mqtt.machine.reasons import MqttError, Reason, malformed, protocol_error
from moldau.services.mqtt.machine.topics import check_topic_name

__all__ = ["Framer", "decode_connect", "decode_packet"]

_MESSAGE: Final = frozenset({0x01, 0x02, 0x03, 0x08, 0x09, 0x26})
_PUBLISH: Final = _MESSAGE | {Property.TOPIC_ALIAS}
_CONNECT: Final = frozenset({0x11, 0x15, 0x16, 0x17, 0x19, 0x21, 0x22, 0x26, 0x27})
_WILL: Final = _MESSAGE | {Property.WILL_DELAY}
_ACK: Final = frozenset({0x1F, 0x26})
_SUBSCRIBE: Final = frozenset({Property.SUBSCRIPTION_ID.value, 0x26})
_UNSUBSCRIBE: Final = frozenset({0x26})
_DISCONNECT: Final = frozenset({0x11, 0x1F, 0x26})
_AUTH: Final = frozenset({0x15, 0x16, 0x1F, 0x26})

_AUTH_REASONS: Final = frozenset({0x00, 0x18, 0x19})

_ACKS: Final = {each.value: each for each in PacketType if 4 <= each <= 7}
_ACK_REASONS: Final = {
    PacketType.PUBACK: frozenset({0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99}),
    PacketType.PUBREC: frozenset({0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99}),
    PacketType.PUBREL: frozenset({0x00, 0x92}),
    PacketType.PUBCOMP: frozenset({0x00, 0x92}),
}
_DISCONNECT_REASONS: Final = frozenset(
    {0x00, 0x04, *range(0x80, 0x84), 0x87, 0x89, 0x8B, *range(0x8D, 0x91), 0x93, 0x94, 0x95}
    | {*range(0x96, 0xA3)}
)


class Framer:
    """Splits a stream into packets: their first byte and the rest after the length."""

    __slots__ = ("_buffer", "_size_max")

    def __init__(self, size_max: int) -> None:
        """`size_max` is that of a whole packet."""
        self._buffer = b""
        self._size_max = size_max

    @property
    def pending(self) -> int:
        """Bytes of a packet that is not complete."""
        return len(self._buffer)

    def join(self, data: bytes) -> bytes:
        """What is not complete with what has come now, to be fed."""
        buffer, self._buffer = self._buffer, b""
        return buffer + data if buffer else data

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """All packets that are complete now. Raises MqttError for one that is too large.

        Must be iterated to its end before more is fed.
        """
        buffer = self._buffer + data if self._buffer else data
        at, size = 0, len(buffer)
        while size - at >= 2:
            length = buffer[at + 1]
            start = at + 2
            if length >= 0x80:
                # Up to four bytes; too few of them so far is not an error.
                if size - at < 5 and all(byte >= 0x80 for byte in buffer[start:size]):
                    break
                length, start = read_varint(buffer, at + 1)
            end = start + length
            if end - at > self._size_max:
                self._buffer = b""
                raise MqttError(
                    Reason.PACKET_TOO_LARGE,
                    f"a packet of {end - at} bytes is larger than packet.size.max, "
                    f"{self._size_max}",
                )
            if end > size:
                break
            first = buffer[at]
            at = end
            self._buffer = b""
            yield first, buffer[start:end]
        self._buffer = buffer[at:]


def decode_packet(first: int, body: bytes, version: int) -> Packet:
    """Any packet of a client but its CONNECT. Raises MqttError."""
    kind = first >> 4
    if kind == PacketType.PUBLISH:
        return _publish(first, body, version)
    if kind in _ACKS:
        return _ack(_ACKS[kind], first & 0x0F, body, version)
    flags = first & 0x0F
    if kind == PacketType.SUBSCRIBE:
        _check_flags(flags, 2)
        return _subscribe(body, version)
    if kind == PacketType.UNSUBSCRIBE:
        _check_flags(flags, 2)
        return _unsubscribe(body, version)
    _check_flags(flags, 0)
    if kind == PacketType.PINGREQ:
        _check_end(body, 0)
        return Ping()
    if kind == PacketType.DISCONNECT:
        reason, properties = _reason(body, version, _DISCONNECT)
        if reason not in _DISCONNECT_REASONS:
            raise malformed(f"DISCONNECT must not have the reason 0x{reason:02x}")
        return Disconnect(reason, properties)
    if kind == PacketType.AUTH and version == V5:
        reason, properties = _reason(body, version, _AUTH)
        if reason not in _AUTH_REASONS:
            raise malformed(f"AUTH must not have the reason 0x{reason:02x}")
        return Auth(reason, properties)
    if kind == PacketType.CONNECT:
        raise protocol_error("a second CONNECT on the same connection")
    raise protocol_error(f"a client must not send packets of type {kind}")


def _publish(first: int, body: bytes, version: int) -> Publish:
    qos = (first >> 1) & 3
    if qos == 3:
        raise malformed("QoS 3 does not exist")
    dup = bool(first & 8)
    if dup and not qos:
        raise malformed("DUP is set with QoS 0")
    topic, at = read_text(body, 0)
    packet_id = 0
    if qos:
        packet_id, at = _packet_id(body, at)
    properties = NO_PROPERTIES
    if version == V5:
        if at >= len(body):
            raise malformed("PUBLISH has no properties")
        if body[at]:
            properties, at = read_properties(body, at, _PUBLISH)
        else:
            at += 1
    if topic:
        check_topic_name(topic)
    elif Property.TOPIC_ALIAS not in properties:
        raise protocol_error("PUBLISH has neither a topic name nor a topic alias")
    _check_response_topic(properties)
    return Publish(topic, body[at:], qos, bool(first & 1), dup, packet_id, properties)


def _check_response_topic(properties: Properties) -> None:
    if Property.RESPONSE_TOPIC in properties:
        check_topic_name(properties[Property.RESPONSE_TOPIC])


def _packet_id(body: bytes, at: int) -> tuple[int, int]:
    if at + 2 > len(body):
        raise malformed("a packet identifier is missing")
    found = body[at] << 8 | body[at + 1]
    if not found:
        raise protocol_error("a packet identifier must not be 0")
    return found, at + 2


def _ack(kind: PacketType, flags: int, body: bytes, version: int) -> Ack:
    _check_flags(flags, 2 if kind == PacketType.PUBREL else 0)
    packet_id, at = _packet_id(body, 0)
    if version != V5:
        _check_end(body, at)
    if at == len(body):
        return Ack(kind, packet_id)
    reason, properties = _reason(body[at:], version, _ACK)
    if reason not in _ACK_REASONS[kind]:
        raise malformed(f"{kind.name} must not have the reason 0x{reason:02x}")
    return Ack(kind, packet_id, reason, properties)


def _reason(body: bytes, version: int, allowed: frozenset[int]) -> tuple[int, Properties]:
    """What ends many packets of MQTT 5: a reason and properties, both optional."""
    if version != V5:
        _check_end(body, 0)
        return Reason.SUCCESS, NO_PROPERTIES
    if not body:
        return Reason.SUCCESS, NO_PROPERTIES
    if len(body) == 1:
        return body[0], NO_PROPERTIES
    properties, at = read_properties(body, 1, allowed)
    _check_end(body, at)
    return body[0], properties


def _subscribe(body: bytes, version: int) -> Subscribe:
    packet_id, at = _packet_id(body, 0)
    properties = NO_PROPERTIES
    if version == V5:
        properties, at = read_properties(body, at, _SUBSCRIBE)
        if len(properties.get(Property.SUBSCRIPTION_ID, ())) > 1:
            raise protocol_error("SUBSCRIBE has more than one subscription identifier")
    requests = []
    while at < len(body):
        text, at = read_text(body, at)
        if at >= len(body):
            raise malformed("a topic filter has no options")
        requests.append(_request(text, body[at], version))
        at += 1
    if not requests:
        raise protocol_error("SUBSCRIBE has no topic filter")
    return Subscribe(packet_id, tuple(requests), properties)


def _request(text: str, options: int, version: int) -> SubscribeRequest:
    qos = options & 3
    if qos == 3 or options & (0xC0 if version == V5 else 0xFC):
        raise malformed(f"0x{options:02x} is not a subscription option")
    handling = (options >> 4) & 3
    if handling == 3:
        raise protocol_error("retain handling 3 does not exist")
    no_local = bool(options & 4)
    if no_local and text.startswith("$share/"):
        raise protocol_error("a shared subscription must not have the option no local")
    return SubscribeRequest(text, qos, no_local, bool(options & 8), handling)


def _unsubscribe(body: bytes, version: int) -> Unsubscribe:
    packet_id, at = _packet_id(body, 0)
    properties = NO_PROPERTIES
    if version == V5:
        properties, at = read_properties(body, at, _UNSUBSCRIBE)
    filters = []
    while at < len(body):
        text, at = read_text(body, at)
        filters.append(text)
    if not filters:
        raise protocol_error("UNSUBSCRIBE has no topic filter")
    return Unsubscribe(packet_id, tuple(filters), properties)


def decode_connect(first: int, body: bytes) -> Connect:
    """The first packet of a connection. Raises MqttError."""
    if first != PacketType.CONNECT << 4:
        raise protocol_error("the first packet must be CONNECT")
    name, at = read_text(body, 0)
    if at + 4 > len(body):
        raise malformed("CONNECT ends too early")
    version, flags = body[at], body[at + 1]
    if name not in ("MQTT", "MQIsdp"):
        raise protocol_error("the protocol name is not MQTT")
    if name != "MQTT" or version not in (V4, V5):
        raise MqttError(
            Reason.UNSUPPORTED_PROTOCOL_VERSION,
            f"MQTT 3.1.1 and 5 are supported, not protocol level {version}",
        )
    keep_alive_s = body[at + 2] << 8 | body[at + 3]
    at += 4
    if flags & 1:
        raise malformed("the reserved flag of CONNECT is set")
    properties = NO_PROPERTIES
    if version == V5:
        properties, at = read_properties(body, at, _CONNECT)
        if Property.AUTHENTICATION_DATA in properties and 0x15 not in properties:
            raise protocol_error("authentication data without an authentication method")
    client_id, at = read_text(body, at)
    will, at = _will(flags, body, at, version)
    user: str | None = None
    password: bytes | None = None
    if flags & 0x80:
        user, at = read_text(body, at)
    elif flags & 0x40 and version == V4:
        raise malformed("CONNECT has a password but no user name")
    if flags & 0x40:
        password, at = read_binary(body, at)
    _check_end(body, at)
    clean = bool(flags & 2)
    return Connect(version, client_id, clean, keep_alive_s, properties, will, user, password)


def _will(flags: int, body: bytes, at: int, version: int) -> tuple[Will | None, int]:
    qos = (flags >> 3) & 3
    retain = bool(flags & 0x20)
    if not flags & 4:
        if qos or retain:
            raise malformed("CONNECT has the QoS or retain flag of a will, but no will")
        return None, at
    if qos == 3:
        raise malformed("QoS 3 does not exist")
    properties = NO_PROPERTIES
    if version == V5:
        properties, at = read_properties(body, at, _WILL)
        _check_response_topic(properties)
    topic, at = read_text(body, at)
    check_topic_name(topic)
    payload, at = read_binary(body, at)
    return Will(topic, payload, qos, retain, properties), at


def _check_flags(flags: int, wanted: int) -> None:
    if flags != wanted:
        raise malformed(f"the flags of a packet are {flags}, not {wanted}")


def _check_end(body: bytes, at: int) -> None:
    if at != len(body):
        raise malformed("a packet is longer than its fields")
