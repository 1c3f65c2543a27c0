"""One partition's part of a ShareFetch response, in as many portions as the application polls.

A node sends whole batches and says which offsets in them are acquired. Decided here: what becomes
of each acquired offset. It has a record, which is given to the application; or none, which is a gap
(compaction, control batches); or one that cannot be deserialized, which is released, or that is in
a corrupt batch, which is rejected. Invariants: every acquired offset is in exactly one
portion; an error comes with the portion that has nothing before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from moldau.client._fetch_reader import FetchReader
from moldau.client._records import Deserializer, acquired_records
from moldau.client.consumer_record import ConsumerRecord
from moldau.client.errors import CorruptRecordError, KafkaError, RecordDeserializationError
from moldau.client.share.machine.acknowledgements import (
    GAP,
    Acknowledgements,
    AcknowledgeType,
    TopicIdPartition,
)
from moldau.wire.batch_header import (
    HEADER_SIZE,
    LAST_OFFSET_DELTA_POSITION,
    LAST_OFFSET_DELTA_STRUCT,
    LOG_OVERHEAD,
    OFFSET_AND_LENGTH_STRUCT,
)

__all__ = ["Delivery", "Portion"]

Range = tuple[int, int, int]


class Portion(NamedTuple):
    """What a poll gets of it."""

    records: list[ConsumerRecord]
    acknowledgements: Acknowledgements
    unreadable: frozenset[int] = frozenset()
    error: KafkaError | None = None


class Delivery:
    """See the module."""

    def __init__(
        self,
        partition: TopicIdPartition,
        node_id: int,
        records: bytes | memoryview,
        acquired: Iterable[Range],
        *,
        lock_timeout_ms: int | None,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        check_crcs: bool = True,
    ) -> None:
        self.partition = partition
        self.node_id = node_id
        self.lock_timeout_ms = lock_timeout_ms
        self._ranges = _without_overlaps(acquired)
        self._index = 0
        self._records = records
        first = self._ranges[0][0] if self._ranges else 0
        #: Acquired offsets below this one are in portions already.
        self._position = first
        self._reader = FetchReader(
            records,
            partition.topic,
            partition.partition,
            first,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
            check_crcs=check_crcs,
        )
        self.size = len(records)

    @property
    def is_done(self) -> bool:
        return self._index >= len(self._ranges)

    def take(self, count_max: int) -> Portion:
        """The next records, at most `count_max`."""
        records: list[ConsumerRecord] = []
        acknowledgements = Acknowledgements()
        while not self.is_done and len(records) < count_max:
            self._reader.skip_to(max(self._position, self._ranges[self._index][0]))
            try:
                given = self._reader.next(count_max - len(records))
            except KafkaError as error:
                if records:
                    # The reader says it again when it is asked again.
                    break
                portion = self._unreadable(error, acknowledgements)
                if portion is not None:
                    return portion
                continue
            if not given:
                self._gaps_until(self._ranges[-1][1] + 1, (), acknowledgements)
                break
            taken: Any = acquired_records(given, self._ranges)
            self._gaps_until(given[-1].offset + 1, taken, acknowledgements)
            records = records + taken if records else taken
        return Portion(records, acknowledgements)

    def _gaps_until(
        self, end: int, taken: Iterable[ConsumerRecord], acknowledgements: Acknowledgements
    ) -> None:
        """Acquired offsets below `end` that have no record are gaps; go on from there."""
        present = {record.offset for record in taken}
        for offset in self._acquired_between(self._position, end):
            if offset not in present:
                acknowledgements.add(offset, GAP)
        self._move_to(end)

    def _acquired_between(self, start: int, end: int) -> Iterator[int]:
        for first, last, _ in self._ranges[self._index :]:
            if first >= end:
                return
            yield from range(max(first, start), min(last + 1, end))

    def _move_to(self, offset: int) -> None:
        self._position = offset
        while self._index < len(self._ranges) and self._ranges[self._index][1] < offset:
            self._index += 1

    def _unreadable(self, error: KafkaError, acknowledgements: Acknowledgements) -> Portion | None:
        """What becomes of a record or batch that cannot be read; None if it was not acquired."""
        if isinstance(error, RecordDeserializationError):
            start, end, kind = error.offset, error.offset + 1, AcknowledgeType.RELEASE
        elif isinstance(error, CorruptRecordError):
            start, end = self._corrupt_batch()
            kind = AcknowledgeType.REJECT
        else:
            raise error
        # What the reader passed over on its way here has no records.
        self._gaps_until(max(start, self._position), (), acknowledgements)
        offsets = frozenset(self._acquired_between(start, end))
        for offset in offsets:
            acknowledgements.add(offset, kind)
        self._move_to(max(end, self._position))
        self._reader.skip_to(end)
        return Portion([], acknowledgements, offsets, error) if offsets else None

    def _corrupt_batch(self) -> tuple[int, int]:
        """The offsets of the batch where the reader stands; all that follows if it is too broken
        to tell."""
        position, size = 0, len(self._records)
        end = self._ranges[-1][1] + 1
        while position + HEADER_SIZE <= size:
            base_offset, length = OFFSET_AND_LENGTH_STRUCT.unpack_from(self._records, position)
            (delta,) = LAST_OFFSET_DELTA_STRUCT.unpack_from(
                self._records, position + LAST_OFFSET_DELTA_POSITION
            )
            if length < HEADER_SIZE - LOG_OVERHEAD or delta < 0:
                break
            if base_offset + delta >= self._reader.next_offset:
                return base_offset, min(base_offset + delta + 1, end)
            position += LOG_OVERHEAD + length
        return self._position, end


def _without_overlaps(acquired: Iterable[Range]) -> list[Range]:
    """In order of offsets; of an offset that is named twice the first counts."""
    ranges: list[Range] = []
    for first, last, count in sorted(acquired, key=lambda each: each[0]):
        if ranges:
            first = max(first, ranges[-1][1] + 1)
        if first <= last:
            ranges.append((first, last, count))
    return ranges
