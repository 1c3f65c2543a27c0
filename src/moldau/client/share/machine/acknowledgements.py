"""What became of acquired offsets, and how few batches of a request can say it.

Pure. Invariants: of several acknowledgements of an offset the last one counts; the batches
cover exactly the offsets that were acknowledged, in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Final, NamedTuple
from uuid import UUID

from moldau.client.topics import TopicPartition

__all__ = [
    "GAP",
    "AcknowledgeType",
    "AcknowledgementBatch",
    "Acknowledgements",
    "TopicIdPartition",
]

#: There is no record at the offset.
GAP: Final = 0
# As many of the same type in a row have a batch of their own, with the type given once.
_RUN_SIZE_MIN: Final = 11


class AcknowledgeType(IntEnum):
    """What the application did with a record."""

    #: It was processed.
    ACCEPT = 1
    #: It was not, and may be delivered again, to whomever.
    RELEASE = 2
    #: It cannot be, and is not delivered again.
    REJECT = 3
    #: It is still being processed: the lock is renewed.
    RENEW = 4


class TopicIdPartition(NamedTuple):
    """A partition of one topic: a topic that is created again has another id."""

    topic_id: UUID
    topic: str
    partition: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class AcknowledgementBatch(NamedTuple):
    """Neighbouring offsets; one type for all of them, or one for each."""

    first_offset: int
    last_offset: int
    types: list[int]


class Acknowledgements:
    """Those of one partition that go in one request."""

    __slots__ = ("_types",)

    def __init__(self, types: Iterable[tuple[int, int]] = ()) -> None:
        self._types: dict[int, int] = dict(types)

    def add(self, offset: int, kind: int) -> None:
        # Plain numbers: hundreds of them are compared when batches are made.
        self._types[offset] = int(kind)

    def add_missing(self, offsets: Iterable[int], kind: int) -> Iterable[int]:
        """Those that were not acknowledged already, which are given back."""
        known = self._types
        missing = [offset for offset in offsets if offset not in known] if known else list(offsets)
        known.update(dict.fromkeys(missing, int(kind)))
        return missing

    def merge(self, other: Acknowledgements) -> None:
        self._types.update(other._types)

    def discard(self, offset: int) -> None:
        self._types.pop(offset, None)

    def get(self, offset: int) -> int | None:
        return self._types.get(offset)

    def items(self) -> Iterable[tuple[int, int]]:
        return self._types.items()

    def offsets(self) -> set[int]:
        return set(self._types)

    def __len__(self) -> int:
        return len(self._types)

    @property
    def renews(self) -> bool:
        return AcknowledgeType.RENEW in self._types.values()

    def batches(self) -> list[AcknowledgementBatch]:
        """For a request, in order of offsets."""
        return [batch for run in self._neighbours() for batch in _compact(*run)]

    def _neighbours(self) -> Iterator[tuple[int, list[int]]]:
        first = following = -1
        types: list[int] = []
        for offset in sorted(self._types):
            if types and offset != following:
                yield first, types
                types = []
            if not types:
                first = offset
            types.append(self._types[offset])
            following = offset + 1
        if types:
            yield first, types


def _compact(first: int, types: list[int]) -> Iterator[AcknowledgementBatch]:
    """Long runs of a type on their own, what is between them type by type."""
    start = index = 0
    while index < len(types):
        end = index
        while end < len(types) and types[end] == types[index]:
            end += 1
        if end - index >= _RUN_SIZE_MIN:
            if index > start:
                yield _batch(first + start, types[start:index])
            yield AcknowledgementBatch(first + index, first + end - 1, [types[index]])
            start = end
        index = end
    if start < len(types):
        yield _batch(first + start, types[start:])


def _batch(first: int, types: list[int]) -> AcknowledgementBatch:
    given = types[:1] if len(set(types)) == 1 else types
    return AcknowledgementBatch(first, first + len(types) - 1, given)
