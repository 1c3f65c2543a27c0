"""The order in which Java's hash tables list their keys.

Confluent's registry compares properties in that order, and so the order of its messages is fixed.
"""

from __future__ import annotations

from collections.abc import Collection

_CAPACITY_MIN = 16


def hash_order(keys: Collection[str], *, sized_for: int = 0) -> list[str]:
    """Distinct keys in the order of a HashMap that they were put into one after the other.

    `sized_for` is the number of entries that the table was made for, if it was copied from another
    collection.
    """
    capacity = _CAPACITY_MIN
    while capacity < int(sized_for / 0.75) + 1:
        capacity *= 2
    distinct = list(dict.fromkeys(keys))
    while len(distinct) > capacity * 0.75:
        capacity *= 2
    return sorted(distinct, key=lambda key: _spread(key) & (capacity - 1))


def _spread(text: str) -> int:
    code = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(units), 2):
        code = (31 * code + (units[position] << 8 | units[position + 1])) & 0xFFFFFFFF
    return code ^ (code >> 16)
