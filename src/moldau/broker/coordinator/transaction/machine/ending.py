"""Which EndTxn requests are right, by state, epoch and transaction version.

Version 1: the epoch must be the current one, and stays. A repeated request is known by the
state alone: ending again in the same way is fine, in the other way INVALID_TXN_STATE.

Version 2 (KIP-890): the epoch rises with every end, so a repeated request is known by its
epoch, one below the current; the current epoch always means a next request:

                    abort                    commit
                    repeated   current       repeated   current
    Empty           fenced     ends          fenced     invalid state
    Ongoing         fenced     ends          fenced     ends
    CompleteAbort   done       ends          invalid    invalid state
    CompleteCommit  invalid    ends          done       invalid state

While a decision is being written or carried out, the answer is CONCURRENT_TRANSACTIONS.
"""

from __future__ import annotations

from moldau.broker.coordinator.transaction.machine.events import NEED_PRODUCER_ID, NeedProducerId
from moldau.broker.coordinator.transaction.machine.metadata import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EPOCH_MAX,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    TransactionMetadata,
)
from moldau.broker.coordinator.transaction.machine.values import TV_2, ProducerIdAndEpoch
from moldau.times import WallMs
from moldau.wire.constants import NO_PRODUCER_ID
from moldau.wire.errors import ApiError, ErrorCode

DONE = None
"""The request is a repetition of one that has been carried out."""


def end_v1(
    current: TransactionMetadata,
    producer: ProducerIdAndEpoch,
    *,
    committed: bool,
    pending: bool,
    now_ms: WallMs,
) -> TransactionMetadata | None:
    if current.producer_id != producer.producer_id:
        raise wrong_producer(current, producer)
    if current.producer_epoch != producer.producer_epoch or producer.producer_epoch == EPOCH_MAX:
        raise fenced(current, producer)
    if pending:
        raise concurrent(current)
    if current.state is ONGOING:
        return current.prepared_v1(PREPARE_COMMIT if committed else PREPARE_ABORT, now_ms)
    if current.state is (COMPLETE_COMMIT if committed else COMPLETE_ABORT):
        return DONE
    raise _invalid_state(current, committed)


def end_v2(
    current: TransactionMetadata,
    producer: ProducerIdAndEpoch,
    *,
    committed: bool,
    pending: bool,
    fresh_id: int | None,
    now_ms: WallMs,
) -> TransactionMetadata | NeedProducerId | None:
    if pending:
        # First of all: the client may already have the next producer id.
        raise concurrent(current)
    # The former producer id, at the last epoch that a client can have, ended its last
    # transaction; the response had the id that is in use now.
    repeated_overflow = (
        current.previous_producer_id == producer.producer_id != current.producer_id
        and producer.producer_epoch == EPOCH_MAX - 1
    )
    if current.producer_id != producer.producer_id and not repeated_overflow:
        raise wrong_producer(current, producer)
    # The last epoch was taken to fence this client, and is not for it to continue with.
    repeated = repeated_overflow or (
        current.producer_epoch == producer.producer_epoch + 1 and current.producer_epoch < EPOCH_MAX
    )
    is_current = current.producer_epoch == producer.producer_epoch != EPOCH_MAX
    if not is_current and not (repeated and current.state in (COMPLETE_COMMIT, COMPLETE_ABORT)):
        raise fenced(current, producer)
    if current.state is ONGOING:
        return prepare_v2(current, committed=committed, fresh_id=fresh_id, now_ms=now_ms)
    if repeated:
        if current.state is not (COMPLETE_COMMIT if committed else COMPLETE_ABORT):
            raise _invalid_state(current, committed)
        return DONE
    if committed:
        raise _invalid_state(current, committed)
    return prepare_v2(current, committed=False, fresh_id=fresh_id, now_ms=now_ms)


def prepare_v2(
    current: TransactionMetadata, *, committed: bool, fresh_id: int | None, now_ms: WallMs
) -> TransactionMetadata | NeedProducerId:
    next_producer_id = NO_PRODUCER_ID
    if current.epoch_exhausted:
        if fresh_id is None:
            return NEED_PRODUCER_ID
        next_producer_id = fresh_id
    return current.prepared_v2(
        PREPARE_COMMIT if committed else PREPARE_ABORT, next_producer_id, now_ms
    )


def fence(
    current: TransactionMetadata, *, transaction_version: int, fresh_id: int | None, now_ms: WallMs
) -> TransactionMetadata | NeedProducerId:
    """The coordinator aborts an ongoing transaction of a producer that it fences."""
    if transaction_version >= TV_2:
        return prepare_v2(current, committed=False, fresh_id=fresh_id, now_ms=now_ms)
    return current.fenced_v1(now_ms)


# Errors.


def wrong_producer(current: TransactionMetadata, producer: ProducerIdAndEpoch) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        f"{current.transactional_id!r} has producer id {current.producer_id}, "
        f"not {producer.producer_id}",
    )


def fenced(current: TransactionMetadata, producer: ProducerIdAndEpoch) -> ApiError:
    return ApiError(
        ErrorCode.PRODUCER_FENCED,
        f"{current.transactional_id!r} is at epoch {current.producer_epoch}, "
        f"not at {producer.producer_epoch}",
    )


def concurrent(current: TransactionMetadata) -> ApiError:
    return ApiError(
        ErrorCode.CONCURRENT_TRANSACTIONS,
        f"{current.transactional_id!r} is changing: it is in {current.state_name}; try again",
    )


def _invalid_state(current: TransactionMetadata, committed: bool) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_TXN_STATE,
        f"{current.transactional_id!r} is in {current.state_name} and cannot "
        f"{'commit' if committed else 'abort'}",
    )
