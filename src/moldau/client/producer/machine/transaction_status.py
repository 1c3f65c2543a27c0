"""Where an idempotent or transactional producer stands: its id, its state, its open transaction.

Decided here: which state follows, and whether an error ends the transaction, which can then be
aborted, or the producer. Pure. Invariants: a state is only left for one that `ALLOWED` names; after
an error inside a transaction only an abort is possible, after a fatal one nothing.

With transactions of version 2 (KIP-890) brokers learn of partitions by Produce itself, and every
transaction has an epoch of its own, which the response to EndTxn brings; before, partitions are
added first and the epoch stays.
"""

from __future__ import annotations

from moldau.client.errors import (
    ClusterAuthorizationFailedError,
    IllegalStateError,
    InvalidPidMappingError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    KafkaError,
    ProducerFencedError,
    RetriableError,
    TransactionAbortableError,
    TransactionalIdAuthorizationFailedError,
    UnsupportedVersionError,
)
from moldau.client.producer.machine.sequences import NO_ID
from moldau.client.producer.machine.transaction_state import ALLOWED, Operation, State
from moldau.client.topics import OffsetAndMetadata, TopicPartition

__all__ = ["Features", "TransactionStatus"]

#: The epoch of the cluster's finalized features, and the level of transaction.version.
Features = tuple[int, int]

_FATAL_ERRORS = (
    ClusterAuthorizationFailedError,
    TransactionalIdAuthorizationFailedError,
    ProducerFencedError,
    UnsupportedVersionError,
    InvalidPidMappingError,
)


class TransactionStatus:
    """See the module."""

    def __init__(self, transactional_id: str | None) -> None:
        self.transactional_id = transactional_id
        self.is_transactional = transactional_id is not None
        self.state = State.UNINITIALIZED
        self.last_error: KafkaError | None = None
        self.producer_id = NO_ID
        self.is_v2 = False
        self.coordinator_bumps_epochs = False
        #: The next epoch has to be asked for before anything else is sent.
        self.bump_required = False
        #: The operation that the application waits for, or waited for until it timed out.
        self.pending: Operation | None = None
        # The open transaction: whether the coordinator knows it, and what belongs to it.
        self.started = False
        self.new_partitions: set[TopicPartition] = set()
        self.pending_partitions: set[TopicPartition] = set()
        self.partitions: set[TopicPartition] = set()
        self.pending_offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        self._features_epoch = -1

    # What it is.

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
    def bumps_epochs_itself(self) -> bool:
        """After an error this client asks for another epoch; with version 2 there is a new one
        after every transaction anyway."""
        return self.coordinator_bumps_epochs and not self.is_v2

    @property
    def recovers(self) -> bool:
        """Whether a transaction can be aborted after an error and the producer go on."""
        return self.coordinator_bumps_epochs or self.is_v2

    # What it becomes.

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
            # It is being aborted already, or the producer can no longer be used.
            return
        self.transition_to(State.ABORTABLE_ERROR, error)

    def to_fatal_error(self, error: KafkaError) -> None:
        self.transition_to(State.FATAL_ERROR, error)
        if self.pending is not None:
            self.pending.fail(error)

    def to_uninitialized(self, error: KafkaError) -> None:
        """Begin again: what was refused may be allowed later."""
        self.transition_to(State.UNINITIALIZED)
        if self.pending is not None:
            self.pending.fail(error)

    def to_error_state(self, error: KafkaError) -> None:
        """After a record could not be sent."""
        if isinstance(error, _FATAL_ERRORS):
            self.to_fatal_error(error)
        elif self.is_transactional:
            if isinstance(error, (RetriableError, InvalidTxnStateError)):
                cause = error
                error = TransactionAbortableError(
                    f"the transaction cannot go on, the retries are exhausted: {cause}"
                )
                error.__cause__ = cause
            if self.bumps_epochs_itself and not self.is_completing:
                self.bump_required = True
            if self.state is not State.READY and self.state is not State.UNINITIALIZED:
                self.to_abortable_error(error)

    def require_bump(self) -> None:
        if self.bumps_epochs_itself:
            self.bump_required = True

    def update_features(
        self, epoch: int, transaction_version: int, *, on_initialization: bool = False
    ) -> None:
        """What the cluster has finalized; brokers may be upgraded while this runs."""
        if self._features_epoch >= epoch:
            return
        self._features_epoch = epoch
        was_v2, self.is_v2 = self.is_v2, transaction_version >= 2
        if not on_initialization and not was_v2 and self.is_v2:
            self.bump_required = True

    def on_ended(self) -> None:
        """A transaction has ended."""
        self.transition_to(State.INITIALIZING if self.bump_required else State.READY)
        self.bump_required = False
        self._forget_transaction()

    def start_over(self, transactional_id: str) -> None:
        """As a new producer with this id. What is open is left as it is, for somebody else."""
        # Not one of the transitions of one producer's life, which Java's table has, too.
        self.state = State.UNINITIALIZED
        self.last_error = None
        self.transactional_id = transactional_id
        self.producer_id = NO_ID
        self._forget_transaction()

    def _forget_transaction(self) -> None:
        self.started = False
        self.new_partitions.clear()
        self.pending_partitions.clear()
        self.partitions.clear()

    # What it allows.

    def fail_if_error(self) -> None:
        """Raises what prevents every further call."""
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

    def require_transactional(self) -> None:
        if not self.is_transactional:
            raise IllegalStateError(
                "transactional methods need a transactional producer",
                advice="set transactional.id",
            )

    def require_open_transaction(self) -> None:
        if self.state in (State.UNINITIALIZED, State.INITIALIZING, State.READY):
            raise IllegalStateError("no transaction is open", advice=self._how_to_begin())

    def require_in_transaction(self) -> None:
        if self.state is not State.IN_TRANSACTION:
            raise IllegalStateError("no transaction is open", advice=self._how_to_begin())

    def _how_to_begin(self) -> str:
        if self.producer_id.is_valid:
            return "call begin_transaction() first"
        return "call init_transactions() and begin_transaction() first"

    def pending_of(self, state: State, name: str) -> Operation | None:
        """The operation that a call continues because an earlier one timed out."""
        pending = self.pending
        if pending is None:
            return None
        if pending.acknowledged:
            self.pending = None
            return None
        if pending.next_state is not state:
            self.refuse_pending(name)
        return pending

    def refuse_pending(self, name: str) -> None:
        """Raises if an operation timed out whose outcome the application has not seen."""
        pending = self.pending
        if pending is None:
            return
        if pending.acknowledged:
            self.pending = None
            return
        raise IllegalStateError(
            f"cannot call {name}: {pending.name} timed out before and must be retried"
        )
