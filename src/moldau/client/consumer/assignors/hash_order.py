"""The order in which Kafka's own leaders walk over members and topics.

Java's assignors iterate hash maps, and where a tie is broken by who comes first, that order decides
who gets a partition. A group may have leaders of both kinds, one after the other: if ours broke
ties its own way, a change of the leader alone would move partitions. So the order is reproduced:
by bucket of the table that the map has at its size, within a bucket as they were put in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from moldau.client.topics import TopicPartition

__all__ = ["PartitionSet", "java_sorted_key", "member_order", "text_hash"]

T = TypeVar("T")

_TABLE_SIZE_MIN = 16
_WORD = 0xFFFFFFFF


def text_hash(text: str) -> int:
    """A string's hash as an unsigned 32-bit number."""
    value = 0
    data = text.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(data), 2):
        value = (31 * value + (data[index] << 8 | data[index + 1])) & _WORD
    return value


def partition_hash(key: TopicPartition) -> int:
    return (31 * (31 + key.partition) + text_hash(key.topic)) & _WORD


def java_sorted_key(text: str) -> bytes:
    """To sort strings as Java does, by UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")


def _table_size(count: int) -> int:
    size = _TABLE_SIZE_MIN
    while count > size * 3 // 4:
        size *= 2
    return size


def _bucket(value: int, table_size: int) -> int:
    return (value ^ value >> 16) & (table_size - 1)


def member_order(names: Iterable[str]) -> list[str]:
    """Strings in the order of a hash map into which they were put one by one."""
    unique = list(dict.fromkeys(names))
    size = _table_size(len(unique))
    return sorted(unique, key=lambda name: _bucket(text_hash(name), size))


class _HashSet(Generic[T]):
    def __init__(self, hash_of: Callable[[T], int]) -> None:
        self._hash_of = hash_of
        self._items: dict[T, None] = {}
        self._count_max = 0

    def add(self, item: T) -> None:
        self._items[item] = None
        # A table never becomes smaller again.
        self._count_max = max(self._count_max, len(self._items))

    def discard(self, item: T) -> None:
        self._items.pop(item, None)

    def first(self) -> T:
        size = _table_size(self._count_max)
        return min(self._items, key=lambda item: _bucket(self._hash_of(item), size))

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)


class PartitionSet(_HashSet[TopicPartition]):
    """Partitions, the first of which is asked for."""

    def __init__(self) -> None:
        super().__init__(partition_hash)
