"""Which transactions a cleaning meets, and which of their batches and markers may go.

Batches are shown in the order of the log. Invariants: data of an aborted
transaction may go at once; a marker may go only when no batch of its transaction was met
before it, be it an empty one that is kept for its producer, because a batch without its
marker would look like an open transaction. An aborted transaction of which something was
met is handed on, to be in the new segment's index too.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable

from moldau.broker.log.transaction_index import AbortedTransaction
from moldau.wire.constants import Buffer
from moldau.wire.records import BatchHeader, ControlType, decode_batch, decode_control_type


class TransactionTracker:
    __slots__ = ("_aborted", "_committed", "_expected", "_retain")

    def __init__(self, retain: Callable[[AbortedTransaction], None] | None = None) -> None:
        self._retain = retain
        # By first offset; those the log has not come to yet.
        self._expected: list[tuple[int, AbortedTransaction]] = []
        # Open aborted transactions by producer, and whether a batch of theirs was met.
        self._aborted: dict[int, tuple[AbortedTransaction, bool]] = {}
        # Producers with a batch of a transaction that is going to commit.
        self._committed: set[int] = set()

    def expect(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Transactions that overlap what comes next; naming one twice does no harm."""
        for transaction in aborted:
            heapq.heappush(self._expected, (transaction.first_offset, transaction))

    def on_data(self, header: BatchHeader) -> bool:
        """Whether this batch belongs to an aborted transaction."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        producer_id = header.producer_id
        found = self._aborted.get(producer_id)
        if found is None:
            self._committed.add(producer_id)
            return False
        self._aborted[producer_id] = found[0], True
        return True

    def on_control(self, header: BatchHeader, batch: Buffer) -> bool:
        """Whether nothing needs this control batch any more."""
        self._begin_up_to(header.last_offset)
        if header.record_count == 0:
            return True
        kind = decode_control_type(decode_batch(batch)[0].key)
        if kind == ControlType.ABORT:
            transaction, met = self._aborted.pop(header.producer_id, (None, False))
            if transaction is None or not met:
                return True
            if self._retain is not None:
                self._retain(transaction)
            return False
        if kind == ControlType.COMMIT:
            met = header.producer_id in self._committed
            self._committed.discard(header.producer_id)
            return not met
        return False

    def _begin_up_to(self, offset: int) -> None:
        expected = self._expected
        while expected and expected[0][0] <= offset:
            transaction = heapq.heappop(expected)[1]
            self._aborted.setdefault(transaction.producer_id, (transaction, False))
