"""What the functions use that read and write messages: varints, tags, long values, structs.

All of it is in their globals, by the names that it has here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from struct import Struct, pack, unpack_from
from uuid import UUID

from moldau.wire.constants import Buffer
from moldau.wire.errors import WireError
from moldau.wire.message import Message
from moldau.wire.uuids import ZERO_UUID

__all__ = [
    "PACK_INT32S",
    "SHORT_ARRAY",
    "UNPACK_INT32S",
    "ZERO_UUID",
    "Decoder",
    "Encoder",
    "Scattered",
    "Struct",
    "WireError",
    "long_bytes",
    "long_string",
    "new",
    "pack",
    "read_unsigned_varint",
    "to_uuid",
    "unknown_tags",
    "unpack_from",
    "varint_tail",
    "write_tags",
    "write_unsigned_varint",
]

Encoder = Callable[[Message, bytearray], None]
Decoder = Callable[[bytes, int, int], tuple[Message, int]]

# Below it a copy costs less than one more part for the socket.
SCATTERED_BYTES_MIN = 4096

# Arrays of int32 (replicas, partitions) shorter than this are read and written by structs made in
# advance.
SHORT_ARRAY = 16
PACK_INT32S = tuple(Struct(f">B{count}i").pack for count in range(SHORT_ARRAY))
UNPACK_INT32S = tuple(Struct(f">{count}i").unpack_from for count in range(SHORT_ARRAY))

new = object.__new__


def write_unsigned_varint(out: bytearray, value: int) -> None:
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def read_unsigned_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """The value and the position after it."""
    try:
        first = buffer[position]
        if first < 128:
            return first, position + 1
        return varint_tail(buffer, position + 1, first)
    except IndexError:
        raise WireError("a varint is cut off") from None


def varint_tail(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """The rest of a varint whose first byte had its top bit set."""
    value = first & 127
    for shift in (7, 14, 21, 28):
        byte = buffer[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value > 0xFFFFFFFF:
                break
            return value, position
    raise WireError("a varint is longer than 32 bits")


def unknown_tags(
    buffer: bytes, position: int, end: int, count: int
) -> tuple[dict[int, bytes], int]:
    """The tag section of a struct that knows no tags, from after the first byte of its count."""
    if count > 127:
        count, position = varint_tail(buffer, position, count)
    if count > end - position:
        raise WireError("there are more tagged fields than bytes")
    tags = {}
    for _ in range(count):
        tag, position = read_unsigned_varint(buffer, position)
        size, position = read_unsigned_varint(buffer, position)
        if size > end - position:
            raise WireError("a tagged field is cut off")
        tags[tag] = buffer[position : position + size]
        position += size
    return tags, position


@lru_cache(maxsize=8192)
def to_uuid(raw: bytes) -> UUID:
    # The same topic ids come again and again, and making a UUID is slow.
    return UUID(bytes=raw)


def long_string(out: bytearray, data: bytes) -> None:
    """Append the compact form of a string of more than 126 bytes."""
    if len(data) > 32767:
        raise WireError(f"a string of {len(data)} bytes is too long: at most 32767")
    write_unsigned_varint(out, len(data) + 1)
    out += data


class Scattered(bytearray):
    """What is written, without the long byte strings of it: those are not copied.

    `cuts` says where each of them belongs; `parts` gives all of it in order.
    """

    __slots__ = ("cuts",)

    def __init__(self, start: bytes = b"") -> None:
        super().__init__(start)
        self.cuts: list[tuple[int, Buffer]] = []

    @property
    def whole_size(self) -> int:
        return len(self) + sum(len(data) for _, data in self.cuts)

    def parts(self) -> list[Buffer]:
        """The bytes in order; where nothing was left out it is one part."""
        if not self.cuts:
            return [self]
        found: list[Buffer] = []
        start = 0
        view = memoryview(self)
        for position, data in self.cuts:
            if position > start:
                found.append(view[start:position])
            found.append(data)
            start = position
        if start < len(self):
            found.append(view[start:])
        return found


def long_bytes(out: bytearray, data: bytes) -> None:
    """Append the compact form of more than 126 bytes."""
    write_unsigned_varint(out, len(data) + 1)
    if len(data) >= SCATTERED_BYTES_MIN and type(out) is Scattered:
        out.cuts.append((len(out), data))
    else:
        out += data


def write_tags(out: bytearray, tags: dict[int, bytes]) -> None:
    write_unsigned_varint(out, len(tags))
    for tag in sorted(tags):
        data = tags[tag]
        size = len(data)
        if tag < 128 and size < 128:
            # Nearly all: thousands of metadata records are written when a broker stops.
            out.append(tag)
            out.append(size)
        else:
            write_unsigned_varint(out, tag)
            write_unsigned_varint(out, size)
        out += data
