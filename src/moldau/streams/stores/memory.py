"""A store's entries in memory."""

from __future__ import annotations

from moldau.streams.stores._maps import ByteMap, OrderedMap
from moldau.streams.stores.base import Drop, SegmentedMap


class MemoryStorage:
    """Keeps a store's entries in this process; they come back from the changelog only."""

    def __init__(self) -> None:
        self.observed_ms = -1
        self.is_used = False

    def map(self) -> OrderedMap:
        self.is_used = True
        return ByteMap()

    def segments(self, retention_ms: int, drop: Drop) -> SegmentedMap:
        # Imported here: most programs have no windows.
        from moldau.streams.stores._segments import Segments

        self.is_used = True
        return Segments(retention_ms, drop)
