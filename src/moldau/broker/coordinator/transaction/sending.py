"""Sends the decision about a transaction to all its partitions.

Continues until every partition has its marker, however often that fails: until then readers of the
partition wait. Invariant: nothing is sent once the shard has moved on from the decision, because a
late marker could end the next transaction of the same producer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from moldau.broker.calls.retries import Backoff, pauses_of
from moldau.broker.coordinator.transaction.interface import MarkerWriter
from moldau.broker.coordinator.transaction.machine.metadata import (
    PREPARE_COMMIT,
    TransactionMetadata,
)
from moldau.broker.coordinator.transaction.machine.values import (
    Marker,
    MarkerResult,
    TopicPartition,
)
from moldau.clock import Clock
from moldau.wire.errors import ErrorCode

logger = logging.getLogger(__name__)

_DELAY_MS_MIN = 20
_DELAY_MS_MAX = 1_000

# A newer coordinator has written there: the decision of this one is obsolete.
_SUPERSEDED = frozenset({ErrorCode.TRANSACTION_COORDINATOR_FENCED})
# The partition has seen a newer epoch, which no producer gets before this transaction has ended
# there. Either this coordinator has a successor, and then it can complete nothing; or a power
# failure took the end of its log, and giving up would leave the transaction prepared for ever.
_ENDED_BEFORE = ErrorCode.INVALID_PRODUCER_EPOCH
# The others take no markers, so they cannot have taken transactional records either.
_SETTLED = frozenset(
    {
        ErrorCode.NONE,
        _ENDED_BEFORE,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
_PASSING = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NETWORK_EXCEPTION,
    }
)


class PartitionDirectory(Protocol):
    def has_partition(self, name: str, partition: int) -> bool: ...


def marker_backoff(clock: Clock) -> Backoff:
    """Readers of the partition wait, so the first retries follow soon."""
    return Backoff(pauses_of(clock), delay_ms_first=_DELAY_MS_MIN, delay_ms_max=_DELAY_MS_MAX)


def unsettled(result: MarkerResult, sent: frozenset[TopicPartition]) -> frozenset[TopicPartition]:
    """The partitions that still need their marker; one without an outcome is one of them."""
    return frozenset(
        each for each in sent if result.get(each, ErrorCode.UNKNOWN_SERVER_ERROR) not in _SETTLED
    )


class MarkerSending:
    def __init__(
        self,
        markers: MarkerWriter,
        topics: PartitionDirectory,
        clock: Clock,
        report_bug: Callable[[Exception], None],
    ) -> None:
        self._markers = markers
        self._topics = topics
        self._clock = clock
        self._report_bug = report_bug

    async def send(
        self,
        prepared: TransactionMetadata,
        coordinator_epoch: int,
        is_current: Callable[[], bool],
    ) -> bool:
        """Whether every partition has its marker; False if another coordinator sends them now."""
        remaining = prepared.partitions
        backoff = marker_backoff(self._clock)
        while True:
            # What was deleted meanwhile has no readers either.
            remaining = frozenset(each for each in remaining if self._topics.has_partition(*each))
            if not is_current():
                return False
            if not remaining:
                return True
            marker = Marker(
                producer_id=prepared.producer_id,
                producer_epoch=prepared.producer_epoch,
                coordinator_epoch=coordinator_epoch,
                committed=prepared.state is PREPARE_COMMIT,
                transaction_version=prepared.client_transaction_version,
                partitions=tuple(sorted(remaining)),
            )
            result = await self._write(marker)
            if not _SUPERSEDED.isdisjoint(result.values()):
                _log_superseded(prepared, result)
                return False
            _log_unexpected(prepared, result)
            remaining = unsettled(result, remaining)
            if remaining:
                await backoff.wait()

    async def _write(self, marker: Marker) -> MarkerResult:
        try:
            (result,) = await self._markers.write([marker])
        except Exception as bug:
            # Readers must not wait for ever because of it: retry as if no partition had responded.
            self._report_bug(bug)
            return {}
        return result


def _log_superseded(prepared: TransactionMetadata, result: MarkerResult) -> None:
    logger.warning(
        "stopped sending markers of %r, producer %s: %s",
        prepared.transactional_id,
        prepared.producer,
        {place: error.name for place, error in result.items() if error in _SUPERSEDED},
    )


def _log_unexpected(prepared: TransactionMetadata, result: MarkerResult) -> None:
    for place, error in result.items():
        if error is _ENDED_BEFORE:
            logger.warning(
                "%s-%d has seen a newer epoch than %s of %r and needs no marker",
                *place,
                prepared.producer,
                prepared.transactional_id,
            )
        elif error not in _SETTLED and error not in _PASSING:
            logger.error(
                "writing the marker of %r to %s-%d failed with %s; retrying",
                prepared.transactional_id,
                *place,
                error.name,
            )
