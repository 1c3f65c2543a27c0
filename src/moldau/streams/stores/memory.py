"""Entries in memory: by key and time, expiring by segments of time."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator

from moldau.streams.stores._maps import ByteMap, OrderedMap
from moldau.streams.stores.base import Drop, Entry, SegmentedMap

SEGMENT_MS_MIN = 60_000


class Segments:
    """Entries of bytes under (key, time, number), dropped by whole segments of time."""

    def __init__(self, retention_ms: int, drop: Drop, observed_ms: int = -1) -> None:
        self._retention_ms = retention_ms
        self.segment_ms = max(retention_ms // 2, SEGMENT_MS_MIN)
        self._drop = drop
        #: The newest time that was put.
        self.observed_ms = observed_ms
        self._values: dict[Entry, bytes] = {}
        self._times: dict[bytes, list[tuple[int, int]]] = {}
        self._segments: dict[int, set[Entry]] = {}

    @property
    def oldest_visible_ms(self) -> int:
        return self.observed_ms - self._retention_ms + 1

    @property
    def oldest_segment(self) -> int:
        """The number of the first segment that is kept."""
        return max(0, self.observed_ms - self._retention_ms) // self.segment_ms

    def entries(self) -> Iterable[tuple[Entry, bytes]]:
        """All entries, visible or not, in no order."""
        return self._values.items()

    def get(self, entry: Entry) -> bytes | None:
        return None if entry[1] < self.oldest_visible_ms else self._values.get(entry)

    def put(self, entry: Entry, value: bytes | None) -> bool:
        """Set or delete (`None`); false when the entry is too old."""
        time = entry[1]
        self.observed_ms = max(self.observed_ms, time)
        segment = time // self.segment_ms
        oldest = self.oldest_segment
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

    def _forget(self, entry: Entry) -> None:
        del self._values[entry]
        times = self._times[entry[0]]
        del times[bisect_left(times, entry[1:])]
        if not times:
            del self._times[entry[0]]

    def of_key(self, key: bytes, low: int, high: int) -> Iterator[tuple[Entry, bytes]]:
        """The visible entries of a key with a time from `low` to `high`, in the order of time."""
        low = max(low, self.oldest_visible_ms)
        times = self._times.get(key, [])
        for time, number in times[bisect_left(times, (low, -(2**63))) :]:
            if time > high:
                return
            entry = key, time, number
            yield entry, self._values[entry]

    def between(self, low: int, high: int) -> list[tuple[Entry, bytes]]:
        """The visible entries of all keys with a time from `low` to `high`, in no order."""
        low = max(low, self.oldest_visible_ms)
        first, last = max(0, low) // self.segment_ms, high // self.segment_ms
        return [
            (entry, self._values[entry])
            for number, entries in self._segments.items()
            if first <= number <= last
            for entry in entries
            if low <= entry[1] <= high
        ]

    def all(self) -> list[tuple[Entry, bytes]]:
        """The visible entries: key, then time."""
        low = self.oldest_visible_ms
        return [(entry, self._values[entry]) for entry in sorted(self._values) if entry[1] >= low]


class MemoryStorage:
    """Keeps a store's entries in this process; they come back from the changelog only."""

    def __init__(self) -> None:
        self.observed_ms = -1

    def map(self) -> OrderedMap:
        return ByteMap()

    def segments(self, retention_ms: int, drop: Drop) -> SegmentedMap:
        return Segments(retention_ms, drop)
