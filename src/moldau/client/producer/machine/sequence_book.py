"""The sequence numbers of all partitions: which batch may be sent, and which is sent again.

Decided here: whether a partition's next batch may be sent; whether a batch that failed is tried
again; and when a gap in the numbers needs another epoch. Pure. Invariant: no batch gets a sequence
number while it is not known what became of an earlier one that was given up (`_unresolved`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.client.errors import (
    KafkaError,
    OutOfOrderSequenceError,
    UnknownProducerIdError,
)
from moldau.client.producer.machine.queues import PartitionQueue
from moldau.client.producer.machine.sequences import PartitionSequences
from moldau.client.producer.machine.transaction_status import TransactionStatus
from moldau.wire.constants import NO_SEQUENCE
from moldau.wire.errors import ErrorCode

if TYPE_CHECKING:
    from moldau.client.producer._batch import ProducerBatch

__all__ = ["SequenceBook"]


class SequenceBook:
    """See the module. It is the accumulator's `Gate`."""

    def __init__(self, status: TransactionStatus) -> None:
        self._status = status
        # By partition, the number that follows the last batch that was given up.
        self._unresolved: dict[PartitionQueue, int] = {}
        self._to_rewrite: set[PartitionQueue] = set()
        self._queues: set[PartitionQueue] = set()

    @property
    def is_completing(self) -> bool:
        return self._status.is_completing

    def reset(self) -> None:
        for queue in self._queues:
            queue.sequences = PartitionSequences(queue.sequences.known_id)
        self._queues.clear()
        self._unresolved.clear()

    def may_drain(self, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        """Whether a partition's next batch may be sent now."""
        if self._status.has_fatal_error or not self._status.producer_id.is_valid:
            return False
        if self._status.is_transactional and queue.key not in self._status.partitions:
            return False
        sequences = queue.sequences
        if not batch.has_sequence:
            # What is in flight with an older epoch must be done first, and so must the first batch
            # that the partition has of this id.
            if sequences.in_flight and (
                sequences.producer_id != self._status.producer_id
                or sequences.known_id != self._status.producer_id.producer_id
            ):
                return False
            return queue not in self._unresolved
        # What is sent again goes in the order of its numbers.
        first = sequences.first_in_flight
        return first == NO_SEQUENCE or first == batch.base_sequence

    def on_drained(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        if batch.has_sequence:
            return
        self._queues.add(queue)
        sequences = queue.sequences
        if sequences.producer_id != self._status.producer_id and not sequences.in_flight:
            sequences.start_at_beginning(self._status.producer_id)
        sequences.assign(batch)

    def on_completed(self, batch: ProducerBatch, base_offset: int) -> None:
        sequences = batch.queue.sequences
        sequences.acknowledged(batch)
        if base_offset >= 0:
            last_offset = base_offset + batch.record_count - 1
            sequences.last_acked_offset = max(sequences.last_acked_offset, last_offset)
        sequences.remove(batch)

    def on_failed(self, batch: ProducerBatch, error: KafkaError, *, adjust: bool) -> None:
        """A batch is given up. `adjust` if the broker is sure not to have it: then its numbers
        are free again."""
        self._status.to_error_state(error)
        queue = batch.queue
        queue.sequences.remove(batch)
        if self._status.has_fatal_error:
            return
        if isinstance(error, OutOfOrderSequenceError) and not self._status.is_transactional:
            # There is a gap in the log; a new epoch begins at 0 again.
            self._request_bump(queue)
        elif isinstance(error, UnknownProducerIdError):
            queue.sequences = PartitionSequences()
            self._unresolved.pop(queue, None)
        elif adjust and batch.has_sequence:
            if self._status.is_transactional:
                queue.sequences.close_gap(batch)
            else:
                self._request_bump(queue)

    def on_given_up_unknown(self, batch: ProducerBatch) -> None:
        """A batch that was sent is given up, and nobody knows whether the broker has it."""
        after = (batch.last_sequence + 1) if batch.has_sequence else 0
        self._unresolved[batch.queue] = max(self._unresolved.get(batch.queue, 0), after)

    def resolve(self) -> None:
        """Once nothing is in flight it is known what became of batches that were given up."""
        for queue in list(self._unresolved):
            sequences = queue.sequences
            if sequences.in_flight:
                continue
            del self._unresolved[queue]
            if sequences.is_next(sequences.next):
                # Later batches were acknowledged, so it had arrived.
                continue
            if not self._status.is_transactional:
                self._request_bump(queue)
                continue
            error = KafkaError(
                "no acknowledgement came for some records, and they can no longer be retried",
                advice="abort the transaction" if self._status.recovers else "close this producer",
            )
            if not self._status.recovers:
                self._status.to_fatal_error(error)
            elif self._status.has_ongoing_transaction:
                self._status.require_bump()
                self._status.to_abortable_error(error)

    def _request_bump(self, queue: PartitionQueue) -> None:
        self._status.bump_required = True
        self._to_rewrite.add(queue)

    def on_bumped(self) -> None:
        """The producer has another epoch: partitions with a gap begin at 0 with it."""
        for queue in self._to_rewrite:
            queue.sequences.start_at_beginning(self._status.producer_id)
            self._unresolved.pop(queue, None)
        self._to_rewrite.clear()

    def can_retry(
        self, batch: ProducerBatch, code: int, error: KafkaError, log_start_offset: int
    ) -> bool:
        """Whether a batch that a broker refused is sent again."""
        queue = batch.queue
        sequences = queue.sequences
        if code == ErrorCode.UNKNOWN_PRODUCER_ID:
            return self._can_retry_unknown(batch, log_start_offset)
        if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            unresolved = self._unresolved.get(queue)
            if unresolved is None and (
                batch.sequence_reset or not sequences.is_next(batch.base_sequence)
            ):
                # An earlier one is still on its way.
                return True
            if not self._status.is_transactional:
                if unresolved is None or batch.base_sequence == unresolved:
                    # There is a gap for sure.
                    self._request_bump(queue)
                return True
        return error.retriable

    def _can_retry_unknown(self, batch: ProducerBatch, log_start_offset: int) -> bool:
        queue = batch.queue
        if log_start_offset == -1 or batch.sequence_reset:
            # The partition is moving; or the others in flight fail as the first one did.
            return True
        if queue.sequences.last_acked_offset < log_start_offset and self._status.is_transactional:
            # Retention has taken the records, and with them what was known of this producer.
            queue.sequences.start_at_beginning(self._status.producer_id)
            return True
        if not self._status.is_transactional:
            self._request_bump(queue)
            return True
        return False
