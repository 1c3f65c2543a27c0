"""The sparse map from offsets to file positions beside each segment (`.index`).

Entries are 8 bytes: int32 offset relative to the segment's base, int32 position of the
batch. Invariant: offsets ascend strictly.
"""

from __future__ import annotations

from struct import Struct

from moldau.broker.log.index_file import CorruptIndex, IndexFile
from moldau.invariant import invariant

__all__ = ["ENTRY_SIZE", "CorruptIndex", "OffsetIndex"]

ENTRY_SIZE = 8


class OffsetIndex(IndexFile):
    __slots__ = ("last_position",)

    ENTRY = Struct(">ii")
    FIRST = Struct(">i")

    def _take_last(self, entry: tuple[int, int] | None) -> None:
        relative, position = entry or (0, 0)
        self.last_offset = self.base_offset + relative
        self.last_position = position

    @property
    def last_entry(self) -> tuple[int, int] | None:
        if self.entry_count == 0:
            return None
        return self.last_offset - self.base_offset, self.last_position

    def _is_sound(self, entry: tuple[int, int], count: int) -> bool:
        relative, position = entry
        return relative >= count - 1 and position >= 0

    @property
    def is_full(self) -> bool:
        return self.entry_count >= self._entries_max

    def append(self, offset: int, position: int) -> None:
        invariant(
            self.entry_count == 0 or offset > self.last_offset,
            f"{self.path}: offset {offset} after {self.last_offset}",
        )
        self._add((offset - self.base_offset, position))

    def lookup(self, offset: int) -> tuple[int, int]:
        """The greatest entry at or below `offset` as (offset, position); else (base, 0)."""
        if self.entry_count == 0:
            return self.base_offset, 0
        view = self._view()
        count = self._upper_bound(view, offset - self.base_offset)
        if count == 0:
            return self.base_offset, 0
        relative, position = self._entry(view, count - 1)
        return self.base_offset + relative, position

    def truncate_to(self, offset: int) -> None:
        """Drop entries at or above `offset`."""
        if self.entry_count == 0:
            return
        view = self._view()
        self._keep(view, self._upper_bound(view, offset - self.base_offset - 1))
