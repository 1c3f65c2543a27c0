# cython: boundscheck=False, wraparound=False, annotation_typing=False
"""Kafka's hash of a key's bytes, which decides its partition.

Plain Python, and with `_murmur2.pxd` beside it also the source of a compiled module with the same
names and results.
"""

from __future__ import annotations

_MASK_32 = 0xFFFF_FFFF
_POSITIVE = 0x7FFF_FFFF
_SEED = 0x9747_B28C
_M = 0x5BD1_E995


def murmur2(key: bytes) -> int:
    """The 32 bits of the hash, unsigned."""
    data = key
    return murmur2_chars(data, len(key))


def murmur2_chars(data: bytes, length: int) -> int:
    """The same of the first `length` bytes, wherever they are."""
    h = _SEED ^ length
    whole = length & ~3
    position = 0
    while position < whole:
        k = (
            data[position]
            | (data[position + 1] << 8)
            | (data[position + 2] << 16)
            | (data[position + 3] << 24)
        )
        k = (k * _M) & _MASK_32
        k = ((k ^ (k >> 24)) * _M) & _MASK_32
        h = ((h * _M) & _MASK_32) ^ k
        position += 4
    left = length - whole
    if left:
        if left == 3:
            h ^= data[whole + 2] << 16
        if left >= 2:
            h ^= data[whole + 1] << 8
        h = ((h ^ data[whole]) * _M) & _MASK_32
    h = ((h ^ (h >> 13)) * _M) & _MASK_32
    return h ^ (h >> 15)


def partition_for_key(key: bytes, partition_count: int) -> int:
    """Where Kafka's default partitioner puts a key."""
    return (murmur2(key) & _POSITIVE) % partition_count
