"""A store that keeps the versions of each key for a while."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Generic, TypeVar

from moldau.streams.records import ValueAndTimestamp
from moldau.streams.serdes import Serde
from moldau.streams.stores.base import Drop, Log, no_drop, no_log

K = TypeVar("K")
V = TypeVar("V")


class _Versions:
    __slots__ = ("times", "values")

    def __init__(self) -> None:
        self.times: list[int] = []
        self.values: list[bytes | None] = []


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
    ) -> None:
        self.name = name
        self._keys = key_serde
        self._values = value_serde
        self._history_ms = history_ms
        self._log = log
        self._drop = drop
        self._versions: dict[bytes, _Versions] = {}
        self._observed_ms = -1

    def _key(self, key: K) -> bytes:
        data = self._keys.serialize(self.name, key)
        if data is None:
            raise ValueError(f"key cannot be null in store {self.name}")
        return data

    def put(self, key: K, value: V | None, timestamp: int) -> bool | None:
        """Add a version; `None` ends the one before. Returns whether it is the latest.

        Returns `None`, and changes nothing, when the version is older than the history.
        """
        if timestamp < self._observed_ms - self._history_ms:
            self._drop()
            return None
        raw, data = self._key(key), self._values.serialize(self.name, value)
        self._log(raw, data, timestamp)
        return self._apply(raw, data, timestamp)

    def _apply(self, key: bytes, data: bytes | None, timestamp: int) -> bool:
        self._observed_ms = max(self._observed_ms, timestamp)
        versions = self._versions.setdefault(key, _Versions())
        times, values = versions.times, versions.values
        at = bisect_left(times, timestamp)
        if at < len(times) and times[at] == timestamp:
            values[at] = data
        else:
            times.insert(at, timestamp)
            values.insert(at, data)
        # The version that was valid at the start of the history stays: reads there need it.
        old = bisect_right(times, self._observed_ms - self._history_ms) - 1
        is_latest = at == len(times) - 1
        if old > 0:
            del times[:old], values[:old]
        return is_latest

    def _at(self, versions: _Versions, index: int) -> ValueAndTimestamp[V] | None:
        data = versions.values[index]
        if data is None:
            return None
        value = self._values.deserialize(self.name, data)
        return ValueAndTimestamp(value, versions.times[index])  # type: ignore[arg-type]

    def get(self, key: K) -> ValueAndTimestamp[V] | None:
        """The latest version, or `None` where the key is deleted."""
        versions = self._versions.get(self._key(key))
        return None if versions is None else self._at(versions, -1)

    def get_as_of(self, key: K, timestamp: int) -> ValueAndTimestamp[V] | None:
        """The version that was valid at a time: store.get_as_of("a", 1000)."""
        if timestamp < self._observed_ms - self._history_ms:
            return None
        versions = self._versions.get(self._key(key))
        if versions is None:
            return None
        index = bisect_right(versions.times, timestamp) - 1
        return None if index < 0 else self._at(versions, index)

    def all(self) -> Iterator[tuple[K, ValueAndTimestamp[V]]]:
        """The latest versions, in the order of the keys' bytes."""
        for key in sorted(self._versions):
            found = self._at(self._versions[key], -1)
            if found is not None:
                yield self._keys.deserialize(self.name, key), found  # type: ignore[misc]

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing to close."""

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        if timestamp >= self._observed_ms - self._history_ms:
            self._apply(key, value, timestamp)
