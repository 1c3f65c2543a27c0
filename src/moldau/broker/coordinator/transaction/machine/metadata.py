"""The state of one transactional id, and its transitions.

A `TransactionMetadata` is a value: each transition below returns the next one, and the record that
stores it.

Invariants: the epoch of a producer id never decreases; the last epoch of an id, `EPOCH_MAX`, is
reserved for the coordinator, so that it can always fence a producer; states follow `TRANSITIONS`;
a transaction that is idle has no partitions.

PrepareEpochFence and Dead are names that clients may filter by; no record has them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import IntEnum

from moldau.broker.coordinator.machine.decision import CoordinatorRecord
from moldau.broker.coordinator.transaction.machine.values import (
    TV_0,
    TV_1,
    TV_2,
    ProducerIdAndEpoch,
    TopicPartition,
)
from moldau.broker.machine.transitions import Transitions
from moldau.invariant import invariant
from moldau.times import WallMs
from moldau.wire.constants import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import TransactionLogKey, TransactionLogValue

EPOCH_MAX = 32_767
TWO_PHASE_COMMIT_TIMEOUT_MS = 2_147_483_647
"""The timeout of transactions that an outside coordinator ends: they never time out."""


class TransactionState(IntEnum):
    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def state_name(self) -> str:
        """As in Kafka's responses."""
        return "".join(word.capitalize() for word in self.name.split("_"))


EMPTY = TransactionState.EMPTY
ONGOING = TransactionState.ONGOING
PREPARE_COMMIT = TransactionState.PREPARE_COMMIT
PREPARE_ABORT = TransactionState.PREPARE_ABORT
COMPLETE_COMMIT = TransactionState.COMPLETE_COMMIT
COMPLETE_ABORT = TransactionState.COMPLETE_ABORT

PREPARED = frozenset({PREPARE_COMMIT, PREPARE_ABORT})
IDLE = frozenset({EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT})
STATES_BY_NAME = {state.state_name: state for state in TransactionState}

# Each row also has the ways in which a producer may begin again: with a new epoch (Empty), with its
# first partition (Ongoing), and with version 2 by aborting what it has not begun (PrepareAbort).
_FROM_IDLE = frozenset({EMPTY, ONGOING, PREPARE_ABORT})
TRANSITIONS = Transitions(
    {
        EMPTY: _FROM_IDLE,
        ONGOING: {ONGOING, PREPARE_COMMIT, PREPARE_ABORT},
        PREPARE_COMMIT: {COMPLETE_COMMIT},
        PREPARE_ABORT: {COMPLETE_ABORT},
        COMPLETE_COMMIT: _FROM_IDLE,
        COMPLETE_ABORT: _FROM_IDLE,
    },
    lambda state: state.state_name,
)

# Transient states, in case a log has them: a fence is not decided yet, and a removal comes after
# the end.
_STORED_STATES = {state.value: state for state in TransactionState} | {
    TransactionState.PREPARE_EPOCH_FENCE: ONGOING,
    TransactionState.DEAD: EMPTY,
}


def is_epoch_exhausted(producer_epoch: int) -> bool:
    """No client may have the greatest epoch, so the one before is the last to bump from."""
    return producer_epoch >= EPOCH_MAX - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionMetadata:
    transactional_id: str
    producer_id: int
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    """Takes over when the transaction that is being ended has used up the last epoch."""
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: frozenset[TopicPartition] = frozenset()
    start_timestamp_ms: int = NO_TIMESTAMP
    last_update_timestamp_ms: int
    client_transaction_version: int = TV_0
    last_producer_epoch: int = field(default=NO_PRODUCER_EPOCH, compare=False)
    """The epoch before, of which a repeated request may come. Not in Kafka's records, so a
    coordinator that has just loaded does not know it and fences instead."""

    @property
    def producer(self) -> ProducerIdAndEpoch:
        return ProducerIdAndEpoch(self.producer_id, self.producer_epoch)

    @property
    def epoch_exhausted(self) -> bool:
        return is_epoch_exhausted(self.producer_epoch)

    @property
    def next_producer(self) -> ProducerIdAndEpoch:
        """The producer id and epoch with which the client continues after this transaction."""
        if self.client_transaction_version >= TV_2 and self.next_producer_id != NO_PRODUCER_ID:
            return ProducerIdAndEpoch(self.next_producer_id, 0)
        return self.producer

    def is_overdue(self, now_ms: WallMs) -> bool:
        return (
            self.state is ONGOING
            and self.timeout_ms != TWO_PHASE_COMMIT_TIMEOUT_MS
            and self.start_timestamp_ms + self.timeout_ms < now_ms
        )

    # Transitions.

    @classmethod
    def created(
        cls, transactional_id: str, producer_id: int, timeout_ms: int, now_ms: WallMs
    ) -> TransactionMetadata:
        return cls(
            transactional_id=transactional_id,
            producer_id=producer_id,
            previous_producer_id=producer_id,
            producer_epoch=0,
            timeout_ms=timeout_ms,
            state=EMPTY,
            last_update_timestamp_ms=now_ms,
        )

    def with_next_epoch(
        self, expected_epoch: int | None, timeout_ms: int, now_ms: WallMs
    ) -> TransactionMetadata:
        """A producer begins, or recovers from `expected_epoch` on (KIP-360)."""
        if expected_epoch is None:
            epoch, last_epoch = self.producer_epoch + 1, NO_PRODUCER_EPOCH
        elif expected_epoch == self.producer_epoch:
            epoch, last_epoch = self.producer_epoch + 1, self.producer_epoch
        elif expected_epoch == self.last_producer_epoch:
            # The response was lost. No other producer has begun since: that would have cleared
            # the last epoch.
            epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
        else:
            # Kafka returns UNKNOWN_SERVER_ERROR when the epochs are exhausted.
            raise ApiError(
                ErrorCode.PRODUCER_FENCED,
                f"{self.transactional_id!r} is at epoch {self.producer_epoch}, "
                f"not at {expected_epoch}",
            )
        return self._initialised(self.producer_id, epoch, last_epoch, timeout_ms, now_ms)

    def with_new_producer_id(
        self, producer_id: int, expected_epoch: int | None, timeout_ms: int, now_ms: WallMs
    ) -> TransactionMetadata:
        """All epochs of the id are used up."""
        last_epoch = NO_PRODUCER_EPOCH if expected_epoch is None else self.producer_epoch
        return self._initialised(producer_id, 0, last_epoch, timeout_ms, now_ms)

    def with_partitions(
        self, partitions: Iterable[TopicPartition], client_transaction_version: int, now_ms: WallMs
    ) -> TransactionMetadata:
        return self._to(
            ONGOING,
            now_ms,
            partitions=self.partitions | frozenset(partitions),
            start_timestamp_ms=now_ms if self.state in IDLE else self.start_timestamp_ms,
            client_transaction_version=client_transaction_version,
        )

    def prepared_v1(self, state: TransactionState, now_ms: WallMs) -> TransactionMetadata:
        """The client ends the transaction and keeps its epoch."""
        return self._to(
            state,
            now_ms,
            next_producer_id=NO_PRODUCER_ID,
            client_transaction_version=TV_0,
        )

    def fenced_v1(self, now_ms: WallMs) -> TransactionMetadata:
        """The coordinator aborts, with an epoch that no client was ever given."""
        return self._to(
            PREPARE_ABORT,
            now_ms,
            producer_epoch=min(self.producer_epoch + 1, EPOCH_MAX),
            last_producer_epoch=NO_PRODUCER_EPOCH,
            next_producer_id=NO_PRODUCER_ID,
            client_transaction_version=TV_0,
        )

    def prepared_v2(
        self, state: TransactionState, next_producer_id: int, now_ms: WallMs
    ) -> TransactionMetadata:
        """The transaction ends, and its epoch with it (KIP-890)."""
        invariant(
            self.producer_epoch < EPOCH_MAX or state is PREPARE_ABORT,
            f"{self.transactional_id!r} commits at an epoch that no client has",
        )
        return self._to(
            state,
            now_ms,
            producer_epoch=min(self.producer_epoch + 1, EPOCH_MAX),
            last_producer_epoch=self.producer_epoch,
            next_producer_id=next_producer_id,
            # What has not begun has no start yet, and its end needs one.
            start_timestamp_ms=now_ms if self.state in IDLE else self.start_timestamp_ms,
            client_transaction_version=TV_2,
        )

    def completed(self, now_ms: WallMs) -> TransactionMetadata:
        """Every partition has its marker."""
        producer_id, producer_epoch = self.next_producer
        return self._to(
            COMPLETE_COMMIT if self.state is PREPARE_COMMIT else COMPLETE_ABORT,
            now_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            next_producer_id=NO_PRODUCER_ID,
            partitions=frozenset(),
        )

    def caught_up(self, producer_epoch: int, now_ms: WallMs) -> TransactionMetadata:
        """Catch up with an epoch that a partition has seen and this log has lost.

        No producer may get that epoch again, because its sequence numbers would be taken for those
        of old batches. A transaction that was open at an older epoch has ended there long ago.
        """
        invariant(
            producer_epoch > self.producer_epoch and self.state not in PREPARED,
            f"{self.transactional_id!r} has nothing to catch up with",
        )
        if self.state is ONGOING:
            fenced = self.fenced_v1(now_ms)
            return replace(fenced, producer_epoch=min(producer_epoch + 1, EPOCH_MAX))
        return replace(self, producer_epoch=producer_epoch, last_producer_epoch=NO_PRODUCER_EPOCH)

    def _initialised(
        self, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, now_ms: WallMs
    ) -> TransactionMetadata:
        invariant(epoch < EPOCH_MAX, f"{self.transactional_id!r} would get the last epoch")
        return self._to(
            EMPTY,
            now_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            start_timestamp_ms=NO_TIMESTAMP,
        )

    def _to(
        self, state: TransactionState, now_ms: WallMs, **changes: object
    ) -> TransactionMetadata:
        TRANSITIONS.check(repr(self.transactional_id), self.state, state)
        changed = replace(
            self,
            state=state,
            previous_producer_id=self.producer_id,
            last_update_timestamp_ms=now_ms,
            **changes,  # type: ignore[arg-type]
        )
        changed.check_follows(self)
        return changed

    def check_follows(self, before: TransactionMetadata) -> None:
        """Raise InvariantError if this cannot be the next value of the id."""
        invariant(
            self.producer_id != before.producer_id or self.producer_epoch >= before.producer_epoch,
            f"{self.transactional_id!r} would go back from epoch {before.producer_epoch} "
            f"to {self.producer_epoch}",
        )
        invariant(
            self.state not in IDLE or not self.partitions,
            f"{self.transactional_id!r} would be {self.state_name} with partitions",
        )

    @property
    def state_name(self) -> str:
        return self.state.state_name

    # Records.

    def stored_at(self, transaction_version: int) -> TransactionMetadata:
        """What a record of that feature level can say of it."""
        if transaction_version >= TV_1:
            return self
        return replace(
            self,
            previous_producer_id=NO_PRODUCER_ID,
            next_producer_id=NO_PRODUCER_ID,
            client_transaction_version=TV_0,
        )

    def to_record(self, transaction_version: int) -> CoordinatorRecord:
        partition_ids: dict[str, list[int]] = {}
        for topic, partition in sorted(self.partitions):
            partition_ids.setdefault(topic, []).append(partition)
        value = TransactionLogValue(
            producer_id=self.producer_id,
            previous_producer_id=self.previous_producer_id,
            next_producer_id=self.next_producer_id,
            producer_epoch=self.producer_epoch,
            transaction_timeout_ms=self.timeout_ms,
            transaction_status=self.state,
            transaction_partitions=None
            if self.state is EMPTY
            else [
                TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=ids)
                for topic, ids in partition_ids.items()
            ],
            transaction_last_update_timestamp_ms=self.last_update_timestamp_ms,
            transaction_start_timestamp_ms=self.start_timestamp_ms,
            client_transaction_version=self.client_transaction_version,
        )
        value_version = 1 if transaction_version >= TV_1 else 0
        return CoordinatorRecord(_key(self.transactional_id), value, value_version)

    @classmethod
    def from_value(cls, transactional_id: str, value: TransactionLogValue) -> TransactionMetadata:
        return cls(
            transactional_id=transactional_id,
            producer_id=value.producer_id,
            previous_producer_id=value.previous_producer_id,
            next_producer_id=value.next_producer_id,
            producer_epoch=value.producer_epoch,
            timeout_ms=value.transaction_timeout_ms,
            state=_STORED_STATES[value.transaction_status],
            partitions=frozenset(
                (each.topic, partition)
                for each in value.transaction_partitions or ()
                for partition in each.partition_ids
            ),
            start_timestamp_ms=value.transaction_start_timestamp_ms,
            last_update_timestamp_ms=value.transaction_last_update_timestamp_ms,
            client_transaction_version=value.client_transaction_version,
        )


def tombstone(transactional_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(_key(transactional_id), None)


def _key(transactional_id: str) -> TransactionLogKey:
    return TransactionLogKey(transactional_id=transactional_id)
