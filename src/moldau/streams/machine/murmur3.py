"""Murmur3 with 128 bits, by which a foreign-key join recognises a row."""

from __future__ import annotations

import struct

_MASK = (1 << 64) - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
_SEED = 104729
_BLOCK = struct.Struct("<QQ")


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK


def _mix(value: int) -> int:
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD & _MASK
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return value ^ value >> 33


def _k1(value: int) -> int:
    return _rotate(value * _C1 & _MASK, 31) * _C2 & _MASK


def _k2(value: int) -> int:
    return _rotate(value * _C2 & _MASK, 33) * _C1 & _MASK


def hash128(data: bytes) -> bytes:
    """The two halves of the hash as big-endian longs, with Kafka Streams' seed."""
    h1 = h2 = _SEED
    whole = len(data) & ~15
    for position in range(0, whole, 16):
        k1, k2 = _BLOCK.unpack_from(data, position)
        h1 = ((_rotate(h1 ^ _k1(k1), 27) + h2) * 5 + 0x52DCE729) & _MASK
        h2 = ((_rotate(h2 ^ _k2(k2), 31) + h1) * 5 + 0x38495AB5) & _MASK
    tail = data[whole:]
    if len(tail) > 8:
        h2 ^= _k2(int.from_bytes(tail[8:], "little"))
    if tail:
        h1 ^= _k1(int.from_bytes(tail[:8], "little"))
    h1 ^= len(data)
    h2 ^= len(data)
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    h1, h2 = _mix(h1), _mix(h2)
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    return struct.pack(">QQ", h1, h2)
