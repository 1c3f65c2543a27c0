"""Reads and writes messages.

For each message class and version one pair of functions is made on first use, from the class's
field table (`_reader_source` and `_writer_source`), and kept. They touch no table at run
time: neighbouring fixed-width fields go through one precompiled struct, nested structs and arrays
are written out in place, varints of one byte need no call.

Invariants: bytes that are no valid message raise WireError and nothing else, and no
allocation is larger than the bytes at hand can justify. A field that the version lacks must have
its default value, unless it is ignorable; otherwise writing raises WireError.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar
from uuid import UUID

from moldau.wire.codec_source import SHORT_ARRAY
from moldau.wire.constants import Buffer
from moldau.wire.errors import WireError
from moldau.wire.message import Message
from moldau.wire.reader_source import reader_source
from moldau.wire.writer_source import writer_source

M = TypeVar("M", bound=Message)

Encoder = Callable[[Message, bytearray], None]
Decoder = Callable[[bytes, int, int], tuple[Message, int]]

# Below it a copy costs less than one more part for the socket.
SCATTERED_BYTES_MIN = 4096

_encoders: dict[tuple[type[Message], int], Encoder] = {}
_decoders: dict[tuple[type[Message], int], Decoder] = {}


def encode(message: Message, version: int) -> bytes:
    """The body of `message` in `version`."""
    out = bytearray()
    encode_into(message, version, out)
    return bytes(out)


def encode_into(message: Message, version: int, out: bytearray) -> None:
    """Append the body of `message` to `out`; after a WireError `out` may hold part of it."""
    key = (type(message), version)
    encoder = _encoders.get(key) or _make_encoder(*key)
    try:
        encoder(message, out)
    except (WireError, struct.error, AttributeError, TypeError, UnicodeEncodeError) as error:
        # But for the first: a value too large, of the wrong kind, or null, for its field's type.
        name = type(message).__qualname__
        raise WireError(f"{name} v{version} cannot be written: {error}") from error


def decode(cls: type[M], version: int, buffer: Buffer, position: int = 0) -> M:
    """The message whose body starts at `position`; what follows it is not looked at."""
    return decode_prefix(cls, version, buffer, position)[0]


def decode_prefix(cls: type[M], version: int, buffer: Buffer, position: int = 0) -> tuple[M, int]:
    """The message whose body starts at `position`, and the position after it."""
    decoder = _decoders.get((cls, version)) or _make_decoder(cls, version)
    try:
        if type(buffer) is bytes:
            message, end = decoder(buffer, position, len(buffer))
        else:
            # Bytes are faster to take apart than a view, by more than the copy costs.
            data = bytes(memoryview(buffer)[position:])
            message, end = decoder(data, 0, len(data))
            end += position
    except (WireError, IndexError, ValueError, struct.error) as error:
        name = cls.__qualname__
        raise WireError(f"{name} v{version} is truncated or malformed: {error}") from error
    return message, end  # type: ignore[return-value]


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
        return _varint_tail(buffer, position + 1, first)
    except IndexError:
        raise WireError("a varint is cut off") from None


def _varint_tail(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
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


def _unknown_tags(
    buffer: bytes, position: int, end: int, count: int
) -> tuple[dict[int, bytes], int]:
    """The tag section of a struct that knows no tags, from after the first byte of its count."""
    if count > 127:
        count, position = _varint_tail(buffer, position, count)
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
def _uuid(raw: bytes) -> UUID:
    # The same topic ids come again and again, and making a UUID is slow.
    return UUID(bytes=raw)


def _long_string(out: bytearray, data: bytes) -> None:
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


def _long_bytes(out: bytearray, data: bytes) -> None:
    """Append the compact form of more than 126 bytes."""
    write_unsigned_varint(out, len(data) + 1)
    if len(data) >= SCATTERED_BYTES_MIN and type(out) is Scattered:
        out.cuts.append((len(out), data))
    else:
        out += data


def _write_tags(out: bytearray, tags: dict[int, bytes]) -> None:
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


_PACK_INT32S = tuple(struct.Struct(f">B{count}i").pack for count in range(SHORT_ARRAY))
_UNPACK_INT32S = tuple(struct.Struct(f">{count}i").unpack_from for count in range(SHORT_ARRAY))


def _globals() -> dict[str, Any]:
    return {
        "WireError": WireError,
        "ZERO_UUID": UUID(int=0),
        "new": object.__new__,
        "varint_tail": _varint_tail,
        "write_varint": write_unsigned_varint,
        "long_string": _long_string,
        "long_bytes": _long_bytes,
        "write_tags": _write_tags,
        "to_uuid": _uuid,
        "unknown_tags": _unknown_tags,
        "pack": struct.pack,
        "pack_int32s": _PACK_INT32S,
        "unpack_int32s": _UNPACK_INT32S,
        "unpack_from": struct.unpack_from,
        "Struct": struct.Struct,
    }


def _check_version(cls: type[Message], version: int) -> None:
    if "LOWEST_VERSION" not in cls.__dict__:
        raise TypeError(f"{cls.__qualname__} is a part of a message, not one by itself")
    if not cls.LOWEST_VERSION <= version <= cls.HIGHEST_VERSION:
        raise WireError(
            f"{cls.__name__} has no version {version}: "
            f"versions are {cls.LOWEST_VERSION} to {cls.HIGHEST_VERSION}"
        )


def _make_encoder(cls: type[Message], version: int) -> Encoder:
    _check_version(cls, version)
    namespace = _globals()
    source, constants = writer_source(cls, version)
    namespace.update(constants)
    exec(compile(source, f"<encoder of {cls.__name__} v{version}>", "exec"), namespace)
    encoder: Encoder = namespace["encode"]
    _encoders[cls, version] = encoder
    return encoder


def _make_decoder(cls: type[Message], version: int) -> Decoder:
    _check_version(cls, version)
    namespace = _globals()
    source, constants = reader_source(cls, version)
    namespace.update(constants)
    exec(compile(source, f"<decoder of {cls.__name__} v{version}>", "exec"), namespace)
    decoder: Decoder = namespace["decode"]
    _decoders[cls, version] = decoder
    return decoder
