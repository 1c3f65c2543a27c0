"""Encodes what the proxy sends, and in tests what clients send."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

from moldau.services.mqtt.machine.packets import (
    V5,
    Connect,
    PacketType,
    Subscribe,
    Unsubscribe,
)
from moldau.services.mqtt.machine.properties import (
    NO_PROPERTIES,
    write_binary,
    write_properties,
    write_text,
    write_varint,
)

__all__ = [
    "PINGREQ",
    "PINGRESP",
    "ack",
    "auth",
    "connack",
    "connect",
    "disconnect",
    "publish",
    "suback",
    "subscribe",
    "unsuback",
    "unsubscribe",
]

PINGREQ: Final = b"\xc0\x00"
PINGRESP: Final = b"\xd0\x00"
_short = struct.Struct(">H")
_small_ack = struct.Struct(">BBH")


def _packet(first: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return bytes((first,)) + write_varint(len(body)) + body


def connack(
    version: int, *, session_present: bool, code: int, properties: Mapping[int, Any] = NO_PROPERTIES
) -> bytes:
    head = bytes((int(session_present), code))
    if version == V5:
        return _packet(0x20, head, write_properties(properties))
    return _packet(0x20, head)


def publish(
    version: int,
    topic: str,
    payload: bytes,
    *,
    qos: int = 0,
    retain: bool = False,
    dup: bool = False,
    packet_id: int = 0,
    properties: Mapping[int, Any] = NO_PROPERTIES,
) -> bytes:
    first = 0x30 | (8 if dup else 0) | qos << 1 | (1 if retain else 0)
    name = topic.encode()
    head = _short.pack(len(name)) + name
    if qos:
        head += _short.pack(packet_id)
    if version == V5:
        head += write_properties(properties) if properties else b"\0"
    return bytes((first,)) + write_varint(len(head) + len(payload)) + head + payload


def ack(
    version: int,
    kind: PacketType,
    packet_id: int,
    reason: int = 0,
    properties: Mapping[int, Any] = NO_PROPERTIES,
) -> bytes:
    first = kind << 4 | (2 if kind == PacketType.PUBREL else 0)
    if version != V5 or not (reason or properties):
        return _small_ack.pack(first, 2, packet_id)
    if not properties:
        return _packet(first, _short.pack(packet_id), bytes((reason,)))
    return _packet(first, _short.pack(packet_id), bytes((reason,)), write_properties(properties))


def suback(
    version: int,
    packet_id: int,
    codes: Sequence[int],
    properties: Mapping[int, Any] = NO_PROPERTIES,
) -> bytes:
    if version == V5:
        return _packet(0x90, _short.pack(packet_id), write_properties(properties), bytes(codes))
    # 3.1.1 has one code for all failures.
    return _packet(0x90, _short.pack(packet_id), bytes(min(code, 0x80) for code in codes))


def unsuback(version: int, packet_id: int, codes: Sequence[int]) -> bytes:
    if version == V5:
        return _packet(0xB0, _short.pack(packet_id), b"\0", bytes(codes))
    return _packet(0xB0, _short.pack(packet_id))


def disconnect(
    version: int, reason: int = 0, properties: Mapping[int, Any] = NO_PROPERTIES
) -> bytes:
    if version != V5 or not (reason or properties):
        return _packet(0xE0)
    if not properties:
        return _packet(0xE0, bytes((reason,)))
    return _packet(0xE0, bytes((reason,)), write_properties(properties))


def auth(reason: int, properties: Mapping[int, Any] = NO_PROPERTIES) -> bytes:
    return _packet(0xF0, bytes((reason,)), write_properties(properties))


# What clients send: for tests, the benchmark and fuzzing.


def connect(packet: Connect) -> bytes:
    flags = 2 if packet.clean_start else 0
    parts = [write_text(packet.client_id)]
    will = packet.will
    if will is not None:
        flags |= 4 | will.qos << 3 | (0x20 if will.retain else 0)
        if packet.version == V5:
            parts.append(write_properties(will.properties))
        parts += (write_text(will.topic), write_binary(will.payload))
    if packet.user is not None:
        flags |= 0x80
        parts.append(write_text(packet.user))
    if packet.password is not None:
        flags |= 0x40
        parts.append(write_binary(packet.password))
    head = write_text("MQTT") + bytes((packet.version, flags)) + _short.pack(packet.keep_alive_s)
    if packet.version == V5:
        head += write_properties(packet.properties)
    return _packet(0x10, head, *parts)


def subscribe(version: int, packet: Subscribe) -> bytes:
    parts = [_short.pack(packet.packet_id)]
    if version == V5:
        parts.append(write_properties(packet.properties))
    for each in packet.requests:
        options = each.qos
        if version == V5:
            options |= each.no_local << 2 | each.retain_as_published << 3
            options |= each.retain_handling << 4
        parts += (write_text(each.filter), bytes((options,)))
    return _packet(0x82, *parts)


def unsubscribe(version: int, packet: Unsubscribe) -> bytes:
    parts = [_short.pack(packet.packet_id)]
    if version == V5:
        parts.append(write_properties(packet.properties))
    parts += [write_text(each) for each in packet.filters]
    return _packet(0xA2, *parts)
