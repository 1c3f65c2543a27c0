"""A store's entries in memory."""

from __future__ import annotations

from moldau.streams.stores._maps import ByteMap, OrderedMap
from moldau.streams.stores._segments import Segments
from moldau.streams.stores.base import Drop, SegmentedMap


class MemoryStorage:
    """Keeps a store's entries in this process; they come back from the changelog only."""

    def __init__(self) -> None:
        self.observed_ms = -1

    def map(self) -> OrderedMap:
        return ByteMap()

    def segments(self, retention_ms: int, drop: Drop) -> SegmentedMap:
        return Segments(retention_ms, drop)
