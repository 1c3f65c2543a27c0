# cython: annotation_typing=False
"""Key-value stores: plain, and with the time of each value.

The file is plain Python, and with `_tables.pxd` beside it also the source of a compiled module with
the same names and results. The types are in `key_value.pyi`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import GenericAlias, SimpleNamespace
from typing import Any

from moldau.streams._records import Produced, TaskCore
from moldau.streams._serdes import core_serde
from moldau.streams.records import Headers, ValueAndTimestamp
from moldau.streams.stores._cache import StoreCache
from moldau.streams.stores._maps import ByteMap, OrderedMap

try:
    import cython
except ImportError:
    # Only the compiler needs the real one, and it does not let its name be assigned.
    globals()["cython"] = SimpleNamespace(compiled=False)

if not cython.compiled:
    # The compiler takes them from the .pxd, as C.
    from moldau.streams.longs import prefixed, unpack_long

#: Gets what a cache passes on: key, new value, old value, and the new value's time; of sessions
#: with headers also these.
Listener = Callable[..., None]


class ChangelogWriter:
    """Writes changelog records to a topic; without one it writes none."""

    __slots__ = ("_collect", "_partition", "_runtime", "_topic")

    def __init__(
        self,
        collect: Callable[[Produced], None] | None = None,
        topic: str = "",
        partition: int = 0,
        runtime: TaskCore | None = None,
    ) -> None:
        self._collect = collect
        self._topic = topic
        self._partition = partition
        self._runtime: Any = runtime

    def write(self, key: bytes, value: bytes | None, timestamp: int, headers: Headers) -> None:
        """`None` as value deletes; a negative time is that of the input record."""
        if self._collect is not None:
            if timestamp < 0:
                timestamp = max(0, self._runtime.record_context.timestamp)
            self._collect(Produced(self._topic, key, value, timestamp, headers, self._partition))

    def __call__(
        self, key: bytes, value: bytes | None, timestamp: int | None, headers: Headers = ()
    ) -> None:
        self.write(key, value, -1 if timestamp is None else timestamp, headers)


class HeadersLog(ChangelogWriter):
    """Gives each record the headers of the input record: stores of joins have them since 4.3."""

    __slots__ = ()

    def write(self, key: bytes, value: bytes | None, timestamp: int, headers: Headers) -> None:
        if self._collect is not None:
            context = self._runtime.record_context
            if timestamp < 0:
                timestamp = max(0, context.timestamp)
            topic, partition = self._topic, self._partition
            self._collect(Produced(topic, key, value, timestamp, context.headers, partition))


class OwnHeadersLog(HeadersLog):
    """Gives a deletion the headers of the input record: values of the store have their own."""

    __slots__ = ()

    def write(self, key: bytes, value: bytes | None, timestamp: int, headers: Headers) -> None:
        if value is None:
            HeadersLog.write(self, key, value, timestamp, headers)
        else:
            ChangelogWriter.write(self, key, value, timestamp, headers)


class OtherLog(ChangelogWriter):
    """Writes changelog records with a function."""

    __slots__ = ("_log",)

    def __init__(self, log: Callable[..., None]) -> None:
        self._collect = None
        self._log = log

    def write(self, key: bytes, value: bytes | None, timestamp: int, headers: Headers) -> None:
        self._log(key, value, None if timestamp < 0 else timestamp, headers)


def changelog_writer(log: Callable[..., None] | None) -> ChangelogWriter:
    """What writes the changelog of a store."""
    if log is None:
        return ChangelogWriter()
    return log if isinstance(log, ChangelogWriter) else OtherLog(log)


class KeyValueStore:
    """A plain store: what processors use by hand."""

    __slots__ = ("_cache", "_keys", "_log", "_map", "_topic", "_values", "name")

    def __init__(
        self,
        name: str,
        key_serde: Any,
        value_serde: Any,
        log: Callable[..., None] | None = None,
        entries: OrderedMap | None = None,
        topic: str | None = None,
        cache: StoreCache | None = None,
    ) -> None:
        self.name = name
        self._topic = topic or name
        self._keys = core_serde(key_serde)
        self._values = core_serde(value_serde)
        self._map = ByteMap() if entries is None else entries
        self._log = changelog_writer(log)
        self._cache = cache
        if cache is not None:
            cache.write = self._pass_on

    def _pass_on(self, raw: bytes, old: bytes | None, new: bytes | None) -> None:
        self._log.write(raw, new, -1, ())

    def raw_key(self, key: Any) -> bytes:
        """The bytes of a key."""
        data: bytes | None = self._keys.serialize(self._topic, key)
        if data is None:
            raise ValueError(f"key cannot be null in store {self.name}")
        return data

    @classmethod
    def __class_getitem__(cls, types: Any) -> GenericAlias:
        """`Store[str, int]` in annotations: the types of key and value."""
        return GenericAlias(cls, types)

    def get(self, key: Any) -> Any:
        """The value of a key, or `None`: store.get("a")."""
        return self._values.deserialize(self._topic, self._map.get(self.raw_key(key)))

    def get_stored(self, key: Any) -> Any:
        """The same without updates that wait in the cache."""
        raw = self.raw_key(key)
        data = self._map.get(raw)
        if self._cache is not None:
            data = self._cache.stored(raw, data)
        return self._values.deserialize(self._topic, data)

    def put(self, key: Any, value: Any) -> None:
        """Set a value; `None` deletes: store.put("a", 1)."""
        raw, data = self.raw_key(key), self._values.serialize(self._topic, value)
        cache = self._cache
        if cache is None:
            self._map.put(raw, data)
            self._log.write(raw, data, -1, ())
        else:
            old = None if cache.has(raw) else self._map.get(raw)
            self._map.put(raw, data)
            cache.put(raw, len(raw), old, data)

    def put_if_absent(self, key: Any, value: Any) -> Any:
        """Set a value where there is none; returns what was there."""
        found = self.get(key)
        if found is None:
            self.put(key, value)
        return found

    def put_all(self, entries: Iterable[tuple[Any, Any]]) -> None:
        """Set several values, in their order: store.put_all([("a", 1), ("b", None)])."""
        for key, value in entries:
            self.put(key, value)

    def delete(self, key: Any) -> Any:
        """Delete a key; returns what was there."""
        found = self.get(key)
        self.put(key, None)
        return found

    def range(self, start: Any = None, end: Any = None) -> Iterator[tuple[Any, Any]]:
        """The entries from `start` to `end`, both included, in the order of the keys' bytes."""
        low = b"" if start is None else self.raw_key(start)
        high = None if end is None else self.raw_key(end)
        return self._typed(self._map.range(low, high))

    def reverse_range(self, start: Any = None, end: Any = None) -> Iterator[tuple[Any, Any]]:
        """The same from `end` to `start`."""
        low = b"" if start is None else self.raw_key(start)
        high = None if end is None else self.raw_key(end)
        return self._typed(self._map.backwards(low, high))

    def prefix_scan(self, prefix: bytes) -> Iterator[tuple[Any, Any]]:
        """The entries whose key's bytes start with `prefix`."""
        return self._typed(self._map.prefix(prefix))

    def all(self) -> Iterator[tuple[Any, Any]]:
        """All entries, in the order of the keys' bytes."""
        return self._typed(self._map.range())

    def reverse_all(self) -> Iterator[tuple[Any, Any]]:
        """All entries, the last first."""
        return self._typed(self._map.backwards())

    def approximate_num_entries(self) -> int:
        """How many keys have a value; exact in memory."""
        return len(self._map)

    def _typed(self, entries: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[Any, Any]]:
        for key, value in entries:
            yield (
                self._keys.deserialize(self._topic, key),
                self._values.deserialize(self._topic, value),
            )

    def flush(self) -> None:
        """Pass on what waits in the cache."""
        if self._cache is not None:
            self._cache.flush()

    def close(self) -> None:
        """Nothing to close."""

    def restore(self, records: Iterable[tuple[bytes, bytes | None, int, Headers]]) -> None:
        """Apply records of the changelog."""
        entries = self._map
        for key, value, _, _ in records:
            entries.put(key, value)


class TimestampedKeyValueStore:
    """The store of a table: each value with the time of its last update."""

    __slots__ = ("_cache", "_keys", "_listener", "_log", "_map", "_topic", "_values", "name")

    is_versioned = False

    def __init__(
        self,
        name: str,
        key_serde: Any,
        value_serde: Any,
        log: Callable[..., None] | None = None,
        entries: OrderedMap | None = None,
        cache: StoreCache | None = None,
        topic: str | None = None,
    ) -> None:
        self.name = name
        self._topic = topic or name
        self._keys = core_serde(key_serde)
        self._values = core_serde(value_serde)
        self._map = ByteMap() if entries is None else entries
        self._log = changelog_writer(log)
        self._cache = cache
        self._listener: Listener | None = None
        if cache is not None:
            cache.write = self._pass_on

    def listen(self, listener: Listener) -> bool:
        """Forward updates to `listener` when the cache passes them on; false without a cache."""
        self._listener = listener
        if self._cache is not None:
            self._cache.forwards = True
        return self._cache is not None

    def _pass_on(self, raw: bytes, old: bytes | None, new: bytes | None) -> None:
        time = -1 if new is None else unpack_long(new, 0)
        self._log.write(raw, None if new is None else new[8:], time, ())
        if self._listener is not None:
            self._listener(
                self._keys.deserialize(self._topic, raw),
                None if new is None else self.value_of(new),
                None if old is None else self.value_of(old),
                None if new is None else time,
            )

    def raw_key(self, key: Any) -> bytes:
        """The bytes of a key."""
        data: bytes | None = self._keys.serialize(self._topic, key)
        if data is None:
            raise ValueError(f"key cannot be null in store {self.name}")
        return data

    @classmethod
    def __class_getitem__(cls, types: Any) -> GenericAlias:
        """`Store[str, int]` in annotations: the types of key and value."""
        return GenericAlias(cls, types)

    def value_of(self, kept: bytes) -> Any:
        """The value in what the store keeps."""
        return self._values.deserialize_after(self._topic, kept, 8)

    def find(self, raw: bytes) -> bytes | None:
        """What the store keeps for a key: eight bytes of time, and the value's."""
        found: bytes | None = self._map.get(raw)
        return found

    def _kept(self, data: bytes, timestamp: int, headers: Headers) -> bytes:
        """What the store keeps of a value's bytes."""
        return prefixed(timestamp, data)

    def _value(self, kept: bytes) -> Any:
        return ValueAndTimestamp(self.value_of(kept), unpack_long(kept, 0))

    def get(self, key: Any) -> Any:
        """The value and its time, or `None`: store.get("a")."""
        data = self._map.get(self.raw_key(key))
        return None if data is None else self._value(data)

    def get_stored(self, key: Any) -> Any:
        """The same without updates that wait in the cache."""
        raw = self.raw_key(key)
        data = self._map.get(raw)
        if self._cache is not None:
            data = self._cache.stored(raw, data)
        return None if data is None else self._value(data)

    def get_as_of(self, key: Any, timestamp: int) -> Any:
        """Only versioned stores know the past."""
        raise TypeError(f"store {self.name} is not versioned")

    def put(self, key: Any, value: Any, timestamp: int) -> int:
        """Set a value; `None` deletes. Returns -1, as a versioned store does for its latest."""
        self.write(self.raw_key(key), value, timestamp)
        return -1

    def put_if_absent(self, key: Any, value: Any, timestamp: int) -> Any:
        """Set a value where there is none; returns what was there."""
        found = self.get(key)
        if found is None:
            self.put(key, value, timestamp)
        return found

    def put_all(self, entries: Iterable[tuple[Any, Any]]) -> None:
        """Set several values, in their order: store.put_all([("a", (1, 5)), ("b", None)])."""
        for key, value in entries:
            if value is None:
                self.put(key, None, -1)
            else:
                self.put(key, value[0], value[1])

    def delete(self, key: Any) -> Any:
        """Delete a key; returns what was there."""
        found = self.get(key)
        self.put(key, None, -1)
        return found

    def write(self, raw: bytes, value: Any, timestamp: int) -> None:
        """Set the value of a key that is given as bytes."""
        data = self._values.serialize(self._topic, value)
        self.keep(raw, data, None if data is None else prefixed(timestamp, data), timestamp, ())

    def keep(
        self, raw: bytes, data: bytes | None, kept: bytes | None, timestamp: int, headers: Headers
    ) -> None:
        """Set what the store keeps for a key, and log the value's bytes."""
        cache = self._cache
        if cache is None:
            self._map.put(raw, kept)
            # The changelog has the time as the record's own.
            self._log.write(raw, data, -1 if data is None else timestamp, headers)
        else:
            old = None if cache.has(raw) else self._map.get(raw)
            self._map.put(raw, kept)
            cache.put(raw, len(raw), old, kept)

    def range(self, start: Any = None, end: Any = None) -> Iterator[tuple[Any, Any]]:
        """The entries from `start` to `end`, both included, in the order of the keys' bytes."""
        low = b"" if start is None else self.raw_key(start)
        high = None if end is None else self.raw_key(end)
        return self._typed(self._map.range(low, high))

    def reverse_range(self, start: Any = None, end: Any = None) -> Iterator[tuple[Any, Any]]:
        """The same from `end` to `start`."""
        low = b"" if start is None else self.raw_key(start)
        high = None if end is None else self.raw_key(end)
        return self._typed(self._map.backwards(low, high))

    def prefix_scan(self, prefix: bytes) -> Iterator[tuple[Any, Any]]:
        """The entries whose key's bytes start with `prefix`."""
        return self._typed(self._map.prefix(prefix))

    def all(self) -> Iterator[tuple[Any, Any]]:
        """All entries, in the order of the keys' bytes."""
        return self.range()

    def reverse_all(self) -> Iterator[tuple[Any, Any]]:
        """All entries, the last first."""
        return self.reverse_range()

    def _typed(self, entries: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[Any, Any]]:
        for key, data in entries:
            yield self._keys.deserialize(self._topic, key), self._value(data)

    def approximate_num_entries(self) -> int:
        """How many keys have a value; exact in memory."""
        return len(self._map)

    def flush(self) -> None:
        """Pass on what waits in the cache."""
        if self._cache is not None:
            self._cache.flush()

    def close(self) -> None:
        """Nothing to close."""

    def restore(self, records: Iterable[tuple[bytes, bytes | None, int, Headers]]) -> None:
        """Apply records of the changelog, which has the times as the records' own."""
        entries = self._map
        for key, value, timestamp, headers in records:
            entries.put(key, None if value is None else self._kept(value, timestamp, headers))
