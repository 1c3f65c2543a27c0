"""Window and session stores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from moldau.streams.records import Window, Windowed
from moldau.streams.serdes import Serde
from moldau.streams.stores._cache import StoreCache
from moldau.streams.stores._tables import Listener
from moldau.streams.stores.base import (
    ChangelogRecord,
    Drop,
    Entry,
    Log,
    SegmentedMap,
    Storage,
    no_drop,
    no_log,
)
from moldau.streams.stores.formats import (
    read_timestamped_value,
    session_store_key,
    timestamped_value,
    window_store_key,
)
from moldau.streams.stores.memory import MemoryStorage

K = TypeVar("K")
V = TypeVar("V")


class WindowStore(Generic[K, V]):
    """Values by key and start of a window.

    `timestamped` values carry the time of their last update; with `retain_duplicates` a put never
    replaces, as the join of two streams needs it.
    """

    def __init__(
        self,
        name: str,
        key_serde: Serde[K],
        value_serde: Serde[V],
        *,
        retention_ms: int,
        window_size_ms: int,
        retain_duplicates: bool = False,
        timestamped: bool = True,
        log: Log = no_log,
        drop: Drop = no_drop,
        storage: Storage | None = None,
        cache: StoreCache | None = None,
    ) -> None:
        self.name = name
        self._keys = key_serde
        self._values = value_serde
        self._size_ms = window_size_ms
        self._retain_duplicates = retain_duplicates
        self._timestamped = timestamped
        self._sequence = 0
        self._segments: SegmentedMap = (storage or MemoryStorage()).segments(retention_ms, drop)
        self._log = log
        self._cache = cache
        self._listener: Listener | None = None
        if cache is not None:
            cache.write = self._pass_on

    def listen(self, listener: Listener) -> bool:
        """Forward updates to `listener` when the cache passes them on; false without a cache."""
        self._listener = listener
        return self._cache is not None

    def _pass_on(self, entry: Entry, old: bytes | None, new: bytes | None) -> None:
        data, time = self._split(new)
        self._log(window_store_key(*entry), data, time)
        if self._listener is not None:
            value = self._values.deserialize(self.name, data)
            before = self._values.deserialize(self.name, self._split(old)[0])
            self._listener(self._windowed(entry), value, before, time)

    def _split(self, data: bytes | None) -> tuple[bytes | None, int | None]:
        if data is None or not self._timestamped:
            return data, None
        return read_timestamped_value(data)

    def _key(self, key: K) -> bytes:
        data = self._keys.serialize(self.name, key)
        if data is None:
            raise ValueError(f"key cannot be null in store {self.name}")
        return data

    def put(self, key: K, value: V | None, start: int, timestamp: int = 0) -> None:
        """Set the value of a window; `None` deletes it: store.put("a", 1, 0, timestamp=5)."""
        data = self._values.serialize(self.name, value)
        if self._retain_duplicates:
            self._sequence = (self._sequence + 1) & 0x7FFF_FFFF
        raw = self._key(key)
        kept = timestamped_value(data, timestamp) if self._timestamped else data
        entry, cache = (raw, start, self._sequence), self._cache
        old = None if cache is None or cache.has(entry) else self._segments.get(entry)
        # Kafka Streams logs what comes too late or deletes nothing: a restore drops it, too.
        if data is not None or not self._retain_duplicates:
            self._segments.put(entry, kept)
        if cache is not None:
            cache.put(entry, len(raw) + 12, old, kept)
        else:
            # The changelog has the time as the record's own.
            time = timestamp if self._timestamped and data is not None else None
            self._log(window_store_key(*entry), data, time)

    def _value(self, data: bytes) -> tuple[V, int]:
        time = -1
        if self._timestamped:
            data, time = read_timestamped_value(data)
        return self._values.deserialize(self.name, data), time  # type: ignore[return-value]

    def _windowed(self, entry: Entry) -> Windowed[K]:
        key = self._keys.deserialize(self.name, entry[0])
        window = Window(entry[1], min(entry[1] + self._size_ms, 2**63 - 1))
        return Windowed(key, window)  # type: ignore[arg-type]

    def get(self, key: K, start: int) -> tuple[V, int] | None:
        """The value of a window and its time (-1 without times), or `None`."""
        data = self._segments.get((self._key(key), start, 0))
        return None if data is None else self._value(data)

    def fetch(self, key: K, low: int, high: int) -> list[tuple[int, tuple[V, int]]]:
        """The windows of a key that start from `low` to `high`: start, and value with time."""
        return [
            (entry[1], self._value(data))
            for entry, data in self._segments.of_key(self._key(key), low, high)
        ]

    def fetch_all(self, low: int, high: int) -> list[tuple[Windowed[K], tuple[V, int]]]:
        """The windows of all keys that start from `low` to `high`: by start, then by key."""
        found = self._segments.between(low, high)
        found.sort(key=lambda each: (each[0][1], each[0][0], each[0][2]))
        return [(self._windowed(entry), self._value(data)) for entry, data in found]

    def all(self) -> Iterator[tuple[Windowed[K], tuple[V, int]]]:
        """All windows, in the order of the keys' bytes and of time."""
        for entry, data in self._segments.all():
            yield self._windowed(entry), self._value(data)

    def flush(self) -> None:
        """Pass on what waits in the cache."""
        if self._cache is not None:
            self._cache.flush()

    def close(self) -> None:
        """Nothing to close."""

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        for key, value, timestamp, _ in records:
            start, sequence = int.from_bytes(key[-12:-4]), int.from_bytes(key[-4:])
            if self._timestamped:
                value = timestamped_value(value, timestamp)
            if value is not None or not self._retain_duplicates:
                self._segments.put((key[:-12], start, sequence), value)
            if self._retain_duplicates:
                self._sequence = max(self._sequence, sequence)


class SessionStore(Generic[K, V]):
    """Values by key, start and end of a session."""

    def __init__(
        self,
        name: str,
        key_serde: Serde[K],
        value_serde: Serde[V],
        *,
        retention_ms: int,
        log: Log = no_log,
        drop: Drop = no_drop,
        storage: Storage | None = None,
        cache: StoreCache | None = None,
    ) -> None:
        self.name = name
        self._keys = key_serde
        self._values = value_serde
        self._segments: SegmentedMap = (storage or MemoryStorage()).segments(retention_ms, drop)
        self._log = log
        self._cache = cache
        self._listener: Listener | None = None
        if cache is not None:
            cache.write = self._pass_on

    def listen(self, listener: Listener) -> bool:
        """Forward updates to `listener` when the cache passes them on; false without a cache."""
        self._listener = listener
        return self._cache is not None

    def _pass_on(self, entry: Entry, old: bytes | None, new: bytes | None) -> None:
        key, end, start = entry
        self._log(session_store_key(key, start, end), new, None)
        if self._listener is not None:
            session = Windowed(self._keys.deserialize(self.name, key), Window(start, end))
            value = self._values.deserialize(self.name, new)
            self._listener(session, value, self._values.deserialize(self.name, old), end)

    def _key(self, key: K) -> bytes:
        data = self._keys.serialize(self.name, key)
        if data is None:
            raise ValueError(f"key cannot be null in store {self.name}")
        return data

    def _typed(self, entry: Entry, data: bytes) -> tuple[Windowed[K], V]:
        key = self._keys.deserialize(self.name, entry[0])
        windowed = Windowed(key, Window(entry[2], entry[1]))
        return windowed, self._values.deserialize(self.name, data)  # type: ignore[return-value]

    def put(self, session: Windowed[K], value: V | None) -> None:
        """Set the value of a session; `None` deletes it."""
        key, (start, end) = self._key(session.key), session.window
        data = self._values.serialize(self.name, value)
        entry, cache = (key, end, start), self._cache
        old = None if cache is None or cache.has(entry) else self._segments.get(entry)
        self._segments.put(entry, data)
        if cache is not None:
            cache.put(entry, len(key) + 16, old, data)
        else:
            self._log(session_store_key(key, start, end), data, None)

    def get(self, key: K, start: int, end: int) -> V | None:
        """The value of one session, or `None`."""
        data = self._segments.get((self._key(key), end, start))
        return self._values.deserialize(self.name, data)

    def find_sessions(self, key: K, end_min: int, start_max: int) -> list[tuple[Windowed[K], V]]:
        """The sessions of a key that end at `end_min` or later and start by `start_max`."""
        found = self._segments.of_key(self._key(key), end_min, 2**63 - 1)
        return [self._typed(entry, data) for entry, data in found if entry[2] <= start_max]

    def find_ended(self, low: int, high: int) -> list[tuple[Windowed[K], V]]:
        """The sessions of all keys that end from `low` to `high`: by end, start, then key."""
        found = self._segments.between(low, high)
        found.sort(key=lambda each: (each[0][1], each[0][2], each[0][0]))
        return [self._typed(entry, data) for entry, data in found]

    def all(self) -> Iterator[tuple[Windowed[K], V]]:
        """All sessions, in the order of the keys' bytes and of their ends."""
        for entry, data in self._segments.all():
            yield self._typed(entry, data)

    def flush(self) -> None:
        """Pass on what waits in the cache."""
        if self._cache is not None:
            self._cache.flush()

    def close(self) -> None:
        """Nothing to close."""

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        for key, value, _, _ in records:
            end, start = int.from_bytes(key[-16:-8]), int.from_bytes(key[-8:])
            self._segments.put((key[:-16], end, start), value)
