"""Which partition of an internal topic owns a group or a transactional id.

The hash is Java's `String.hashCode`, because existing log directories and other brokers of the
cluster place their records with it. Invariant: the result is in `range(partition_count)` and equals
Kafka's for every string.
"""

from __future__ import annotations

from functools import lru_cache

from moldau.invariant import invariant

# The same groups commit again and again, and a hash costs as much as encoding their record.
_KEYS_KEPT = 8192
_UINT32 = 0xFFFF_FFFF
_INT32_SIGN = 0x8000_0000


def java_string_hash(text: str) -> int:
    """The signed 32-bit hash of a string, over its UTF-16 code units."""
    # Lone surrogates are legal in Java strings, hence surrogatepass.
    units = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    value = 0
    for unit in units:
        value = (value * 31 + unit) & _UINT32
    return value - (1 << 32) if value & _INT32_SIGN else value


@lru_cache(_KEYS_KEPT)
def partition_for(key: str, partition_count: int) -> int:
    """The partition of an internal topic that coordinates `key`."""
    invariant(partition_count > 0, "an internal topic has at least one partition")
    value = java_string_hash(key)
    # Java's absolute value of the smallest int is itself; Kafka counts it as zero.
    magnitude = 0 if value == -_INT32_SIGN else abs(value)
    return magnitude % partition_count
