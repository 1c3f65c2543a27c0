"""Numbers of 64 bits in Java's byte order. `longs.pxd` has the same for compiled modules."""

from __future__ import annotations

import struct

_LONG = struct.Struct(">q")
_WINDOW = struct.Struct(">qI")


def pack_long(value: int) -> bytes:
    """The eight bytes of a number."""
    return _LONG.pack(value)


def unpack_long(data: bytes, start: int) -> int:
    """The number at a place."""
    if len(data) < start + 8:
        raise ValueError(f"8 bytes are wanted at {start}, there are {len(data)} in all")
    number: int = _LONG.unpack_from(data, start)[0]
    return number


def prefixed(value: int, data: bytes) -> bytes:
    """The eight bytes of a number, then other bytes."""
    return _LONG.pack(value) + data


def followed(data: bytes, value: int) -> bytes:
    """Some bytes, then the eight of a number."""
    return data + _LONG.pack(value)


def window_key(data: bytes, start: int, sequence: int) -> bytes:
    """A key of a window store's changelog: the key, the start, and a number of 32 bits."""
    return data + _WINDOW.pack(start, sequence)
