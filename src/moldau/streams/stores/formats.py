"""The bytes of changelogs and internal topics, as Kafka Streams writes them.

An application's topics can be taken over from the Java library, and the other way round.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from moldau.streams.errors import StreamsError
from moldau.streams.longs import window_key
from moldau.streams.records import Headers, RecordContext

_LONG = struct.Struct(">q")
_INT = struct.Struct(">i")
_SESSION = struct.Struct(">qq")
_BOTH, _NEW, _OLD = b"\x02", b"\x01", b"\x00"


def timestamped_value(value: bytes | None, timestamp: int) -> bytes | None:
    """A value of a timestamped store: its time, then its bytes."""
    return None if value is None else _LONG.pack(timestamp) + value


def read_timestamped_value(data: bytes) -> tuple[bytes, int]:
    """The value's bytes and its time."""
    return data[8:], _LONG.unpack_from(data)[0]


def window_store_key(key: bytes, start: int, sequence: int) -> bytes:
    """A key of a window store's changelog."""
    return window_key(key, start, sequence)


def buffer_key(key: bytes, timestamp: int, sequence: int) -> bytes:
    """A key of the buffer of a join with grace: a zero byte, and the time comes first."""
    return b"\x00" + _LONG.pack(timestamp) + key + _INT.pack(sequence)


def read_buffer_key(data: bytes) -> bytes:
    """The key in a key of the buffer of a join with grace."""
    return data[9:-4]


def session_store_key(key: bytes, start: int, end: int) -> bytes:
    """A key of a session store's changelog: the end comes first."""
    return key + _SESSION.pack(end, start)


def join_side_key(key: bytes, timestamp: int, *, left: bool) -> bytes:
    """A key of the store in which an outer join keeps records that have no match yet."""
    return _LONG.pack(timestamp) + (b"\x01" if left else b"\x00") + key


def varint(value: int) -> bytes:
    """The bytes of a number of 32 bits as records have it: small ones, also negative, are short."""
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data: bytes) -> tuple[int, int]:
    """The number that some bytes begin with, and how many bytes it has."""
    value = shift = 0
    for position, byte in enumerate(data[:5]):
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position + 1
        shift += 7
    raise StreamsError(f"there is no valid length in {data[:5].hex()}")


def change_value(new: bytes | None, old: bytes | None) -> bytes:
    """An update of a table in a repartition topic: the new value, the old one, or both."""
    if new is not None and old is not None:
        return varint(len(new)) + new + old + _BOTH
    if new is not None:
        return new + _NEW
    if old is not None:
        return old + _OLD
    raise StreamsError("both the old and the new value of a table's update are null")


def read_change_value(data: bytes) -> tuple[bytes | None, bytes | None]:
    """The new and the old value."""
    marker = data[-1:]
    if marker == _NEW:
        return data[:-1], None
    if marker == _OLD:
        return None, data[:-1]
    if marker != _BOTH:
        raise StreamsError(f"a table's repartition record ends in {marker.hex()}, not 00 to 02")
    length, start = read_varint(data)
    return data[start : start + length], data[start + length : -1]


def header_bytes(headers: Headers) -> bytes:
    """Headers in a value of a store with headers: their number, then size and bytes of each part.

    No headers are no bytes.
    """
    if not headers:
        return b""
    parts = [varint(len(headers))]
    for name, value in headers:
        raw = name.encode()
        parts += [varint(len(raw)), raw]
        parts += [varint(-1)] if value is None else [varint(len(value)), value]
    return b"".join(parts)


def read_header_bytes(data: bytes) -> Headers:
    """The headers."""
    if not data:
        return ()
    found: list[tuple[str, bytes | None]] = []
    count, at = read_varint(data)
    for _ in range(count):
        name, at = _read_sized(data, at)
        value, at = _read_sized(data, at)
        found.append(((name or b"").decode(), value))
    return tuple(found)


def _read_sized(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, length = read_varint(data[at : at + 5])
    at += length
    return (None, at) if size < 0 else (data[at : at + size], at + size)


class Subscription(NamedTuple):
    """What a foreign-key join registers with the other table."""

    hash: bytes | None
    instruction: int
    primary_key: bytes
    primary_partition: int


def subscription_value(subscription: Subscription) -> bytes:
    """Version 1: flags, instruction, the left value's hash unless it is null, key, partition."""
    found = subscription.hash
    return (
        bytes((0x01 if found is not None else 0x81, subscription.instruction))
        + (found or b"")
        + subscription.primary_key
        + _INT.pack(subscription.primary_partition)
    )


def read_subscription_value(data: bytes) -> Subscription:
    """The subscription; version 0 has no partition and reads as partition -1."""
    version, start = data[0] & 0x7F, 2
    if version > 1:
        raise StreamsError(f"a foreign-key subscription has version {version}, newer than 1")
    found = None
    if not data[0] & 0x80:
        found, start = data[2:18], 18
    if version == 0:
        return Subscription(found, data[1], data[start:], -1)
    return Subscription(found, data[1], data[start:-4], _INT.unpack(data[-4:])[0])


def subscription_key(foreign_key: bytes, primary_key: bytes) -> bytes:
    """A key of the subscription store: length and bytes of the foreign key, then the primary."""
    return _INT.pack(len(foreign_key)) + foreign_key + primary_key


def read_subscription_key(data: bytes) -> tuple[bytes, bytes]:
    """The foreign and the primary key."""
    (length,) = _INT.unpack_from(data)
    return data[4 : 4 + length], data[4 + length :]


def response_value(found: bytes | None, value: bytes | None) -> bytes:
    """What the other table answers: flags, the hash of the left value, the right value."""
    return (b"\x00" if found is not None else b"\x80") + (found or b"") + (value or b"")


def read_response_value(data: bytes) -> tuple[bytes | None, bytes | None]:
    """The hash and the right value. An empty value reads as null, as in Kafka Streams."""
    start = 1 if data[0] & 0x80 else 17
    return (None if start == 1 else data[1:17]), data[start:] or None


#: The version of a buffer's changelog records, which carry it in a header.
BUFFER_HEADERS: Headers = (("v", b"\x03"),)
_NULL, _SAME_AS_PRIOR = -1, -2


class Buffered(NamedTuple):
    """An update that a buffer holds back: the value emitted last, the old and the new one."""

    context: RecordContext
    prior: bytes | None
    old: bytes | None
    new: bytes | None
    time: int


def _sized(data: bytes | None) -> bytes:
    return _INT.pack(_NULL) if data is None else _INT.pack(len(data)) + data


def buffered_value(held: Buffered) -> bytes:
    """A value of a buffer's changelog: where the record comes from, three values, its time."""
    context = held.context
    parts = [_LONG.pack(context.timestamp), _LONG.pack(context.offset)]
    parts += [_sized(context.topic.encode()), _INT.pack(context.partition)]
    parts.append(_INT.pack(len(context.headers)))
    for name, value in context.headers:
        parts += [_sized(name.encode()), _sized(value)]
    old = _sized(held.old)
    if held.old is not None and held.old == held.prior:
        old = _INT.pack(_SAME_AS_PRIOR)
    return b"".join([*parts, _sized(held.prior), old, _sized(held.new), _LONG.pack(held.time)])


class _Cursor:
    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, layout: struct.Struct) -> int:
        (value,) = layout.unpack_from(self._data, self._at)
        self._at += layout.size
        return int(value)

    def sized(self, prior: bytes | None = None) -> bytes | None:
        size = self.number(_INT)
        if size < 0:
            return prior if size == _SAME_AS_PRIOR else None
        self._at += size
        return self._data[self._at - size : self._at]


def read_buffered_value(data: bytes) -> Buffered:
    """What was held back."""
    cursor = _Cursor(data)
    timestamp, offset = cursor.number(_LONG), cursor.number(_LONG)
    topic, partition = (cursor.sized() or b"").decode(), cursor.number(_INT)
    headers = tuple(
        ((cursor.sized() or b"").decode(), cursor.sized()) for _ in range(cursor.number(_INT))
    )
    context = RecordContext(topic, partition, offset, timestamp, headers)
    prior = cursor.sized()
    return Buffered(context, prior, cursor.sized(prior), cursor.sized(), cursor.number(_LONG))
