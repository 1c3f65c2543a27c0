"""The segments of a log in the order of their base offsets."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from moldau.broker.log.segment import Segment
from moldau.invariant import invariant


class Segments:
    """Invariants: base offsets ascend, and the last segment is the active one."""

    __slots__ = ("_bases", "_segments", "active")

    active: Segment

    def __init__(self, segments: Iterable[Segment]) -> None:
        self._segments = list(segments)
        if len(self._segments) > 1:
            self._segments.sort(key=lambda segment: segment.base_offset)
        self._bases = [segment.base_offset for segment in self._segments]
        if self._segments:
            self.active = self._segments[-1]

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __getitem__(self, index: int) -> Segment:
        return self._segments[index]

    @property
    def first(self) -> Segment:
        return self._segments[0]

    @property
    def base_offsets(self) -> list[int]:
        return list(self._bases)

    def add(self, segment: Segment) -> None:
        index = bisect_left(self._bases, segment.base_offset)
        invariant(
            index == len(self._bases) or self._bases[index] != segment.base_offset,
            f"two segments at offset {segment.base_offset}",
        )
        self._segments.insert(index, segment)
        self._bases.insert(index, segment.base_offset)
        self.active = self._segments[-1]

    def remove(self, segment: Segment) -> None:
        index = self._segments.index(segment)
        del self._segments[index]
        del self._bases[index]
        if self._segments:
            self.active = self._segments[-1]

    def index_for(self, offset: int) -> int:
        """Index of the segment that holds `offset`; -1 before the first."""
        return bisect_right(self._bases, offset) - 1

    def next_base(self, index: int) -> int | None:
        """Base offset of the segment after that at `index`; None after the last."""
        return self._bases[index + 1] if index + 1 < len(self._bases) else None

    def overlapping(self, from_offset: int, to_offset: int) -> list[Segment]:
        """Segments that may hold offsets in [from_offset, to_offset)."""
        start = max(self.index_for(from_offset), 0)
        return [s for s in self._segments[start:] if s.base_offset < to_offset]

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self._segments)
