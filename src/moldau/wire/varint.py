"""Numbers of variable length inside records: zigzag, seven bits to a byte, as Java writes them.

Compiled modules take these functions as C from `_varint.pxd`, where each stands once more and is
inlined; tests run both forms over the same bytes.
"""

from __future__ import annotations

from moldau.wire.constants import Buffer

__all__ = ["varint", "varint_length", "varint_size", "varlong"]


_MASK_32 = 0xFFFF_FFFF
_MASK_64 = 0xFFFF_FFFF_FFFF_FFFF


def varint_size(data: Buffer, position: int, end: int, size_max: int) -> int:
    """Bytes of the number at `position`; 0 when it is too long or reaches `end`."""
    limit = min(position + size_max, end)
    for cursor in range(position, limit):
        if data[cursor] < 128:
            return cursor - position + 1
    return 0


def varint_length(data: Buffer, position: int) -> int:
    """Bytes of the number at `position`, which is known to end inside its record."""
    size = 1
    while data[position] > 127:
        position += 1
        size += 1
    return size


def varint(data: Buffer, position: int, size: int) -> int:
    """The zigzag int32 of `size` bytes; bits beyond 32 are dropped, as Java does."""
    if size == 1:
        raw = data[position]
        return (raw >> 1) ^ -(raw & 1)
    raw = _bits(data, position, size) & _MASK_32
    return (raw >> 1) ^ -(raw & 1)


def varlong(data: Buffer, position: int, size: int) -> int:
    """The zigzag int64 of `size` bytes; bits beyond 64 are dropped, as Java does."""
    if size == 1:
        raw = data[position]
        return (raw >> 1) ^ -(raw & 1)
    raw = _bits(data, position, size) & _MASK_64
    return (raw >> 1) ^ -(raw & 1)


def _bits(data: Buffer, position: int, size: int) -> int:
    raw = 0
    shift = 0
    for cursor in range(position, position + size):
        raw |= (data[cursor] & 127) << shift
        shift += 7
    return raw
