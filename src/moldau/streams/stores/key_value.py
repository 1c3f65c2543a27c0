"""Key-value stores in memory: plain, timestamped, and of lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from moldau.streams.records import ValueAndTimestamp
from moldau.streams.serdes import Serde
from moldau.streams.stores.base import ChangelogRecord, Log, OrderedMap, no_log
from moldau.streams.stores.cache import StoreCache
from moldau.streams.stores.formats import read_timestamped_value, timestamped_value
from moldau.streams.stores.memory import ByteMap
from moldau.streams.stores.sorted_keys import SortedKeys

K = TypeVar("K")
V = TypeVar("V")

#: Gets what a cache passes on: key, new value, old value, and the new value's time.
Listener = Callable[[Any, Any, Any, int | None], None]


class KeyValueStore(Generic[K, V]):
    """A plain store: what processors use by hand."""

    def __init__(
        self,
        name: str,
        key_serde: Serde[K],
        value_serde: Serde[V],
        log: Log = no_log,
        entries: OrderedMap | None = None,
    ) -> None:
        self.name = name
        self._keys = key_serde
        self._values = value_serde
        self._map: OrderedMap = ByteMap() if entries is None else entries
        self._log = log

    def _key(self, key: K) -> bytes:
        data = self._keys.serialize(self.name, key)
        if data is None:
            raise ValueError(f"key cannot be null in store {self.name}")
        return data

    def get(self, key: K) -> V | None:
        """The value of a key, or `None`: store.get("a")."""
        return self._values.deserialize(self.name, self._map.get(self._key(key)))

    def put(self, key: K, value: V | None) -> None:
        """Set a value; `None` deletes: store.put("a", 1)."""
        raw, data = self._key(key), self._values.serialize(self.name, value)
        self._map.put(raw, data)
        self._log(raw, data, None)

    def put_if_absent(self, key: K, value: V) -> V | None:
        """Set a value where there is none; returns what was there."""
        found = self.get(key)
        if found is None:
            self.put(key, value)
        return found

    def delete(self, key: K) -> V | None:
        """Delete a key; returns what was there."""
        found = self.get(key)
        self.put(key, None)
        return found

    def range(self, start: K | None = None, end: K | None = None) -> Iterator[tuple[K, V]]:
        """The entries from `start` to `end`, both included, in the order of the keys' bytes."""
        low = b"" if start is None else self._key(start)
        high = None if end is None else self._key(end)
        return self._typed(self._map.range(low, high))

    def prefix_scan(self, prefix: bytes) -> Iterator[tuple[K, V]]:
        """The entries whose key's bytes start with `prefix`."""
        return self._typed(self._map.prefix(prefix))

    def all(self) -> Iterator[tuple[K, V]]:
        """All entries, in the order of the keys' bytes."""
        return self._typed(self._map.range())

    def approximate_num_entries(self) -> int:
        """How many keys have a value; exact in memory."""
        return len(self._map)

    def _typed(self, entries: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[K, V]]:
        for key, value in entries:
            yield (
                self._keys.deserialize(self.name, key),  # type: ignore[misc]
                self._values.deserialize(self.name, value),
            )

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing to close."""

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        put = self._map.put
        for key, value, _, _ in records:
            put(key, value)


class TimestampedKeyValueStore(Generic[K, V]):
    """The store of a table: each value with the time of its last update."""

    is_versioned = False

    def __init__(
        self,
        name: str,
        key_serde: Serde[K],
        value_serde: Serde[V],
        log: Log = no_log,
        entries: OrderedMap | None = None,
        cache: StoreCache | None = None,
    ) -> None:
        self.name = name
        self._keys = key_serde
        self._values = value_serde
        self._map: OrderedMap = ByteMap() if entries is None else entries
        self._log = log
        self._cache = cache
        self._listener: Listener | None = None
        if cache is not None:
            cache.write = self._pass_on

    def listen(self, listener: Listener) -> bool:
        """Forward updates to `listener` when the cache passes them on; false without a cache."""
        self._listener = listener
        return self._cache is not None

    def _pass_on(self, raw: bytes, old: bytes | None, new: bytes | None) -> None:
        data, time = (None, None) if new is None else read_timestamped_value(new)
        self._log(raw, data, time)
        if self._listener is not None:
            key = self._keys.deserialize(self.name, raw)
            value = self._values.deserialize(self.name, data)
            before = None if old is None else read_timestamped_value(old)[0]
            self._listener(key, value, self._values.deserialize(self.name, before), time)

    def _key(self, key: K) -> bytes:
        data = self._keys.serialize(self.name, key)
        if data is None:
            raise ValueError(f"key cannot be null in store {self.name}")
        return data

    def _value(self, data: bytes) -> ValueAndTimestamp[V]:
        raw, timestamp = read_timestamped_value(data)
        value = self._values.deserialize(self.name, raw)
        return ValueAndTimestamp(value, timestamp)  # type: ignore[arg-type]

    def get(self, key: K) -> ValueAndTimestamp[V] | None:
        """The value and its time, or `None`: store.get("a")."""
        data = self._map.get(self._key(key))
        return None if data is None else self._value(data)

    def get_as_of(self, key: K, timestamp: int) -> ValueAndTimestamp[V] | None:
        """Only versioned stores know the past."""
        raise TypeError(f"store {self.name} is not versioned")

    def put(self, key: K, value: V | None, timestamp: int) -> bool | None:
        """Set a value; `None` deletes. Returns true: what is put last is the latest."""
        raw, data = self._key(key), self._values.serialize(self.name, value)
        kept = timestamped_value(data, timestamp)
        cache = self._cache
        if cache is None:
            self._map.put(raw, kept)
            # The changelog has the time as the record's own.
            self._log(raw, data, None if data is None else timestamp)
        else:
            old = None if raw in cache else self._map.get(raw)
            self._map.put(raw, kept)
            cache.put(raw, len(raw), old, kept)
        return True

    def range(
        self, start: K | None = None, end: K | None = None
    ) -> Iterator[tuple[K, ValueAndTimestamp[V]]]:
        """The entries from `start` to `end`, both included, in the order of the keys' bytes."""
        low = b"" if start is None else self._key(start)
        high = None if end is None else self._key(end)
        for key, data in self._map.range(low, high):
            yield self._keys.deserialize(self.name, key), self._value(data)  # type: ignore[misc]

    def prefix_scan(self, prefix: bytes) -> Iterator[tuple[K, ValueAndTimestamp[V]]]:
        """The entries whose key's bytes start with `prefix`."""
        for key, data in self._map.prefix(prefix):
            yield self._keys.deserialize(self.name, key), self._value(data)  # type: ignore[misc]

    def all(self) -> Iterator[tuple[K, ValueAndTimestamp[V]]]:
        """All entries, in the order of the keys' bytes."""
        return self.range()

    def approximate_num_entries(self) -> int:
        """How many keys have a value; exact in memory."""
        return len(self._map)

    def flush(self) -> None:
        """Pass on what waits in the cache."""
        if self._cache is not None:
            self._cache.flush()

    def close(self) -> None:
        """Nothing to close."""

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        put = self._map.put
        for key, value, timestamp, _ in records:
            put(key, timestamped_value(value, timestamp))


class ListStore:
    """Bytes to a list of bytes: the records of an outer join that have no match yet."""

    in_memory_only = True

    def __init__(self, name: str, log: Log = no_log) -> None:
        self.name = name
        self._lists: dict[bytes, list[bytes]] = {}
        self._keys = SortedKeys()
        self._log = log

    def add(self, key: bytes, value: bytes) -> None:
        """Append to the list of a key."""
        values = self._lists.get(key)
        if values is None:
            values = self._lists[key] = []
            self._keys.add(key)
        values.append(value)
        self._log(key, self._encoded(values), None)

    def delete(self, key: bytes) -> None:
        """Delete the whole list of a key."""
        if self._lists.pop(key, None) is not None:
            self._keys.remove(key)
            self._log(key, None, None)

    def all(self) -> Iterator[tuple[bytes, bytes]]:
        """Every entry of every list, in the order of the keys. Keys may be deleted meanwhile."""
        for key in self._keys.starting(b""):
            for value in list(self._lists.get(key, ())):
                yield key, value

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing to close."""

    @staticmethod
    def _encoded(values: list[bytes]) -> bytes:
        """Kafka's serde of lists of bytes: a flag, no nulls, the count, then size and bytes."""
        parts = [b"\x01", (0).to_bytes(4), len(values).to_bytes(4)]
        for value in values:
            parts += [len(value).to_bytes(4), value]
        return b"".join(parts)

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        for key, value, _, _ in records:
            self._set(key, value)

    def _set(self, key: bytes, value: bytes | None) -> None:
        if self._lists.pop(key, None) is not None:
            self._keys.remove(key)
        if value is None:
            return
        position, found = 9, []
        for _ in range(int.from_bytes(value[5:9])):
            size = int.from_bytes(value[position : position + 4])
            found.append(value[position + 4 : position + 4 + size])
            position += 4 + size
        self._lists[key] = found
        self._keys.add(key)
