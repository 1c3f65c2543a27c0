"""The transactions of a producer: what the application calls, and which request comes next.

Decided here: which request to a coordinator is sent next. `transaction_status.py` holds the state,
`sequence_book.py` the sequence numbers, `transaction_responses.py` decides what a response means.
Pure: requests are sent elsewhere, one at a time.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from itertools import count
from typing import Any

from moldau.client.errors import IllegalStateError, KafkaError
from moldau.client.producer.machine.sequence_book import SequenceBook
from moldau.client.producer.machine.sequences import NO_ID, ProducerId
from moldau.client.producer.machine.transaction_requests import RequestMaker
from moldau.client.producer.machine.transaction_responses import ResponseReader
from moldau.client.producer.machine.transaction_state import (
    Operation,
    State,
    TransactionRequest,
    Verdict,
)
from moldau.client.producer.machine.transaction_status import Features, TransactionStatus
from moldau.client.topics import OffsetAndMetadata, TopicPartition

__all__ = ["Features", "TransactionManager"]

_EPOCH_MAX = 2**15 - 1


class TransactionManager:
    """See the module. Called on the loop, but for `check_send` and `add_partition`."""

    def __init__(self, transactional_id: str | None, transaction_timeout_ms: int) -> None:
        self.status = TransactionStatus(transactional_id)
        self.sequences = SequenceBook(self.status)
        self._make = RequestMaker(self.status, transaction_timeout_ms)
        self._answers = ResponseReader(self.status, self.sequences, self._make, self.enqueue)
        self._requests: list[tuple[int, int, TransactionRequest]] = []
        self._numbers = count()

    @property
    def is_transactional(self) -> bool:
        return self.status.is_transactional

    @property
    def has_requests(self) -> bool:
        return bool(self._requests) or bool(self.status.new_partitions)

    # What the application calls.

    def initialize(self) -> Operation:
        self.status.require_transactional()
        self.status.fail_if_error()
        known = self.status.pending_of(State.INITIALIZING, "init_transactions")
        if known is not None:
            return known
        self.status.transition_to(State.INITIALIZING)
        return self._start(self._make.init(NO_ID))

    @property
    def can_start_over(self) -> bool:
        """Whether nothing is under way, and nothing that failed would have to be made up for."""
        status = self.status
        return (
            not self.has_requests
            and not status.bump_required
            and (status.pending is None or status.pending.acknowledged)
            and status.state in (State.UNINITIALIZED, State.READY, State.IN_TRANSACTION)
        )

    def start_over(self, transactional_id: str) -> None:
        """Be a new producer with this id, which begins with `initialize`. A transaction that is
        open, with all its records acknowledged, is left to somebody else."""
        self.status.require_transactional()
        self.status.refuse_pending("start_over")
        self.status.start_over(transactional_id)

    def begin(self) -> None:
        self.status.require_transactional()
        self.status.refuse_pending("begin_transaction")
        self.status.fail_if_error()
        if self.status.state is State.UNINITIALIZED:
            raise IllegalStateError(
                "transactions are not initialized",
                advice="call init_transactions() first",
            )
        if self.status.state is State.IN_TRANSACTION:
            raise IllegalStateError(
                "a transaction is open already",
                advice="call commit_transaction() or abort_transaction() first",
            )
        self.status.transition_to(State.IN_TRANSACTION)

    def begin_commit(self, features: Features) -> Operation:
        self.status.require_transactional()
        known = self.status.pending_of(State.COMMITTING, "commit_transaction")
        if known is not None:
            return known
        self.status.fail_if_error()
        self.status.require_open_transaction()
        self.status.transition_to(State.COMMITTING)
        return self._complete(features, committed=True)

    def begin_abort(self, features: Features) -> Operation:
        self.status.require_transactional()
        known = self.status.pending_of(State.ABORTING, "abort_transaction")
        if known is not None:
            return known
        if not self.status.has_abortable_error:
            self.status.fail_if_error()
            self.status.require_open_transaction()
        self.status.transition_to(State.ABORTING)
        self.status.new_partitions.clear()
        return self._complete(features, committed=False)

    def _complete(self, features: Features, *, committed: bool) -> Operation:
        self._enqueue_new_partitions()
        # It ends in the version that it began with; the next one may have another.
        request = self._make.end(committed)
        self.status.update_features(*features)
        operation = self._start(request)
        if self.status.bump_required:
            # Whoever waits, waits for the new epoch as well.
            bump = self._make.init(self.status.producer_id, is_bump=True)
            bump.operation.next_state = operation.next_state
            operation = self._start(bump)
        return operation

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: Any
    ) -> Operation:
        self.status.require_transactional()
        self.status.refuse_pending("send_offsets_to_transaction")
        self.status.fail_if_error()
        self.status.require_open_transaction()
        if self.status.is_v2:
            self.status.started = True
            request = self._make.offsets(Operation("TxnOffsetCommit"), offsets, group)
        else:
            request = self._make.add_offsets(offsets, group)
        self.enqueue(request)
        return request.operation

    def check_send(self) -> None:
        """Raises if nothing may be sent now. Called for every record of a transaction."""
        status = self.status
        if status.last_error is not None:
            status.fail_if_error()
        if status.pending is not None:
            status.refuse_pending("send")
        if status.state is not State.IN_TRANSACTION and status.is_transactional:
            status.require_in_transaction()

    def add_partition(self, key: TopicPartition) -> bool:
        """A record was appended there. True if AddPartitionsToTxn has to be sent."""
        status = self.status
        if status.is_v2:
            status.partitions.add(key)
            status.started = True
            return False
        if (
            key in status.partitions
            or key in status.pending_partitions
            or key in status.new_partitions
        ):
            return False
        status.new_partitions.add(key)
        return True

    def _start(self, request: TransactionRequest) -> Operation:
        self.enqueue(request)
        self.status.pending = request.operation
        return request.operation

    # Requests.

    def enqueue(self, request: TransactionRequest) -> None:
        heapq.heappush(self._requests, (request.priority, next(self._numbers), request))

    def _enqueue_new_partitions(self) -> None:
        if self.status.new_partitions:
            self.status.pending_partitions |= self.status.new_partitions
            self.status.new_partitions.clear()
            self.enqueue(self._make.add_partitions())

    def next_request(self, has_incomplete: bool) -> TransactionRequest | None:
        """What to send now; the end of a transaction waits until all its batches are done."""
        self._enqueue_new_partitions()
        while self._requests:
            request = self._requests[0][2]
            if request.is_end and has_incomplete:
                return None
            heapq.heappop(self._requests)
            if self.status.state in (State.ABORTABLE_ERROR, State.FATAL_ERROR):
                request.operation.fail(self.status.last_error or KafkaError("an error state"))
            elif request.is_end and not self.status.started:
                # Nothing was sent: the coordinator does not know of a transaction.
                self.status.on_ended()
                request.operation.succeed()
            else:
                return request
        return None

    def on_response(self, request: TransactionRequest, response: Any) -> Verdict:
        """What becomes of a request."""
        return self._answers.on_response(request, response)

    def on_failure(self, request: TransactionRequest, error: KafkaError) -> Verdict:
        """No response came, or no coordinator was found."""
        return self._answers.on_failure(request, error)

    def bump_idempotent_epoch(self) -> None:
        """For a producer without transactions: take the next epoch if one is needed, ask for an
        id if there is none."""
        if self.status.is_transactional:
            return
        if self.status.bump_required:
            self.status.bump_required = False
            known = self.status.producer_id
            if known.epoch == _EPOCH_MAX:
                self.status.producer_id = NO_ID
                self.status.transition_to(State.UNINITIALIZED)
            else:
                self.status.producer_id = ProducerId(known.producer_id, known.epoch + 1)
            self.sequences.on_bumped()
        if self.status.state is State.UNINITIALIZED:
            self.status.transition_to(State.INITIALIZING)
            self.enqueue(self._make.init(NO_ID))

    def close(self, error: KafkaError) -> None:
        """Fail everything that waits."""
        while self._requests:
            heapq.heappop(self._requests)[2].operation.fail(error)
        if self.status.pending is not None:
            self.status.pending.fail(error)
