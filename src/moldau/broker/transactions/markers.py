"""Markers that end transactions, written to the partitions that took part in them.

`LocalMarkers` serves the transaction coordinator, and the WriteTxnMarkers API, for the partitions
led by this node. Invariants: every partition gets its own outcome, and NONE only once its marker is
committed. A partition of the offsets topic is written through the group coordinator, which makes
the transaction's offsets visible in the same step.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from moldau.broker.coordinator.machine.decision import TransactionEnding
from moldau.broker.coordinator.transaction.machine.values import (
    Marker,
    MarkerResult,
    TopicPartition,
)
from moldau.broker.log.context import AppendInfo
from moldau.broker.machine.topics import GROUP_OFFSETS_TOPIC
from moldau.broker.replication.coordinator_appends import append_marker
from moldau.broker.replication.delayed_produce import DelayedProduce
from moldau.broker.replication.machine.purgatory import Purgatory, Timers
from moldau.broker.replication.partition import Partition
from moldau.clock import Clock
from moldau.wire.errors import ApiError, ErrorCode

logger = logging.getLogger(__name__)


# The transaction coordinator knows what to do about a leader that is not ready yet, but
# not about a group coordinator.
_NOT_READY = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)


class OffsetTransactions(Protocol):
    """The group coordinator, which holds the offsets of open transactions."""

    async def complete_transaction(self, partition: int, ending: TransactionEnding) -> None:
        """Write the marker, end the transaction, and wait for commit; raises ApiError."""
        ...


class MarkerReplicas(Protocol):
    def find(self, key: str, index: int) -> Partition | None: ...


class MarkerLoop(Timers, Protocol):
    def create_future(self) -> asyncio.Future[Any]: ...


class LocalMarkers:
    """Implements `MarkerWriter` for the partitions of this node."""

    def __init__(
        self,
        replicas: MarkerReplicas,
        offsets: OffsetTransactions,
        *,
        loop: MarkerLoop,
        clock: Clock,
        timeout_ms: Callable[[], int],
    ) -> None:
        """`timeout_ms` bounds the wait for commit: request.timeout.ms."""
        self._replicas = replicas
        self._offsets = offsets
        self._loop = loop
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._purgatory = Purgatory(loop)

    async def write(self, markers: Sequence[Marker]) -> list[MarkerResult]:
        results: list[MarkerResult] = [{} for _ in markers]
        appended: list[tuple[MarkerResult, TopicPartition, Partition, AppendInfo]] = []
        completions = []
        for marker, result in zip(markers, results, strict=True):
            for name in marker.partitions:
                partition = self._replicas.find(*name)
                if partition is None or partition.error is ErrorCode.KAFKA_STORAGE_ERROR:
                    result[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                elif name[0] == GROUP_OFFSETS_TOPIC:
                    completions.append(self._complete(marker, name, result))
                else:
                    try:
                        info = append_marker(
                            partition,
                            producer_id=marker.producer_id,
                            producer_epoch=marker.producer_epoch,
                            coordinator_epoch=marker.coordinator_epoch,
                            committed=marker.committed,
                            transaction_version=marker.transaction_version,
                            now_ms=self._clock.now_ms(),
                        )
                    except Exception as error:
                        result[name] = _code_of(error, name)
                    else:
                        appended.append((result, name, partition, info))
        if completions:
            await asyncio.gather(self._wait(appended), *completions)
        else:
            await self._wait(appended)
        return results

    async def _wait(
        self, appended: list[tuple[MarkerResult, TopicPartition, Partition, AppendInfo]]
    ) -> None:
        """Until every marker is committed, or the time is over."""
        future = self._loop.create_future()

        def end(request: DelayedProduce) -> None:
            if not future.done():
                future.set_result(None)

        request = DelayedProduce(self._purgatory, end)
        for place, (_, _, partition, info) in enumerate(appended):
            if info.flush_due:
                request.expect_flush(
                    (place, 0), partition, info.last_offset + 1, self._clock.now_ms()
                )
            request.expect_commit((place, 0), partition, info.last_offset + 1)
        request.start(self._timeout_ms())
        try:
            await future
        except asyncio.CancelledError:
            request.cancel()
            raise
        for place, (result, name, _, _) in enumerate(appended):
            result[name] = request.outcomes[place, 0]

    async def _complete(self, marker: Marker, name: TopicPartition, result: MarkerResult) -> None:
        try:
            await self._offsets.complete_transaction(name[1], marker)
        except Exception as error:
            code = _code_of(error, name)
            result[name] = ErrorCode.NOT_LEADER_OR_FOLLOWER if code in _NOT_READY else code
        else:
            result[name] = ErrorCode.NONE


def _code_of(error: Exception, name: TopicPartition) -> ErrorCode:
    if isinstance(error, ApiError):
        return error.code
    logger.error("the marker for %s-%d failed: %s", *name, error, exc_info=error)
    return ErrorCode.UNKNOWN_SERVER_ERROR
