"""What an idempotent or transactional producer knows of itself: its id, its numbers, its state.

Decided here: which request to a coordinator comes next and what its response means; whether a
partition's next batch may be sent; whether a batch that failed is tried again; and whether an error
ends a transaction, which can be aborted, or the producer. Pure: requests are sent elsewhere, one at
a time.

What always holds: no batch gets a sequence number while it is not known what became of an earlier
one that was given up (`unresolved`); after an error inside a transaction nothing but an abort is
possible, after a fatal one nothing at all. With transactions of version 2 (KIP-890) brokers learn
of partitions by Produce itself and every transaction has an epoch of its own, which the response
to EndTxn brings; before, partitions are added first and the epoch stays.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from moldau.client.errors import (
    ClusterAuthorizationFailedError,
    IllegalStateError,
    InvalidPidMappingError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    KafkaError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    RetriableError,
    TransactionAbortableError,
    TransactionalIdAuthorizationFailedError,
    UnknownProducerIdError,
    UnsupportedVersionError,
)
from moldau.client.producer.machine.queues import PartitionQueue
from moldau.client.producer.machine.records import NO_SEQUENCE
from moldau.client.producer.machine.sequences import NO_ID, PartitionSequences, ProducerId
from moldau.client.producer.machine.transaction_requests import TransactionRequests
from moldau.client.producer.machine.transaction_state import (
    ALLOWED,
    DONE,
    RETRY,
    Operation,
    State,
    TransactionRequest,
    Verdict,
)
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from moldau.wire.errors import ErrorCode

if TYPE_CHECKING:
    from moldau.client.producer._batch import ProducerBatch

__all__ = ["TransactionManager"]

#: The epoch of the cluster's finalized features, and the level of transaction.version.
Features = tuple[int, int]

_EPOCH_MAX = 2**15 - 1
_FATAL_ERRORS = (
    ClusterAuthorizationFailedError,
    TransactionalIdAuthorizationFailedError,
    ProducerFencedError,
    UnsupportedVersionError,
    InvalidPidMappingError,
)


class TransactionManager(TransactionRequests):
    """See the module. Called on the loop, but for `check_send` and `add_partition`."""

    def __init__(self, transactional_id: str | None, transaction_timeout_ms: int) -> None:
        self.transactional_id = transactional_id
        self.transaction_timeout_ms = transaction_timeout_ms
        self.is_transactional = transactional_id is not None
        self.state = State.UNINITIALIZED
        self.last_error: KafkaError | None = None
        self.producer_id = NO_ID
        self.is_v2 = False
        self.coordinator_bumps_epochs = False
        self.new_partitions: set[TopicPartition] = set()
        self.pending_partitions: set[TopicPartition] = set()
        self.partitions: set[TopicPartition] = set()
        self.pending_offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        self.started = False
        self._features_epoch = -1
        self._bump_required = False
        self._requests: list[tuple[int, int, TransactionRequest]] = []
        self._numbers = count()
        self._pending: Operation | None = None
        # By partition, the number that follows the last batch that was given up.
        self._unresolved: dict[PartitionQueue, int] = {}
        self._to_rewrite: set[PartitionQueue] = set()
        self._queues: set[PartitionQueue] = set()

    # States.

    @property
    def is_completing(self) -> bool:
        return self.state in (State.COMMITTING, State.ABORTING)

    @property
    def is_aborting(self) -> bool:
        return self.state is State.ABORTING

    @property
    def has_fatal_error(self) -> bool:
        return self.state is State.FATAL_ERROR

    @property
    def has_abortable_error(self) -> bool:
        return self.state is State.ABORTABLE_ERROR

    @property
    def has_ongoing_transaction(self) -> bool:
        return self.is_transactional and (
            self.state is State.IN_TRANSACTION or self.is_completing or self.has_abortable_error
        )

    @property
    def has_requests(self) -> bool:
        return bool(self._requests) or bool(self.new_partitions)

    def transition_to(self, target: State, error: KafkaError | None = None) -> None:
        if self.state not in ALLOWED[target]:
            who = f"TransactionalId {self.transactional_id}: " if self.is_transactional else ""
            raise IllegalStateError(
                f"{who}invalid transition from state {self.state.name} to state {target.name}"
            )
        self.state = target
        self.last_error = error

    def to_abortable_error(self, error: KafkaError) -> None:
        if self.state in (State.ABORTING, State.FATAL_ERROR):
            # It is being aborted already; or nothing can be mended any more.
            return
        self.transition_to(State.ABORTABLE_ERROR, error)

    def to_fatal_error(self, error: KafkaError) -> None:
        self.transition_to(State.FATAL_ERROR, error)
        if self._pending is not None:
            self._pending.fail(error)

    def to_uninitialized(self, error: KafkaError) -> None:
        """Begin again: what was refused may be allowed later."""
        self.transition_to(State.UNINITIALIZED)
        if self._pending is not None:
            self._pending.fail(error)

    def to_error_state(self, error: KafkaError) -> None:
        """After a record could not be sent."""
        if isinstance(error, _FATAL_ERRORS):
            self.to_fatal_error(error)
        elif self.is_transactional:
            if isinstance(error, (RetriableError, InvalidTxnStateError)):
                cause = error
                error = TransactionAbortableError(
                    f"the transaction cannot go on, retries are used up: {cause}"
                )
                error.__cause__ = cause
            if self.bumps_epochs_itself and not self.is_completing:
                self._bump_required = True
            if self.state is not State.READY and self.state is not State.UNINITIALIZED:
                self.to_abortable_error(error)

    @property
    def bumps_epochs_itself(self) -> bool:
        """After an error this client asks for another epoch; with version 2 there is a new one
        after every transaction anyway."""
        return self.coordinator_bumps_epochs and not self.is_v2

    @property
    def recovers(self) -> bool:
        """Whether a transaction can be aborted after an error and the producer go on."""
        return self.coordinator_bumps_epochs or self.is_v2

    def require_bump(self) -> None:
        if self.bumps_epochs_itself:
            self._bump_required = True

    def fail_if_error(self) -> None:
        """Raises what stands in the way of every further call."""
        error = self.last_error
        if self.state not in (State.ABORTABLE_ERROR, State.FATAL_ERROR) or error is None:
            return
        who = f"the producer with transactional.id '{self.transactional_id}' ({self.producer_id})"
        if isinstance(error, ProducerFencedError):
            raise ProducerFencedError(f"{who} has been fenced by another one with the same id")
        if isinstance(error, InvalidProducerEpochError):
            raise InvalidProducerEpochError(f"{who} attempted to produce with an old epoch")
        again = "abort the transaction" if self.has_abortable_error else "close this producer"
        raise KafkaError(
            f"cannot execute a transactional method in an error state: {error}", advice=again
        ) from error

    # What the application calls.

    def initialize(self) -> Operation:
        self._ensure_transactional()
        self.fail_if_error()
        known = self._pending_of(State.INITIALIZING, "init_transactions")
        if known is not None:
            return known
        self.transition_to(State.INITIALIZING)
        return self._start(self.init_request(NO_ID))

    def begin(self) -> None:
        self._ensure_transactional()
        self._refuse_pending("begin_transaction")
        self.fail_if_error()
        if self.state is State.UNINITIALIZED:
            raise IllegalStateError(
                "the producer has not joined its transactions yet",
                advice="call init_transactions() first",
            )
        if self.state is State.IN_TRANSACTION:
            raise IllegalStateError(
                "a transaction is open already",
                advice="call commit_transaction() or abort_transaction() first",
            )
        self.transition_to(State.IN_TRANSACTION)

    def begin_commit(self, features: Features) -> Operation:
        self._ensure_transactional()
        known = self._pending_of(State.COMMITTING, "commit_transaction")
        if known is not None:
            return known
        self.fail_if_error()
        self._require_open_transaction()
        self.transition_to(State.COMMITTING)
        return self._complete(features, committed=True)

    def begin_abort(self, features: Features) -> Operation:
        self._ensure_transactional()
        known = self._pending_of(State.ABORTING, "abort_transaction")
        if known is not None:
            return known
        if not self.has_abortable_error:
            self.fail_if_error()
            self._require_open_transaction()
        self.transition_to(State.ABORTING)
        self.new_partitions.clear()
        return self._complete(features, committed=False)

    def _complete(self, features: Features, *, committed: bool) -> Operation:
        self._enqueue_new_partitions()
        # It ends in the version that it began with; the next one may have another.
        request = self.end_request(committed)
        self.update_features(*features)
        operation = self._start(request)
        if self._bump_required:
            # Whoever waits, waits for the new epoch as well.
            bump = self.init_request(self.producer_id, is_bump=True)
            bump.operation.next_state = operation.next_state
            operation = self._start(bump)
        return operation

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: Any
    ) -> Operation:
        self._ensure_transactional()
        self._refuse_pending("send_offsets_to_transaction")
        self.fail_if_error()
        self._require_open_transaction()
        if self.is_v2:
            self.started = True
            request = self.offsets_request(Operation("TxnOffsetCommit"), offsets, group)
        else:
            request = self.add_offsets_request(offsets, group)
        self.enqueue(request)
        return request.operation

    def check_send(self) -> None:
        """Raises if nothing may be sent now."""
        self.fail_if_error()
        self._refuse_pending("send")
        if self.is_transactional and self.state is not State.IN_TRANSACTION:
            raise IllegalStateError("no transaction is open", advice=self._how_to_begin())

    def add_partition(self, key: TopicPartition) -> bool:
        """A record was appended there. True if the coordinator has to be told."""
        if self.is_v2:
            self.partitions.add(key)
            self.started = True
            return False
        if key in self.partitions or key in self.pending_partitions or key in self.new_partitions:
            return False
        self.new_partitions.add(key)
        return True

    def _require_open_transaction(self) -> None:
        if self.state in (State.UNINITIALIZED, State.INITIALIZING, State.READY):
            raise IllegalStateError("no transaction is open", advice=self._how_to_begin())

    def _how_to_begin(self) -> str:
        if self.producer_id.is_valid:
            return "call begin_transaction() first"
        return "call init_transactions() and begin_transaction() first"

    def _ensure_transactional(self) -> None:
        if not self.is_transactional:
            raise IllegalStateError(
                "transactional methods need a transactional producer",
                advice="set transactional.id",
            )

    def _pending_of(self, state: State, name: str) -> Operation | None:
        """The operation that a call continues because an earlier one timed out."""
        pending = self._pending
        if pending is None:
            return None
        if pending.acknowledged:
            self._pending = None
            return None
        if pending.next_state is not state:
            self._refuse_pending(name)
        return pending

    def _refuse_pending(self, name: str) -> None:
        pending = self._pending
        if pending is None:
            return
        if pending.acknowledged:
            self._pending = None
            return
        raise IllegalStateError(
            f"cannot call {name}: {pending.name} timed out before and must be retried"
        )

    def _start(self, request: TransactionRequest) -> Operation:
        self.enqueue(request)
        self._pending = request.operation
        return request.operation

    # Requests.

    def update_features(
        self, epoch: int, transaction_version: int, *, on_initialization: bool = False
    ) -> None:
        """What the cluster has finalized; brokers may be upgraded while this runs."""
        if self._features_epoch >= epoch:
            return
        self._features_epoch = epoch
        was_v2, self.is_v2 = self.is_v2, transaction_version >= 2
        if not on_initialization and not was_v2 and self.is_v2:
            self._bump_required = True

    def enqueue(self, request: TransactionRequest) -> None:
        heapq.heappush(self._requests, (request.priority, next(self._numbers), request))

    def _enqueue_new_partitions(self) -> None:
        if self.new_partitions:
            self.pending_partitions |= self.new_partitions
            self.new_partitions.clear()
            self.enqueue(self.add_partitions_request())

    def next_request(self, has_incomplete: bool) -> TransactionRequest | None:
        """What to send now; the end of a transaction waits until all its batches are done."""
        self._enqueue_new_partitions()
        while self._requests:
            request = self._requests[0][2]
            if self.is_end(request) and has_incomplete:
                return None
            heapq.heappop(self._requests)
            if self.state in (State.ABORTABLE_ERROR, State.FATAL_ERROR):
                request.operation.fail(self.last_error or KafkaError("an error state"))
            elif self.is_end(request) and not self.started:
                # Nothing was sent: the coordinator does not know of a transaction.
                self.reset_transaction()
                request.operation.succeed()
            else:
                return request
        return None

    def on_response(self, request: TransactionRequest, response: Any) -> Verdict:
        """What becomes of a request."""
        return self.handlers[type(request.message)](self, request, response)

    def on_failure(self, request: TransactionRequest, error: KafkaError) -> Verdict:
        """No response came, or no coordinator was found."""
        if isinstance(error, UnsupportedVersionError):
            return self.fatal(request, error)
        if error.retriable or error.code is ErrorCode.BROKER_NOT_AVAILABLE:
            return RETRY
        if error.code is ErrorCode.GROUP_AUTHORIZATION_FAILED:
            return self.abortable(request, error)
        return self.fatal(request, error)

    def fatal(self, request: TransactionRequest, error: KafkaError) -> Verdict:
        request.operation.fail(error)
        self.to_fatal_error(error)
        return DONE

    def abortable(self, request: TransactionRequest, error: KafkaError) -> Verdict:
        request.operation.fail(error)
        if self._pending is request.operation:
            request.operation.acknowledged = True
        self.to_abortable_error(error)
        return DONE

    def abortable_if_possible(self, request: TransactionRequest, error: KafkaError) -> Verdict:
        if not self.recovers:
            return self.fatal(request, error)
        self.require_bump()
        return self.abortable(request, error)

    def reset_transaction(self) -> None:
        """A transaction has ended."""
        self.transition_to(State.INITIALIZING if self._bump_required else State.READY)
        self._bump_required = False
        self.started = False
        self.new_partitions.clear()
        self.pending_partitions.clear()
        self.partitions.clear()

    def close(self, error: KafkaError) -> None:
        """Fail everything that waits."""
        while self._requests:
            heapq.heappop(self._requests)[2].operation.fail(error)
        if self._pending is not None:
            self._pending.fail(error)

    # Sequence numbers.

    def sequences(self, queue: PartitionQueue) -> PartitionSequences:
        self._queues.add(queue)
        return queue.sequences

    def reset_sequence_numbers(self) -> None:
        for queue in self._queues:
            queue.sequences = PartitionSequences(queue.sequences.known_id)
        self._queues.clear()
        self._unresolved.clear()

    def may_drain(self, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        """Whether a partition's next batch may be sent now."""
        if self.has_fatal_error or not self.producer_id.is_valid:
            return False
        if self.is_transactional and queue.key not in self.partitions:
            return False
        sequences = queue.sequences
        if not batch.has_sequence:
            # What is in flight with an older epoch must be done first, and so must the first batch
            # that the partition has of this id.
            if sequences.in_flight and (
                sequences.producer_id != self.producer_id
                or sequences.known_id != self.producer_id.producer_id
            ):
                return False
            return queue not in self._unresolved
        # What is sent again goes in the order of its numbers.
        first = sequences.first_in_flight
        return first == NO_SEQUENCE or first == batch.base_sequence

    def on_drained(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        if batch.has_sequence:
            return
        sequences = self.sequences(queue)
        if sequences.producer_id != self.producer_id and not sequences.in_flight:
            sequences.start_at_beginning(self.producer_id)
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
        self.to_error_state(error)
        queue = batch.queue
        queue.sequences.remove(batch)
        if self.has_fatal_error:
            return
        if isinstance(error, OutOfOrderSequenceError) and not self.is_transactional:
            # There is a gap in the log; a new epoch begins at 0 again.
            self._request_bump(queue)
        elif isinstance(error, UnknownProducerIdError):
            queue.sequences = PartitionSequences()
            self._unresolved.pop(queue, None)
        elif adjust and batch.has_sequence:
            if self.is_transactional:
                queue.sequences.close_gap(batch)
            else:
                self._request_bump(queue)

    def on_given_up_unknown(self, batch: ProducerBatch) -> None:
        """A batch that was sent is given up, and nobody knows whether the broker has it."""
        after = (batch.last_sequence + 1) if batch.has_sequence else 0
        self._unresolved[batch.queue] = max(self._unresolved.get(batch.queue, 0), after)

    def resolve_sequences(self) -> None:
        """Once nothing is in flight it is known what became of batches that were given up."""
        for queue in list(self._unresolved):
            sequences = queue.sequences
            if sequences.in_flight:
                continue
            del self._unresolved[queue]
            if sequences.is_next(sequences.next):
                # Later batches were acknowledged, so it had arrived.
                continue
            if not self.is_transactional:
                self._request_bump(queue)
                continue
            error = KafkaError(
                "no acknowledgement came for some records, and they can no longer be retried",
                advice="abort the transaction" if self.recovers else "close this producer",
            )
            if not self.recovers:
                self.to_fatal_error(error)
            elif self.has_ongoing_transaction:
                self.require_bump()
                self.to_abortable_error(error)

    def _request_bump(self, queue: PartitionQueue) -> None:
        self._bump_required = True
        self._to_rewrite.add(queue)

    def bump_idempotent_epoch(self) -> None:
        """For a producer without transactions: take the next epoch if one is needed, ask for an
        id if there is none."""
        if self.is_transactional:
            return
        if self._bump_required:
            self._bump_required = False
            known = self.producer_id
            if known.epoch == _EPOCH_MAX:
                self.producer_id = NO_ID
                self.transition_to(State.UNINITIALIZED)
            else:
                self.producer_id = ProducerId(known.producer_id, known.epoch + 1)
            for queue in self._to_rewrite:
                queue.sequences.start_at_beginning(self.producer_id)
                self._unresolved.pop(queue, None)
            self._to_rewrite.clear()
        if self.state is State.UNINITIALIZED:
            self.transition_to(State.INITIALIZING)
            self.enqueue(self.init_request(NO_ID))

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
            if not self.is_transactional:
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
        if queue.sequences.last_acked_offset < log_start_offset and self.is_transactional:
            # Retention has taken the records, and with them what was known of this producer.
            queue.sequences.start_at_beginning(self.producer_id)
            return True
        if not self.is_transactional:
            self._request_bump(queue)
            return True
        return False
