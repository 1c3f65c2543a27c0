"""How far a store has read its input, by topic and partition."""

from __future__ import annotations

from collections.abc import Mapping


class Position:
    """How far input was processed: the last offset by topic and partition. Immutable."""

    __slots__ = ("_offsets",)

    def __init__(self, offsets: Mapping[str, Mapping[int, int]] | None = None) -> None:
        self._offsets = {topic: dict(found) for topic, found in (offsets or {}).items()}

    @property
    def topics(self) -> frozenset[str]:
        return frozenset(self._offsets)

    def partition_positions(self, topic: str) -> dict[int, int]:
        """The last offset of each partition of a topic."""
        return dict(self._offsets.get(topic, {}))

    def with_component(self, topic: str, partition: int, offset: int) -> Position:
        """The same with another partition; of two offsets the larger counts."""
        return self.merge(Position({topic: {partition: offset}}))

    def merge(self, other: Position) -> Position:
        """As far as either of them."""
        merged = {topic: dict(found) for topic, found in self._offsets.items()}
        for topic, found in other._offsets.items():
            mine = merged.setdefault(topic, {})
            for partition, offset in found.items():
                mine[partition] = max(offset, mine.get(partition, offset))
        return Position(merged)

    def reaches(self, bound: Position, partition: int) -> bool:
        """Whether a partition of a store has read what a bound names of that partition."""
        for topic, wanted in bound._offsets.items():
            seen = self._offsets.get(topic, {}).get(partition)
            if partition in wanted and (seen is None or seen < wanted[partition]):
                return False
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Position) and self._offsets == other._offsets

    def __hash__(self) -> int:
        return hash(frozenset((t, frozenset(o.items())) for t, o in self._offsets.items()))

    def __repr__(self) -> str:
        return f"Position({self._offsets!r})"
