"""DeleteRecords on a partition that this node leads: delete, and wait for the followers."""

from __future__ import annotations

from moldau.broker.replication import reading
from moldau.broker.replication.machine.waiting import DeleteWaiter
from moldau.broker.replication.partition import Partition
from moldau.wire.errors import ApiError, ErrorCode

HIGH_WATERMARK = -1


def delete_records(partition: Partition, offset: int) -> int:
    """Advance the log start offset to `offset` (HIGH_WATERMARK: as far as possible).

    The low watermark: below it no replica whose broker is alive has records.
    """
    partition.check_online()
    log = partition.log
    if "delete" not in log.config.cleanup_policy:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"records of {partition.topic}-{partition.index} cannot be deleted: its cleanup.policy"
            " has no delete",
        )
    if offset == HIGH_WATERMARK:
        offset = log.high_watermark
    if offset < 0 or offset > log.high_watermark:
        raise reading.out_of_range(log, offset)
    if offset > log.log_start_offset:
        log.advance_log_start_offset(offset)
        partition.waiters.notify_changed()
    return partition.low_watermark


def when_deleted(partition: Partition, offset: int, waiter: DeleteWaiter) -> None:
    """Call `waiter` with the low watermark once it reaches `offset`, or with an error if this node
    stops leading before."""
    if partition.error is not None:
        waiter(partition.error, -1)
    elif (low_watermark := partition.low_watermark) >= offset:
        waiter(ErrorCode.NONE, low_watermark)
    else:
        partition.waiters.deletions.add(waiter, offset)
