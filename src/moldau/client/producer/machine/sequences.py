"""The numbers of a partition's batches, by which a broker knows what it has already.

Pure. Invariants: batches in flight are kept in the order of their sequence numbers; the
next number follows the last batch that was given one. Numbers wrap to 0 after 2^31-1.
"""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING, NamedTuple

from moldau.invariant import invariant
from moldau.wire.constants import NO_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE

if TYPE_CHECKING:
    from moldau.client.producer._batch import ProducerBatch

__all__ = ["NO_ID", "PartitionSequences", "ProducerId", "next_sequence"]

_SEQUENCE_MASK = 2**31 - 1
NO_ACKED_SEQUENCE = -1
NO_ACKED_OFFSET = -1


class ProducerId(NamedTuple):
    """An id and its epoch, which go together."""

    producer_id: int
    epoch: int

    @property
    def is_valid(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    def __str__(self) -> str:
        return f"{self.producer_id}:{self.epoch}"


NO_ID = ProducerId(NO_PRODUCER_ID, NO_EPOCH)


def next_sequence(sequence: int, increment: int) -> int:
    return (sequence + increment) & _SEQUENCE_MASK


def _order(batch: ProducerBatch) -> tuple[int, int, int]:
    return (batch.producer_id, batch.producer_epoch, batch.base_sequence)


class PartitionSequences:
    """Of one partition."""

    __slots__ = (
        "in_flight",
        "known_id",
        "last_acked_offset",
        "last_acked_sequence",
        "next",
        "producer_id",
    )

    def __init__(self, known_id: int = NO_PRODUCER_ID) -> None:
        self.producer_id = NO_ID
        #: The producer id that the partition has acknowledged a batch of. A broker takes any number
        #: from an id that it does not know: then the first batch goes alone, else a later one could
        #: take its place when it fails.
        self.known_id = known_id
        self.next = 0
        self.last_acked_sequence = NO_ACKED_SEQUENCE
        self.last_acked_offset = NO_ACKED_OFFSET
        self.in_flight: list[ProducerBatch] = []

    @property
    def first_in_flight(self) -> int:
        return self.in_flight[0].base_sequence if self.in_flight else NO_SEQUENCE

    def assign(self, batch: ProducerBatch) -> None:
        """Give a batch its number: it is about to be sent for the first time."""
        batch.set_producer_state(self.producer_id.producer_id, self.producer_id.epoch, self.next)
        self.next = next_sequence(self.next, batch.record_count)
        insort(self.in_flight, batch, key=_order)

    def remove(self, batch: ProducerBatch) -> None:
        if batch in self.in_flight:
            self.in_flight.remove(batch)

    def replace(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """A batch was split: its parts take over its numbers."""
        self.remove(batch)
        sequence = batch.base_sequence
        for part in parts:
            part.set_producer_state(batch.producer_id, batch.producer_epoch, sequence)
            sequence = next_sequence(sequence, part.record_count)
            insort(self.in_flight, part, key=_order)

    def acknowledged(self, batch: ProducerBatch) -> None:
        if (batch.producer_id, batch.producer_epoch) != self.producer_id:
            # It was given up, and its epoch is over: its number means nothing in the next one.
            return
        self.last_acked_sequence = max(self.last_acked_sequence, batch.last_sequence)
        self.known_id = batch.producer_id

    def is_next(self, sequence: int) -> bool:
        """Whether a number follows the last one that was acknowledged."""
        return sequence - self.last_acked_sequence == 1

    def start_at_beginning(self, producer_id: ProducerId) -> None:
        """Number everything in flight again, under another id or epoch."""
        sequence = 0
        for batch in self.in_flight:
            batch.reset_producer_state(producer_id.producer_id, producer_id.epoch, sequence)
            sequence = next_sequence(sequence, batch.record_count)
        self.producer_id = producer_id
        self.next = sequence
        self.last_acked_sequence = NO_ACKED_SEQUENCE

    def close_gap(self, failed: ProducerBatch) -> None:
        """Move everything after a batch that failed for good forward into its place."""
        count = failed.record_count
        invariant(self.next >= count, "a sequence number would become negative")
        self.next -= count
        for batch in self.in_flight:
            if batch.base_sequence > failed.base_sequence:
                batch.reset_producer_state(
                    batch.producer_id, batch.producer_epoch, batch.base_sequence - count
                )
