"""The offset for a timestamp, or for one of Kafka's special timestamps."""

from __future__ import annotations

from moldau.broker.log.reader import TimestampOffset
from moldau.broker.replication.partition import Partition
from moldau.wire.constants import NO_EPOCH, NO_OFFSET, NO_TIMESTAMP
from moldau.wire.errors import ApiError, ErrorCode

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6


NOT_FOUND = TimestampOffset(NO_TIMESTAMP, NO_OFFSET, NO_EPOCH)


def find_offset(
    partition: Partition, timestamp: int, *, read_committed: bool, for_client: bool
) -> TimestampOffset:
    """The offset for `timestamp`, NOT_FOUND if there is none that the caller may fetch.

    A client gets OFFSET_NOT_AVAILABLE while a new leader does not know yet how far its
    predecessor had committed: an offset returned now could be smaller than one returned before.
    """
    log = partition.log
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        epoch = log.leader_epochs.epoch_for_offset(log.log_start_offset)
        return TimestampOffset(NO_TIMESTAMP, log.log_start_offset, epoch)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        # There is no remote storage.
        return NOT_FOUND
    lagging = for_client and partition.leader_epoch_start_offset > log.high_watermark
    fetchable = log.log_end_offset
    if for_client:
        fetchable = log.last_stable_offset if read_committed else log.high_watermark
    if timestamp == LATEST:
        if lagging:
            raise _not_available(partition)
        return TimestampOffset(NO_TIMESTAMP, fetchable, partition.leader_epoch)
    found = (
        log.offset_of_max_timestamp()
        if timestamp == MAX_TIMESTAMP
        else log.offset_for_timestamp(timestamp)
    )
    if found is not None and found.offset < fetchable:
        return found
    if lagging:
        raise _not_available(partition)
    return NOT_FOUND


def _not_available(partition: Partition) -> ApiError:
    return ApiError(
        ErrorCode.OFFSET_NOT_AVAILABLE,
        f"the high watermark of {partition.topic}-{partition.index} has not reached the start of"
        f" leader epoch {partition.leader_epoch} yet",
    )
