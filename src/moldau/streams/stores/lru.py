"""A store of the entries that were used last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from moldau.streams.serdes import Serde
from moldau.streams.stores._maps import ByteMap, OrderedMap
from moldau.streams.stores.base import ChangelogRecord, StoreContext
from moldau.streams.stores.key_value import KeyValueStore

K = TypeVar("K")
V = TypeVar("V")


class LruMap(OrderedMap):
    """At most `size_max` entries. A read and a write make an entry the newest; a scan does not."""

    def __init__(self, size_max: int, evicted: Callable[[bytes], None]) -> None:
        self._size_max = size_max
        self._entries = ByteMap()
        #: The keys, the one that was used last at the end.
        self._used: dict[bytes, None] = {}
        self.evicted = evicted

    def get(self, key: bytes) -> bytes | None:
        if key in self._used:
            self._touch(key)
        return self._entries.get(key)

    def _touch(self, key: bytes) -> None:
        self._used.pop(key, None)
        self._used[key] = None

    def put(self, key: bytes, value: bytes | None) -> None:
        self._entries.put(key, value)
        if value is None:
            self._used.pop(key, None)
            return
        self._touch(key)
        if len(self._used) > self._size_max:
            eldest = next(iter(self._used))
            self.put(eldest, None)
            self.evicted(eldest)

    def range(self, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        return self._entries.range(start, end)

    def __len__(self) -> int:
        return len(self._entries)


class LruStore(KeyValueStore[K, V]):
    """A key-value store that deletes what was not used for longest. It is always in memory."""

    def __init__(
        self,
        name: str,
        key_serde: Serde[K],
        value_serde: Serde[V],
        size_max: int,
        context: StoreContext,
    ) -> None:
        self._log_eviction = lambda key: context.log(key, None, None)
        self._entries = LruMap(size_max, self._log_eviction)
        super().__init__(name, key_serde, value_serde, context.log, self._entries, context.topic)

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        """Apply records of the changelog, which is not written meanwhile."""
        self._entries.evicted = lambda key: None
        super().restore(records)
        self._entries.evicted = self._log_eviction
