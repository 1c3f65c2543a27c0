"""Appends the batches of Produce requests, and waits until they are as safe as requested.

Decided here: what is rejected before the log sees it (anything but exactly one batch of the current
format, an invalid acks, clients that write to internal topics), and when a request that has
appended its batches is complete.

Invariants: nothing of the request's frame is used after `append` has returned; a waiting request
completes exactly once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from moldau.broker.log.context import AppendInfo
from moldau.broker.log.machine.producer_state import Verification
from moldau.broker.replication.delayed_produce import DelayedProduce, PartitionKey
from moldau.broker.replication.machine.produced_batch import single_batch
from moldau.broker.replication.machine.purgatory import WAITERS_MAX, Purgatory, Timers
from moldau.broker.replication.partition import Partition
from moldau.clock import Clock
from moldau.wire.batch_header import TRANSACTIONAL_FLAG
from moldau.wire.constants import ACKS_ALL
from moldau.wire.errors import ApiError, ErrorCode

ADMIN_CLIENT_ID: Final = "__admin_client"


class Appended(NamedTuple):
    """A batch that is not yet as safe as requested."""

    key: PartitionKey
    """The partition's place in the response."""
    partition: Partition
    info: AppendInfo


def is_safe(partition: Partition, info: AppendInfo, acks: int) -> bool:
    """Whether a batch may be acknowledged now."""
    return not info.flush_due and (
        acks != ACKS_ALL or partition.log.high_watermark > info.last_offset
    )


class ProduceAppends:
    """The part of Produce that touches partitions."""

    def __init__(self, *, timers: Timers, clock: Clock, waiters_max: int = WAITERS_MAX) -> None:
        self._clock = clock
        self.purgatory = Purgatory(timers, waiters_max)

    def append(
        self,
        partition: Partition,
        records: memoryview | None,
        *,
        version: int,
        acks: int,
        client_id: str | None,
        transactional_id: str | None = None,
        guard: Verification | None = None,
    ) -> AppendInfo:
        """Append the batch of one partition, or raise why it is rejected."""
        batch, attributes = single_batch(records, version)
        if attributes & TRANSACTIONAL_FLAG and transactional_id is None:
            raise ApiError(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                "transactional records in a request without a transactional id",
            )
        if not -1 <= acks <= 1:
            raise ApiError(
                ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {acks}; allowed are -1, 0 and 1"
            )
        if partition.internal and client_id != ADMIN_CLIENT_ID:
            raise ApiError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Cannot append to internal topic {partition.topic}",
            )
        info = partition.append(
            batch, now_ms=self._clock.now_ms(), acks=acks, produce_version=version, guard=guard
        )
        meters = partition.meters
        if meters is not None:
            meters.produced(len(batch), info.base_offset, info.last_offset)
        return info

    def flush_in_background(self, unsafe: Sequence[Appended]) -> None:
        """For acks=0: the client does not wait for a flush that is due."""
        for each in unsafe:
            each.partition.log.request_flush(now_ms=self._clock.now_ms())

    def wait(
        self,
        unsafe: Sequence[Appended],
        *,
        acks: int,
        timeout_ms: int,
        on_end: Callable[[DelayedProduce], None],
    ) -> DelayedProduce:
        """Call `on_end` once all are committed or flushed, as required, or at the timeout."""
        request = DelayedProduce(self.purgatory, on_end)
        for key, partition, info in unsafe:
            if info.flush_due:
                request.expect_flush(key, partition, info.last_offset + 1, self._clock.now_ms())
            if acks == ACKS_ALL:
                request.expect_commit(key, partition, info.last_offset + 1)
        request.start(timeout_ms)
        return request
