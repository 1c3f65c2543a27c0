"""The order in which Java's HashMap yields strings.

Where Kafka breaks ties by the order of a map, a coordinator that moves between the two
must break them alike, or tasks would move. Invariant: the order depends on the keys, the capacity
and, within one bucket, on the order of insertion alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from moldau.broker.coordinator.machine.hashing import java_string_hash

_CAPACITY_DEFAULT = 16


def hash_order(keys: Iterable[str], capacity: int = _CAPACITY_DEFAULT) -> list[str]:
    """Distinct keys, given as they are inserted into a map of that initial capacity."""
    inserted = list(keys)
    size = 1
    while size < capacity:
        size *= 2
    # A table doubles once it is more than three quarters full.
    while len(inserted) * 4 > size * 3:
        size *= 2
    return sorted(inserted, key=lambda key: _bucket(key, size))


def _bucket(key: str, size: int) -> int:
    value = java_string_hash(key) & 0xFFFF_FFFF
    return (value ^ value >> 16) & size - 1
