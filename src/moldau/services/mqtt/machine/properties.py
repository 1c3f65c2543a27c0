"""Properties of MQTT 5 packets, as dicts by identifier.

User properties are a list of pairs, and subscription identifiers a list of numbers; every other
property occurs once. Which packet may have which property is checked here.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final

from moldau.services.mqtt.machine.reasons import malformed, protocol_error

__all__ = [
    "NO_PROPERTIES",
    "Properties",
    "Property",
    "read_binary",
    "read_properties",
    "read_text",
    "read_varint",
    "write_binary",
    "write_properties",
    "write_text",
    "write_varint",
]

Properties = dict[int, Any]
NO_PROPERTIES: Final[Properties] = {}


class Property(IntEnum):
    PAYLOAD_FORMAT = 0x01
    MESSAGE_EXPIRY = 0x02
    CONTENT_TYPE = 0x03
    RESPONSE_TOPIC = 0x08
    CORRELATION_DATA = 0x09
    SUBSCRIPTION_ID = 0x0B
    SESSION_EXPIRY = 0x11
    ASSIGNED_CLIENT_ID = 0x12
    SERVER_KEEP_ALIVE = 0x13
    AUTHENTICATION_METHOD = 0x15
    AUTHENTICATION_DATA = 0x16
    REQUEST_PROBLEM_INFORMATION = 0x17
    WILL_DELAY = 0x18
    REQUEST_RESPONSE_INFORMATION = 0x19
    RESPONSE_INFORMATION = 0x1A
    SERVER_REFERENCE = 0x1C
    REASON_STRING = 0x1F
    RECEIVE_MAXIMUM = 0x21
    TOPIC_ALIAS_MAXIMUM = 0x22
    TOPIC_ALIAS = 0x23
    MAXIMUM_QOS = 0x24
    RETAIN_AVAILABLE = 0x25
    USER_PROPERTY = 0x26
    MAXIMUM_PACKET_SIZE = 0x27
    WILDCARD_AVAILABLE = 0x28
    SUBSCRIPTION_IDS_AVAILABLE = 0x29
    SHARED_AVAILABLE = 0x2A


_BYTE, _TWO, _FOUR, _VARINT, _TEXT, _BINARY, _PAIR = range(7)

_KINDS: Final[dict[int, int]] = {
    0x01: _BYTE, 0x02: _FOUR, 0x03: _TEXT, 0x08: _TEXT, 0x09: _BINARY, 0x0B: _VARINT,
    0x11: _FOUR, 0x12: _TEXT, 0x13: _TWO, 0x15: _TEXT, 0x16: _BINARY, 0x17: _BYTE, 0x18: _FOUR,
    0x19: _BYTE, 0x1A: _TEXT, 0x1C: _TEXT, 0x1F: _TEXT, 0x21: _TWO, 0x22: _TWO, 0x23: _TWO,
    0x24: _BYTE, 0x25: _BYTE, 0x26: _PAIR, 0x27: _FOUR, 0x28: _BYTE, 0x29: _BYTE, 0x2A: _BYTE,
}  # fmt: skip
_FLAGS: Final = frozenset({0x01, 0x17, 0x19, 0x24, 0x25, 0x28, 0x29, 0x2A})
_NOT_ZERO: Final = frozenset({0x0B, 0x21, 0x27})

_short = struct.Struct(">H")
_long = struct.Struct(">I")

VARINT_MAX: Final = 268_435_455


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of one to four bytes, and where it ends."""
    value = shift = 0
    for length in range(4):
        if at + length >= len(data):
            raise malformed("a variable byte integer ends too early")
        byte = data[at + length]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if length and not byte:
                raise malformed("a variable byte integer is longer than it must be")
            return value, at + length + 1
        shift += 7
    raise malformed("a variable byte integer has more than four bytes")


def write_varint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_binary(data: bytes, at: int) -> tuple[bytes, int]:
    if at + 2 > len(data):
        raise malformed("a field ends too early")
    start = at + 2
    end = start + (data[at] << 8 | data[at + 1])
    if end > len(data):
        raise malformed("a field ends too early")
    return data[start:end], end


def read_text(data: bytes, at: int) -> tuple[str, int]:
    raw, end = read_binary(data, at)
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise malformed("a string is not UTF-8") from None
    if "\0" in text:
        raise malformed("a string contains the character U+0000")
    return text, end


def write_binary(data: bytes) -> bytes:
    return _short.pack(len(data)) + data


def write_text(text: str) -> bytes:
    data = text.encode()
    return _short.pack(len(data)) + data


def read_properties(data: bytes, at: int, allowed: frozenset[int]) -> tuple[Properties, int]:
    """The properties of a packet and where they end. Raises MqttError."""
    size, at = read_varint(data, at)
    if not size:
        return NO_PROPERTIES, at
    end = at + size
    if end > len(data):
        raise malformed("the properties are longer than the packet")
    found: Properties = {}
    # Nothing inside may read beyond the properties.
    inside = data[:end]
    while at < end:
        number, at = read_varint(inside, at)
        kind = _KINDS.get(number)
        if kind is None:
            raise malformed(f"property 0x{number:02x} does not exist")
        if number not in allowed:
            raise protocol_error(f"this packet must not have the property 0x{number:02x}")
        value, at = _read_value(inside, at, kind)
        if kind == _PAIR or number == Property.SUBSCRIPTION_ID:
            if number == Property.SUBSCRIPTION_ID and not value:
                raise protocol_error("a subscription identifier must not be 0")
            found.setdefault(number, []).append(value)
            continue
        if number in found:
            raise protocol_error(f"property 0x{number:02x} occurs twice")
        if (number in _FLAGS and value > 1) or (number in _NOT_ZERO and not value):
            raise protocol_error(f"property 0x{number:02x} must not be {value}")
        found[number] = value
    return found, end


def _read_value(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind == _TEXT:
        return read_text(data, at)
    if kind == _PAIR:
        name, at = read_text(data, at)
        value, at = read_text(data, at)
        return (name, value), at
    if kind == _BINARY:
        return read_binary(data, at)
    if kind == _VARINT:
        return read_varint(data, at)
    size = (1, 2, 4)[kind]
    if at + size > len(data):
        raise malformed("a property ends too early")
    return int.from_bytes(data[at : at + size], "big"), at + size


def write_properties(properties: Mapping[int, Any]) -> bytes:
    """With their length in front."""
    if not properties:
        return b"\0"
    parts: list[bytes] = []
    for number, value in properties.items():
        kind = _KINDS[number]
        head = bytes((number,))
        if kind == _PAIR:
            for name, text in value:
                parts += (head, write_text(name), write_text(text))
        elif kind == _VARINT:
            for each in value:
                parts += (head, write_varint(each))
        elif kind == _TEXT:
            parts += (head, write_text(value))
        elif kind == _BINARY:
            parts += (head, write_binary(value))
        elif kind == _BYTE:
            parts += (head, bytes((value,)))
        else:
            parts += (head, (_short if kind == _TWO else _long).pack(value))
    body = b"".join(parts)
    return write_varint(len(body)) + body
