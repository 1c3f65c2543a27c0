"""The order in which Java's HashSet gives its elements.

Confluent's registry goes through messages and enum values in that order, and reports differences as
it meets them. The order follows from the hash codes, which Java's specification gives.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

_TABLE_SIZE_MIN = 16
_T = TypeVar("_T", str, int)


def union_in_order(first: Iterable[_T], second: Iterable[_T]) -> list[_T]:
    """`new HashSet<>(first)` with `second` added, both being keys of a HashMap."""
    begin: list[_T] = in_order(first)
    size = _power_of_two(max(int(len(begin) / 0.75) + 1, _TABLE_SIZE_MIN))
    begin += in_order(second)
    return _by_bucket(begin, size)


def in_order(keys: Iterable[_T]) -> list[_T]:
    """The keys of a HashMap into which they were put one after the other."""
    return _by_bucket(keys, _TABLE_SIZE_MIN)


def _by_bucket(keys: Iterable[_T], size: int) -> list[_T]:
    distinct = list(dict.fromkeys(keys))
    while len(distinct) > size * 3 // 4:
        size *= 2
    # Elements of one bucket stay in the order in which they came.
    return sorted(distinct, key=lambda key: _spread(_hash_code(key)) & (size - 1))


def _hash_code(key: str | int) -> int:
    """As 32 bits without a sign."""
    if isinstance(key, int):
        return key & 0xFFFFFFFF
    code = 0
    data = key.encode("utf-16-be", "surrogatepass")
    for unit in range(0, len(data), 2):
        code = (31 * code + (data[unit] << 8 | data[unit + 1])) & 0xFFFFFFFF
    return code


def _spread(code: int) -> int:
    return code ^ (code >> 16)


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()
