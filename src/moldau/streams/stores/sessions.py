"""Session stores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from moldau.streams.records import Headers, Window, Windowed
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
from moldau.streams.stores.formats import session_store_key
from moldau.streams.stores.memory import MemoryStorage

K = TypeVar("K")
V = TypeVar("V")

_TIME_MAX = 2**63 - 1


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
        topic: str | None = None,
    ) -> None:
        self.name = name
        self._topic = topic or name
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
        if self._cache is not None:
            self._cache.forwards = True
        return self._cache is not None

    def _pass_on(self, entry: Entry, old: bytes | None, new: bytes | None) -> None:
        key, end, start = entry
        self._log(session_store_key(key, start, end), new, None)
        if self._listener is not None:
            self._listener(self._session(entry), self._read(new), self._read(old), end)

    def _session(self, entry: Entry) -> Windowed[K]:
        key = self._keys.deserialize(self._topic, entry[0])
        return Windowed(key, Window(entry[2], entry[1]))  # type: ignore[arg-type]

    def _read(self, data: bytes | None) -> V | None:
        return self._values.deserialize(self._topic, data)

    def _key(self, key: K) -> bytes:
        data = self._keys.serialize(self._topic, key)
        if data is None:
            raise ValueError(f"key cannot be null in store {self.name}")
        return data

    def _typed(self, entry: Entry, data: bytes) -> tuple[Windowed[K], V]:
        return self._session(entry), self._read(data)  # type: ignore[return-value]

    def put(self, session: Windowed[K], value: V | None) -> None:
        """Set the value of a session; `None` deletes it."""
        key, data = self._written(session, value)
        self._keep(key, session, data, data, ())

    def _written(self, session: Windowed[K], value: V | None) -> tuple[bytes, bytes | None]:
        """The bytes of a session's key and value."""
        if session is None:
            raise ValueError("sessionKey can't be null")
        if session.key is None:
            raise ValueError("sessionKey.key() can't be null")
        return self._key(session.key), self._values.serialize(self._topic, value)

    def _keep(
        self,
        key: bytes,
        session: Windowed[K],
        data: bytes | None,
        kept: bytes | None,
        headers: Headers,
    ) -> None:
        """Set what the store keeps for a session, and log the value's bytes."""
        start, end = session.window
        entry, cache = (key, end, start), self._cache
        old = None if cache is None or cache.has(entry) else self._segments.get(entry)
        self._segments.put(entry, kept)
        if cache is not None:
            cache.put(entry, len(key) + 16, old, kept)
        else:
            self._log(session_store_key(key, start, end), data, None, headers)

    def remove(self, session: Windowed[K]) -> None:
        """Delete a session: store.remove(Windowed("a", Window(0, 10)))."""
        self.put(session, None)

    def get(self, key: K, start: int, end: int) -> V | None:
        """The value of one session, or `None`."""
        return self._read(self._segments.get((self._key(key), end, start)))

    def find_sessions(self, key: K, end_min: int, start_max: int) -> list[tuple[Windowed[K], V]]:
        """The sessions of a key that end at `end_min` or later and start by `start_max`."""
        found = self._segments.of_key(self._key(key), end_min, _TIME_MAX)
        return [self._typed(entry, data) for entry, data in found if entry[2] <= start_max]

    def backward_find_sessions(
        self, key: K, end_min: int, start_max: int
    ) -> list[tuple[Windowed[K], V]]:
        """The same, the latest session first."""
        return list(reversed(self.find_sessions(key, end_min, start_max)))

    def find_sessions_range(
        self, key_from: K | None, key_to: K | None, end_min: int, start_max: int
    ) -> list[tuple[Windowed[K], V]]:
        """The same of the keys from `key_from` to `key_to`: by end, key, then start.

        `None` as the first key stands for the smallest, as the last one for the largest.
        """
        first = b"" if key_from is None else self._key(key_from)
        last = None if key_to is None else self._key(key_to)
        found = [
            (entry, data)
            for entry, data in self._segments.between(end_min, _TIME_MAX)
            if entry[2] <= start_max and first <= entry[0] and (last is None or entry[0] <= last)
        ]
        found.sort(key=lambda each: (each[0][1], each[0][0], each[0][2]))
        return [self._typed(entry, data) for entry, data in found]

    def backward_find_sessions_range(
        self, key_from: K | None, key_to: K | None, end_min: int, start_max: int
    ) -> list[tuple[Windowed[K], V]]:
        """The same, the latest session first."""
        return list(reversed(self.find_sessions_range(key_from, key_to, end_min, start_max)))

    def fetch(self, key: K) -> list[tuple[Windowed[K], V]]:
        """All sessions of a key, the oldest first."""
        return self.find_sessions(key, 0, _TIME_MAX)

    def backward_fetch(self, key: K) -> list[tuple[Windowed[K], V]]:
        """All sessions of a key, the latest first."""
        return self.backward_find_sessions(key, 0, _TIME_MAX)

    def fetch_range(self, key_from: K | None, key_to: K | None) -> list[tuple[Windowed[K], V]]:
        """All sessions of the keys from `key_from` to `key_to`: by end, key, then start."""
        return self.find_sessions_range(key_from, key_to, 0, _TIME_MAX)

    def backward_fetch_range(
        self, key_from: K | None, key_to: K | None
    ) -> list[tuple[Windowed[K], V]]:
        """The same, the latest session first."""
        return self.backward_find_sessions_range(key_from, key_to, 0, _TIME_MAX)

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
