"""Window and session stores in memory."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Generic, TypeVar

from moldau.streams.records import Window, Windowed
from moldau.streams.serdes import Serde
from moldau.streams.stores.base import Drop, Log, no_drop, no_log
from moldau.streams.stores.formats import (
    read_timestamped_value,
    session_store_key,
    timestamped_value,
    window_store_key,
)

K = TypeVar("K")
V = TypeVar("V")

SEGMENT_MS_MIN = 60_000


class _Segments:
    """Entries of bytes under (key, first time, second number), dropped by whole segments of time.

    Invariants: an entry is visible while its time is within `retention_ms` of the newest time that
    was put; a put into a segment that is no longer kept is refused.
    """

    def __init__(self, retention_ms: int, drop: Drop) -> None:
        self._retention_ms = retention_ms
        self._segment_ms = max(retention_ms // 2, SEGMENT_MS_MIN)
        self._drop = drop
        self._observed_ms = -1
        self._values: dict[tuple[bytes, int, int], bytes] = {}
        self._times: dict[bytes, list[tuple[int, int]]] = {}
        self._segments: dict[int, set[tuple[bytes, int, int]]] = {}

    @property
    def oldest_visible_ms(self) -> int:
        return self._observed_ms - self._retention_ms + 1

    def get(self, entry: tuple[bytes, int, int]) -> bytes | None:
        return None if entry[1] < self.oldest_visible_ms else self._values.get(entry)

    def put(self, entry: tuple[bytes, int, int], value: bytes | None) -> bool:
        """Set or delete (`None`); false when the entry is too old."""
        time = entry[1]
        self._observed_ms = max(self._observed_ms, time)
        segment = time // self._segment_ms
        oldest = max(0, self._observed_ms - self._retention_ms) // self._segment_ms
        if segment < oldest:
            self._drop()
            return False
        for expired in [number for number in self._segments if number < oldest]:
            for each in self._segments.pop(expired):
                self._forget(each)
        if value is None:
            if entry in self._values:
                self._segments[segment].discard(entry)
                self._forget(entry)
        else:
            if entry not in self._values:
                insort(self._times.setdefault(entry[0], []), entry[1:])
                self._segments.setdefault(segment, set()).add(entry)
            self._values[entry] = value
        return True

    def _forget(self, entry: tuple[bytes, int, int]) -> None:
        del self._values[entry]
        times = self._times[entry[0]]
        del times[bisect_left(times, entry[1:])]
        if not times:
            del self._times[entry[0]]

    def of_key(
        self, key: bytes, low: int, high: int
    ) -> Iterator[tuple[tuple[bytes, int, int], bytes]]:
        """The visible entries of a key with a time from `low` to `high`, in the order of time."""
        low = max(low, self.oldest_visible_ms)
        times = self._times.get(key, [])
        for time, number in times[bisect_left(times, (low, -(2**63))) :]:
            if time > high:
                return
            entry = key, time, number
            yield entry, self._values[entry]

    def between(self, low: int, high: int) -> list[tuple[tuple[bytes, int, int], bytes]]:
        """The visible entries of all keys with a time from `low` to `high`, in no order."""
        low = max(low, self.oldest_visible_ms)
        found = [entry for entry in self._values if low <= entry[1] <= high]
        return [(entry, self._values[entry]) for entry in found]

    def all(self) -> list[tuple[tuple[bytes, int, int], bytes]]:
        """The visible entries: key, then time."""
        low = self.oldest_visible_ms
        return [(entry, self._values[entry]) for entry in sorted(self._values) if entry[1] >= low]


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
    ) -> None:
        self.name = name
        self._keys = key_serde
        self._values = value_serde
        self._size_ms = window_size_ms
        self._retain_duplicates = retain_duplicates
        self._timestamped = timestamped
        self._sequence = 0
        self._segments = _Segments(retention_ms, drop)
        self._log = log

    def _key(self, key: K) -> bytes:
        data = self._keys.serialize(self.name, key)
        if data is None:
            raise ValueError(f"key cannot be null in store {self.name}")
        return data

    def put(self, key: K, value: V | None, start: int, timestamp: int = 0) -> None:
        """Set the value of a window; `None` deletes it: store.put("a", 1, 0, timestamp=5)."""
        data = self._values.serialize(self.name, value)
        if self._retain_duplicates:
            if data is None:
                return
            self._sequence = (self._sequence + 1) & 0x7FFF_FFFF
        if self._timestamped:
            data = timestamped_value(data, timestamp)
        raw = self._key(key)
        if self._segments.put((raw, start, self._sequence), data):
            time = timestamp if self._timestamped else None
            self._log(window_store_key(raw, start, self._sequence), data, time)

    def _value(self, data: bytes) -> tuple[V, int]:
        time = -1
        if self._timestamped:
            data, time = read_timestamped_value(data)
        return self._values.deserialize(self.name, data), time  # type: ignore[return-value]

    def _windowed(self, entry: tuple[bytes, int, int]) -> Windowed[K]:
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
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing to close."""

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        start, sequence = int.from_bytes(key[-12:-4]), int.from_bytes(key[-4:])
        self._segments.put((key[:-12], start, sequence), value)
        self._sequence = max(self._sequence, sequence) if self._retain_duplicates else 0


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
    ) -> None:
        self.name = name
        self._keys = key_serde
        self._values = value_serde
        self._segments = _Segments(retention_ms, drop)
        self._log = log

    def _key(self, key: K) -> bytes:
        data = self._keys.serialize(self.name, key)
        if data is None:
            raise ValueError(f"key cannot be null in store {self.name}")
        return data

    def _typed(self, entry: tuple[bytes, int, int], data: bytes) -> tuple[Windowed[K], V]:
        key = self._keys.deserialize(self.name, entry[0])
        windowed = Windowed(key, Window(entry[2], entry[1]))
        return windowed, self._values.deserialize(self.name, data)  # type: ignore[return-value]

    def put(self, session: Windowed[K], value: V | None) -> None:
        """Set the value of a session; `None` deletes it."""
        key, (start, end) = self._key(session.key), session.window
        data = self._values.serialize(self.name, value)
        if self._segments.put((key, end, start), data):
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
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing to close."""

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        end, start = int.from_bytes(key[-16:-8]), int.from_bytes(key[-8:])
        self._segments.put((key[:-16], end, start), value)
