# cython: annotation_typing=False
"""Entries by key and time in memory, which expire by whole segments of time.

The file is plain Python, and with `_segments.pxd` beside it also the source of a compiled module
with the same names and results.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator

from moldau.streams.stores._maps import DELETED

SEGMENT_MS_MIN = 60_000
#: Key, time, and a number that tells entries of one time apart.
Entry = tuple[bytes, int, int]


def place_of(segment: bytes, entry: Entry) -> bytes:
    """Where an entry is on disk: by segment, key, time and number."""
    key, time, number = entry
    return segment + key + time.to_bytes(8, "big") + number.to_bytes(8, "big")


class Segments:
    """Entries of bytes under (key, time, number), dropped by whole segments of time."""

    __slots__ = (
        "_drop",
        "_retention_ms",
        "_segments",
        "_times",
        "_values",
        "observed_ms",
        "oldest_segment",
        "oldest_visible_ms",
        "segment_ms",
    )

    def __init__(
        self, retention_ms: int, drop: Callable[[], None], observed_ms: int = -1
    ) -> None:
        self._retention_ms = retention_ms
        self.segment_ms = max(retention_ms // 2, SEGMENT_MS_MIN)
        self._drop = drop
        self._values: dict[Entry, bytes] = {}
        self._times: dict[bytes, list[tuple[int, int]]] = {}
        self._segments: dict[int, set[Entry]] = {}
        self._observe(observed_ms)

    def _observe(self, time: int) -> None:
        """Time has gone on, and with it what is visible and what is kept."""
        #: The newest time that was put.
        self.observed_ms = time
        self.oldest_visible_ms = time - self._retention_ms + 1
        #: The number of the first segment that is kept.
        self.oldest_segment = max(0, time - self._retention_ms) // self.segment_ms

    def numbers(self) -> Iterable[int]:
        """The numbers of the segments that have entries."""
        return self._segments

    def placed(self) -> dict[bytes, bytes | None]:
        """All entries by their place on disk, in no order; `None` for those that were deleted."""
        result: dict[bytes, bytes | None] = {}
        values = self._values
        for number, entries in self._segments.items():
            segment = number.to_bytes(8, "big")
            for entry in entries:
                value = values[entry]
                result[place_of(segment, entry)] = None if value is DELETED else value
        return result

    def get(self, entry: Entry) -> bytes | None:
        """The value of a visible entry."""
        found: bytes | None = self._values.get(entry)
        if found is not None and entry[1] < self.oldest_visible_ms:
            return None
        return found

    def put(self, entry: Entry, value: bytes | None) -> bool:
        """Set or delete (`None`); false when the entry is too old."""
        time = entry[1]
        segment = time // self.segment_ms
        if time > self.observed_ms:
            oldest = self.oldest_segment
            self._observe(time)
            if self.oldest_segment > oldest:
                self._expire()
        elif segment < self.oldest_segment:
            self._drop()
            return False
        if value is None:
            if entry in self._values:
                self._segments[segment].discard(entry)
                self._forget(entry)
        elif entry in self._values:
            self._values[entry] = value
        else:
            self._values[entry] = value
            self._add(entry, segment)
        return True

    def _add(self, entry: Entry, segment: int) -> None:
        times = self._times.get(entry[0])
        place = entry[1], entry[2]
        if times is None:
            self._times[entry[0]] = [place]
        elif times[-1] < place:
            times.append(place)
        else:
            insort(times, place)
        entries = self._segments.get(segment)
        if entries is None:
            self._segments[segment] = {entry}
        else:
            entries.add(entry)

    def _expire(self) -> None:
        for expired in [number for number in self._segments if number < self.oldest_segment]:
            for each in self._segments.pop(expired):
                self._forget(each)

    def _forget(self, entry: Entry) -> None:
        del self._values[entry]
        times = self._times[entry[0]]
        del times[bisect_left(times, entry[1:])]
        if not times:
            del self._times[entry[0]]

    def of_key(self, key: bytes, low: int, high: int) -> Iterator[tuple[Entry, bytes]]:
        """The visible entries of a key with a time from `low` to `high`, in the order of time."""
        return iter(self.found(key, low, high))

    def found(self, key: bytes, low: int, high: int) -> list[tuple[Entry, bytes]]:
        """The same as a list."""
        result: list[tuple[Entry, bytes]] = []
        times = self._times.get(key)
        if times is None:
            return result
        low = max(low, self.oldest_visible_ms)
        values = self._values
        for position in range(bisect_left(times, (low,)), len(times)):
            place = times[position]
            if place[0] > high:
                break
            entry = key, place[0], place[1]
            result.append((entry, values[entry]))
        return result

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
