"""Segments of which a part is on disk: what is written waits in memory and hides what is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from moldau.streams.stores._maps import DELETED, merged
from moldau.streams.stores._segments import Segments, place_of
from moldau.streams.stores.base import Drop, Entry

_TIME_MAX = 2**63 - 1
# An entry that waits is a tuple in a dict, a set and a list.
_OVERHEAD = 600


class OnDisk(Protocol):
    """The entries that are on disk."""

    def get(self, key: bytes) -> bytes | None: ...

    def count(self) -> int: ...

    def scan(self, start: bytes, end: bytes | None) -> Iterator[tuple[bytes, bytes]]: ...

    def write(self, transaction: Any, changes: Mapping[bytes, bytes | None]) -> None: ...

    def delete_before(self, transaction: Any, end: bytes) -> None: ...


class Times(Protocol):
    """Keeps the newest time of a store."""

    observed_ms: int


class DiskSegments:
    """Entries by key and time, which expire by segments: segment, key, time, number on disk."""

    def __init__(
        self,
        disk: OnDisk,
        times: Times,
        retention_ms: int,
        drop: Drop,
        grow: Callable[[int], None],
    ) -> None:
        self._disk = disk
        self._times = times
        self._retention_ms = retention_ms
        self._drop = drop
        self._grow = grow
        self._pending = Segments(retention_ms, drop, times.observed_ms)
        #: The numbers of the segments that have entries on disk.
        self._on_disk = set(self._segments_on_disk())
        #: No entry on disk is newer: most reads are of recent times, which wait in memory.
        self._newest_on_disk_ms = times.observed_ms

    def _segments_on_disk(self) -> Iterator[int]:
        segment = 0
        while True:
            found = next(self._disk.scan(segment.to_bytes(8), None), None)
            if found is None:
                return
            segment = int.from_bytes(found[0][:8]) + 1
            yield segment - 1

    def get(self, entry: Entry) -> bytes | None:
        pending = self._pending
        if entry[1] < pending.oldest_visible_ms:
            return None
        found = pending.get(entry)
        if found is None:
            time = entry[1]
            segment = time // pending.segment_ms
            if time <= self._newest_on_disk_ms and segment in self._on_disk:
                return self._disk.get(place_of(segment.to_bytes(8), entry))
            return None
        return None if found is DELETED else found

    def put(self, entry: Entry, value: bytes | None) -> bool:
        """Set or delete (`None`); false when the entry is too old."""
        kept = self._pending.put(entry, DELETED if value is None else value)
        if kept:
            self._grow(len(entry[0]) + _OVERHEAD + (0 if value is None else len(value)))
        return kept

    def _scan(self, segment: int, key: bytes, low: int, high: int) -> Iterator[tuple[Entry, bytes]]:
        start = segment.to_bytes(8) + key
        size = len(start) + 16
        first, last = start + low.to_bytes(8), start + high.to_bytes(8) + b"\xff" * 8
        for place, value in self._disk.scan(first, last):
            # Keys that begin with this one lie in between.
            if len(place) == size and place.startswith(start):
                time = int.from_bytes(place[-16:-8])
                if low <= time <= high:
                    yield (key, time, int.from_bytes(place[-8:])), value

    def of_key(self, key: bytes, low: int, high: int) -> Iterator[tuple[Entry, bytes]]:
        """The visible entries of a key with a time from `low` to `high`, in the order of time."""
        pending = self._pending
        above = pending.found(key, low, high)
        if low > self._newest_on_disk_ms:
            return iter([each for each in above if each[1] is not DELETED])
        low, high = max(low, pending.oldest_visible_ms, 0), min(high, _TIME_MAX)
        first, last = low // pending.segment_ms, high // pending.segment_ms
        segments = sorted(each for each in self._on_disk if first <= each <= last)
        below = (each for number in segments for each in self._scan(number, key, low, high))
        return merged(iter(above), below)

    def between(self, low: int, high: int) -> list[tuple[Entry, bytes]]:
        """The visible entries of all keys with a time from `low` to `high`, in no order."""
        pending = self._pending
        low, high = max(low, pending.oldest_visible_ms, 0), min(high, _TIME_MAX)
        found: dict[Entry, bytes] = {}
        first, last = low // pending.segment_ms, high // pending.segment_ms
        for segment in self._on_disk:
            if not first <= segment <= last:
                continue
            start = segment.to_bytes(8)
            for place, value in self._disk.scan(start, None):
                if not place.startswith(start):
                    break
                time = int.from_bytes(place[-16:-8])
                if low <= time <= high:
                    found[place[8:-16], time, int.from_bytes(place[-8:])] = value
        found.update(pending.between(low, high))
        return [each for each in found.items() if each[1] is not DELETED]

    def all(self) -> list[tuple[Entry, bytes]]:
        """The visible entries: key, then time."""
        return sorted(self.between(0, _TIME_MAX), key=lambda each: each[0])

    def write(self, transaction: Any) -> None:
        self._times.observed_ms = self._pending.observed_ms
        self._disk.write(transaction, self._pending.placed())
        oldest = self._pending.oldest_segment
        if any(segment < oldest for segment in self._on_disk):
            self._disk.delete_before(transaction, oldest.to_bytes(8))

    def written(self) -> None:
        pending = self._pending
        oldest = pending.oldest_segment
        kept = {segment for segment in self._on_disk if segment >= oldest}
        self._on_disk = kept.union(pending.numbers())
        self._newest_on_disk_ms = pending.observed_ms
        self._pending = Segments(self._retention_ms, self._drop, pending.observed_ms)
