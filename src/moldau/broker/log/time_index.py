"""The map from timestamps to offsets beside each segment (`.timeindex`).

Entries are 12 bytes: int64 timestamp, int32 offset relative to the segment's base. An
entry (T, offset) means that no batch up to `offset` has a timestamp above T. Invariants:
timestamps ascend strictly and offsets do not descend; an append that would break that is left out,
which only makes later scans start earlier.
"""

from __future__ import annotations

from struct import Struct

from moldau.broker.log.index_file import IndexFile
from moldau.wire.constants import NO_TIMESTAMP

__all__ = ["ENTRY_SIZE", "TimeIndex"]

ENTRY_SIZE = 12


class TimeIndex(IndexFile):
    __slots__ = ("last_timestamp",)

    ENTRY = Struct(">qi")
    FIRST = Struct(">q")

    def _take_last(self, entry: tuple[int, int] | None) -> None:
        timestamp, relative = entry or (NO_TIMESTAMP, 0)
        self.last_timestamp = timestamp
        self.last_offset = self.base_offset + relative

    @property
    def last_entry(self) -> tuple[int, int] | None:
        if self.entry_count == 0:
            return None
        return self.last_timestamp, self.last_offset - self.base_offset

    def _is_sound(self, entry: tuple[int, int], count: int) -> bool:
        timestamp, relative = entry
        return timestamp >= 0 and relative >= 0

    @property
    def is_full(self) -> bool:
        # One place is kept for the entry written when the segment is rolled.
        return self.entry_count >= self._entries_max - 1

    def maybe_append(self, timestamp: int, offset: int, *, even_if_full: bool = False) -> None:
        if timestamp <= self.last_timestamp or offset < self.last_offset:
            return
        if self.is_full and not even_if_full:
            return
        self._add((timestamp, offset - self.base_offset))

    def lookup(self, timestamp: int) -> tuple[int, int]:
        """The entry with the greatest timestamp <= `timestamp`; else (-1, base offset)."""
        if self.entry_count == 0:
            return NO_TIMESTAMP, self.base_offset
        view = self._view()
        count = self._upper_bound(view, timestamp)
        if count == 0:
            return NO_TIMESTAMP, self.base_offset
        found, relative = self._entry(view, count - 1)
        return found, self.base_offset + relative

    def truncate_to(self, offset: int) -> None:
        """Drop entries whose offset is at or above `offset`."""
        if self.entry_count == 0:
            return
        view = self._view()
        count = self.entry_count
        while count and self.base_offset + self._entry(view, count - 1)[1] >= offset:
            count -= 1
        self._keep(view, count)
