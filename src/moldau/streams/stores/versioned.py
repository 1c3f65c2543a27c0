"""A store that keeps the versions of each key for a while."""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from moldau.streams.records import ValueAndTimestamp
from moldau.streams.serdes import Serde
from moldau.streams.stores.base import (
    PUT_RETURN_CODE_NOT_PUT,
    PUT_RETURN_CODE_VALID_TO_UNDEFINED,
    ChangelogRecord,
    Drop,
    Log,
    Storage,
    no_drop,
    no_log,
)
from moldau.streams.stores.memory import MemoryStorage

K = TypeVar("K")
V = TypeVar("V")


_TIME_AND_SIZE = struct.Struct(">qi")


def _time(version: tuple[int, bytes | None]) -> int:
    return version[0]


def _encoded(versions: list[tuple[int, bytes | None]]) -> bytes:
    """The versions of a key, the latest first: time, size (-1 for null), bytes."""
    parts = []
    for time, data in reversed(versions):
        parts.append(_TIME_AND_SIZE.pack(time, -1 if data is None else len(data)))
        parts.append(data or b"")
    return b"".join(parts)


def _decoded(raw: bytes | None) -> list[tuple[int, bytes | None]]:
    versions: list[tuple[int, bytes | None]] = []
    position = 0
    while raw is not None and position < len(raw):
        time, size = _TIME_AND_SIZE.unpack_from(raw, position)
        position += _TIME_AND_SIZE.size
        versions.append((time, None if size < 0 else raw[position : position + size]))
        position += max(size, 0)
    versions.reverse()
    return versions


class VersionedKeyValueStore(Generic[K, V]):
    """Versions by time. Writes older than the history are refused, reads find nothing there."""

    is_versioned = True

    def __init__(
        self,
        name: str,
        key_serde: Serde[K],
        value_serde: Serde[V],
        history_ms: int,
        log: Log = no_log,
        drop: Drop = no_drop,
        storage: Storage | None = None,
        topic: str | None = None,
    ) -> None:
        self.name = name
        self._topic = topic or name
        self._keys = key_serde
        self._values = value_serde
        self._history_ms = history_ms
        self._log = log
        self._drop = drop
        self._storage: Storage = storage or MemoryStorage()
        self._map = self._storage.map()

    def _key(self, key: K) -> bytes:
        data = self._keys.serialize(self._topic, key)
        if data is None:
            raise ValueError(f"key cannot be null in store {self.name}")
        return data

    def put(self, key: K, value: V | None, timestamp: int) -> int:
        """Add a version; `None` ends the one before. Returns the time of the next version.

        Without one that is `PUT_RETURN_CODE_VALID_TO_UNDEFINED`. A version that is older than the
        history changes nothing: `PUT_RETURN_CODE_NOT_PUT`.
        """
        raw, data = self._key(key), self._values.serialize(self._topic, value)
        self._log(raw, data, timestamp)
        if timestamp < self._storage.observed_ms - self._history_ms:
            self._drop()
            return PUT_RETURN_CODE_NOT_PUT
        return self._apply(raw, data, timestamp)

    def delete(self, key: K, timestamp: int) -> ValueAndTimestamp[V] | None:
        """End the version of a time: store.delete("a", 1000). Returns it, or `None`.

        A time older than the history changes nothing, and returns `None`.
        """
        found = self.get_as_of(key, timestamp)
        return None if self.put(key, None, timestamp) == PUT_RETURN_CODE_NOT_PUT else found

    def _apply(self, key: bytes, data: bytes | None, timestamp: int) -> int:
        storage = self._storage
        storage.observed_ms = max(storage.observed_ms, timestamp)
        versions = _decoded(self._map.get(key))
        at = bisect_left(versions, timestamp, key=_time)
        if at < len(versions) and versions[at][0] == timestamp:
            if data is None and len(versions) == 1 and versions[0][1] is not None:
                # As in Kafka Streams, a deletion at the time of the only version leaves nothing, so
                # an older version that comes later is the latest one.
                self._map.put(key, None)
                return PUT_RETURN_CODE_VALID_TO_UNDEFINED
            versions[at] = timestamp, data
        else:
            versions.insert(at, (timestamp, data))
        # The version that was valid at the start of the history stays: reads there need it.
        old = bisect_right(versions, storage.observed_ms - self._history_ms, key=_time) - 1
        self._map.put(key, _encoded(versions[max(old, 0) :]))
        is_latest = at == len(versions) - 1
        return PUT_RETURN_CODE_VALID_TO_UNDEFINED if is_latest else versions[at + 1][0]

    def _typed(self, data: bytes | None, timestamp: int) -> ValueAndTimestamp[V] | None:
        if data is None:
            return None
        value = self._values.deserialize(self._topic, data)
        return ValueAndTimestamp(value, timestamp)  # type: ignore[arg-type]

    def _latest(self, raw: bytes) -> ValueAndTimestamp[V] | None:
        time, size = _TIME_AND_SIZE.unpack_from(raw)
        start = _TIME_AND_SIZE.size
        return self._typed(None if size < 0 else raw[start : start + size], time)

    def get(self, key: K) -> ValueAndTimestamp[V] | None:
        """The latest version, or `None` where the key is deleted."""
        raw = self._map.get(self._key(key))
        return None if raw is None else self._latest(raw)

    def get_as_of(self, key: K, timestamp: int) -> ValueAndTimestamp[V] | None:
        """The version that was valid at a time: store.get_as_of("a", 1000).

        Before the history begins only the latest version is known: it never expires.
        """
        versions = _decoded(self._map.get(self._key(key)))
        index = bisect_right(versions, timestamp, key=_time) - 1
        if index < 0 or (index < len(versions) - 1 and not self.remembers(timestamp)):
            return None
        return self._typed(versions[index][1], versions[index][0])

    def remembers(self, timestamp: int) -> bool:
        """Whether a time is within the history."""
        return timestamp >= self._storage.observed_ms - self._history_ms

    def versions(self, key: K) -> list[tuple[V, int, int | None]]:
        """The kept versions of a key: value, time, and the time of the next one."""
        kept = _decoded(self._map.get(self._key(key)))
        ends = [time for time, _ in kept[1:]] + [None]
        return [
            (self._values.deserialize(self._topic, data), time, end)  # type: ignore[misc]
            for (time, data), end in zip(kept, ends, strict=True)
            if data is not None
        ]

    def all(self) -> Iterator[tuple[K, ValueAndTimestamp[V]]]:
        """The latest versions, in the order of the keys' bytes."""
        for key, raw in self._map.range():
            found = self._latest(raw)
            if found is not None:
                yield self._keys.deserialize(self._topic, key), found  # type: ignore[misc]

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing to close."""

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        for key, value, timestamp, _ in records:
            if timestamp >= self._storage.observed_ms - self._history_ms:
                self._apply(key, value, timestamp)
