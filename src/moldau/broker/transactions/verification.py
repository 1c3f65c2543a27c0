"""Ensures that the coordinator knows a partition before that accepts a transaction's first batch.

Decided here: what the coordinator is asked, how often, and what its response means for the client
(KIP-890). Older clients have added the partition themselves, which is only verified; for newer ones
the partition's leader adds it. Invariant: a batch gets a guard before the coordinator is asked, and
the log appends it only while that guard is valid, so no batch enters a transaction that its
coordinator cannot end.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, NamedTuple

from moldau.broker.coordinator.transaction.interface import TransactionPartitions
from moldau.broker.coordinator.transaction.machine.values import TopicPartition
from moldau.broker.log.machine.producer_state import ONGOING, Verification
from moldau.broker.replication.partition import Partition
from moldau.clock import Clock
from moldau.wire.errors import ApiError, ErrorCode

logger = logging.getLogger(__name__)


class Operation(enum.Enum):
    """What a request's version says about its client."""

    VERIFY = "verify"  # knows no TRANSACTION_ABORTABLE
    VERIFY_ABORTABLE = "verify, abortable"
    ADD = "add"  # transaction version 2

    @property
    def supports_epoch_bump(self) -> bool:
        return self is Operation.ADD


_ABORTABLE_SINCE_PRODUCE = 11
_ADD_SINCE_PRODUCE = 12
_ABORTABLE_SINCE_TXN_OFFSET_COMMIT = 4
_ADD_SINCE_TXN_OFFSET_COMMIT = 5


def produce_operation(version: int) -> Operation:
    if version >= _ADD_SINCE_PRODUCE:
        return Operation.ADD
    return Operation.VERIFY_ABORTABLE if version >= _ABORTABLE_SINCE_PRODUCE else Operation.VERIFY


def txn_offset_commit_operation(version: int) -> Operation:
    if version >= _ADD_SINCE_TXN_OFFSET_COMMIT:
        return Operation.ADD
    if version >= _ABORTABLE_SINCE_TXN_OFFSET_COMMIT:
        return Operation.VERIFY_ABORTABLE
    return Operation.VERIFY


class Claim(NamedTuple):
    """A batch that says it belongs to a transaction."""

    partition: Partition
    producer_id: int
    producer_epoch: int
    first_sequence: int

    @property
    def name(self) -> TopicPartition:
        return self.partition.topic, self.partition.index


class Verified(NamedTuple):
    """What became of the claims of one request."""

    errors: dict[TopicPartition, ErrorCode]
    guards: dict[TopicPartition, Verification]
    required: bool

    def guard(self, name: TopicPartition) -> Verification | None:
        """What proves to the log that the batch may be appended; None if no proof is asked."""
        return self.guards.get(name, ONGOING) if self.required else None


UNVERIFIED = Verified({}, {}, required=False)


class TransactionVerifier:
    def __init__(
        self,
        coordinator: TransactionPartitions,
        *,
        enabled: Callable[[], bool],
        retry_backoff_ms: int,
        retry_time_ms: int,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`enabled` is transaction.partition.verification.enable, which may change at any time.

        `retry_backoff_ms` and `retry_time_ms` are add.partitions.to.txn.retry.backoff.ms and
        the smaller of its maximum and request.timeout.ms.
        """
        self._coordinator = coordinator
        self._enabled = enabled
        self._retry_backoff_ms = retry_backoff_ms
        self._retry_time_ms = retry_time_ms
        self._clock = clock
        self._sleep = sleep

    def start(
        self,
        transactional_id: str,
        claims: Sequence[Claim],
        operation: Operation,
        *,
        retry: bool = True,
    ) -> Verified | Coroutine[Any, Any, Verified]:
        """Give every claim its guard, without waiting if the coordinator need not be asked.

        All claims are of one producer id and epoch. Without `retry` the client has to retry while
        the producer's last transaction is still being ended.
        """
        if not self._enabled() and not operation.supports_epoch_bump:
            return UNVERIFIED
        verified = self._guard(claims, operation)
        if _unanswered(verified):
            retry_ms = self._retry_time_ms if retry and operation is Operation.ADD else 0
            return self._ask(transactional_id, claims, operation, verified, retry_ms)
        return verified

    def _guard(self, claims: Sequence[Claim], operation: Operation) -> Verified:
        verified = Verified({}, {}, required=self._enabled())
        for claim in claims:
            try:
                claim.partition.check_online()
                verified.guards[claim.name] = claim.partition.log.producers.start_verification(
                    claim.producer_id,
                    claim.producer_epoch,
                    claim.first_sequence,
                    supports_epoch_bump=operation.supports_epoch_bump,
                    now_ms=self._clock.now_ms(),
                )
            except ApiError as error:
                verified.errors[claim.name] = error.code
        return verified

    async def _ask(
        self,
        transactional_id: str,
        claims: Sequence[Claim],
        operation: Operation,
        verified: Verified,
        retry_ms: int,
    ) -> Verified:
        waited_ms = 0
        while names := _unanswered(verified):
            answers = await self._answers(transactional_id, claims[0], names, operation)
            verified.errors.update(answers)
            # To send all records again costs more than to ask again, and the coordinator is
            # done with the producer's last transaction soon.
            if ErrorCode.CONCURRENT_TRANSACTIONS not in answers.values() or waited_ms >= retry_ms:
                break
            await self._sleep(self._retry_backoff_ms / 1000)
            waited_ms += self._retry_backoff_ms
            verified = self._guard(claims, operation)
        return verified

    async def _answers(
        self,
        transactional_id: str,
        claim: Claim,
        names: Sequence[TopicPartition],
        operation: Operation,
    ) -> dict[TopicPartition, ErrorCode]:
        """The errors; partitions that are in the transaction are left out."""
        try:
            answers = await self._coordinator.add_partitions(
                transactional_id,
                claim.producer_id,
                claim.producer_epoch,
                names,
                verify_only=operation is not Operation.ADD,
            )
        except Exception as error:
            logger.error("verifying %s failed: %s", transactional_id, error, exc_info=error)
            return dict.fromkeys(names, ErrorCode.UNKNOWN_SERVER_ERROR)
        return {
            name: _client_code(answers[name], operation)
            for name in names
            if answers[name] is not ErrorCode.NONE
        }


def _unanswered(verified: Verified) -> list[TopicPartition]:
    return [name for name, guard in verified.guards.items() if guard is not ONGOING]


def _client_code(code: ErrorCode, operation: Operation) -> ErrorCode:
    if code is ErrorCode.PRODUCER_FENCED:
        # What producers know how to handle from a partition.
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and operation is Operation.VERIFY:
        return ErrorCode.INVALID_TXN_STATE
    return code


_COORDINATOR_NOT_READY = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


def produce_error(code: ErrorCode, operation: Operation) -> ApiError:
    """The error for a producer whose batch could not be verified."""
    if code in _COORDINATOR_NOT_READY or (
        # With version 2 this is common, and such producers know it.
        code is ErrorCode.CONCURRENT_TRANSACTIONS and operation is not Operation.ADD
    ):
        # Any producer sends again upon this error, and without asking for metadata first.
        return ApiError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            "Unable to verify the partition has been added to the transaction. "
            f"Underlying error: {code.name}",
        )
    if code is ErrorCode.INVALID_TXN_STATE:
        return ApiError(code, "Partition was not added to the transaction")
    return ApiError(code, "")
