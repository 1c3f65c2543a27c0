"""Waiting for a flush, also while a partition's log is exchanged for a copy of it.

Invariants: a waiter is called once, after its records are on disk in the log that the partition
has then, or with an error.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.broker.log.log import Log
from moldau.broker.replication.machine.waiting import CommitWaiter
from moldau.broker.replication.partition import Partition
from moldau.invariant import invariant
from moldau.times import WallMs
from moldau.wire.errors import ErrorCode


def when_durable(
    partition: Partition, next_offset: int, now_ms: WallMs, waiter: CommitWaiter
) -> None:
    """Flush, and call `waiter` once everything below `next_offset` is on disk."""

    def flushed(error: BaseException | None) -> None:
        if error is not None and partition.awaiting_copy is not None:
            partition.awaiting_copy.append((next_offset, waiter))
            return
        waiter(ErrorCode.NONE if error is None else ErrorCode.KAFKA_STORAGE_ERROR)

    partition.log.flusher.request(next_offset, now_ms, flushed)


def replace_log(partition: Partition, exchange: Callable[[], Log], now_ms: WallMs) -> None:
    """Continue with the copy in another log directory that `exchange` puts in the log's place.

    Producers that wait for a flush continue to wait: their records are in the copy.
    """
    awaiting = partition.awaiting_copy = []
    former = partition.log
    try:
        log = exchange()
    except BaseException:
        for _, waiter in awaiting:
            waiter(ErrorCode.KAFKA_STORAGE_ERROR)
        raise
    finally:
        partition.awaiting_copy = None
    invariant(
        log.log_end_offset == former.log_end_offset,
        f"{log.dir} ends at {log.log_end_offset}, {former.dir} at {former.log_end_offset}",
    )
    partition.log = log
    for next_offset, waiter in awaiting:
        when_durable(partition, next_offset, now_ms, waiter)
    partition.waiters.notify_changed()
