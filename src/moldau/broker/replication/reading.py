"""What a fetch finds in a log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from moldau.broker.log.log import Log
from moldau.broker.log.reader import ReadResult
from moldau.wire.constants import NO_EPOCH
from moldau.wire.errors import ApiError, ErrorCode

_NOTHING = ReadResult([], 0)


class PartitionRead(NamedTuple):
    """What a fetch finds. `aborted_transactions` is None unless only committed data was wanted."""

    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    buffers: Sequence[memoryview] = ()
    size: int = 0
    aborted_transactions: Sequence[tuple[int, int]] | None = None
    diverging_epoch: tuple[int, int] | None = None


def read(
    log: Log,
    fetch_offset: int,
    max_bytes: int,
    *,
    min_one_batch: bool,
    read_committed: bool = False,
    up_to_log_end: bool = False,
    last_fetched_epoch: int = NO_EPOCH,
) -> PartitionRead:
    """Read whole batches from `fetch_offset`.

    Raises OFFSET_OUT_OF_RANGE below the log start offset and past the log end offset. An offset
    between the high watermark and the log end offset is valid and finds nothing yet.
    """
    start, end = log.log_start_offset, log.log_end_offset
    high_watermark, stable = log.high_watermark, log.last_stable_offset
    if last_fetched_epoch != NO_EPOCH:
        diverging = diverging_epoch(log, fetch_offset, last_fetched_epoch)
        if diverging is not None:
            return PartitionRead(high_watermark, stable, start, diverging_epoch=diverging)
    if fetch_offset < start or fetch_offset > end:
        raise out_of_range(log, fetch_offset)
    upper = end if up_to_log_end else stable if read_committed else high_watermark
    if fetch_offset >= upper or (max_bytes <= 0 and not min_one_batch):
        return PartitionRead(
            high_watermark,
            stable,
            start,
            aborted_transactions=() if read_committed and not up_to_log_end else None,
        )
    data = log.read(fetch_offset, max_bytes, upper_offset=upper, min_one_batch=min_one_batch)
    # Part of a batch is useless when the next response can hold the whole of it.
    if data.first_batch_incomplete:
        data = _NOTHING
    aborted: Sequence[tuple[int, int]] | None = None
    if read_committed and not up_to_log_end:
        aborted = [
            (entry.producer_id, entry.first_offset)
            for entry in (log.aborted_in(fetch_offset, data, upper) if data.size else ())
        ]
    return PartitionRead(high_watermark, stable, start, data.buffers, data.size, aborted)


def diverging_epoch(log: Log, fetch_offset: int, last_fetched_epoch: int) -> tuple[int, int] | None:
    """Where a reader's log diverges from this one, if it does: an epoch and its end here.

    The reader has the records below `fetch_offset`, the last of `last_fetched_epoch`.
    """
    epoch, end_offset = log.end_offset_for_epoch(last_fetched_epoch)
    if epoch < 0 or end_offset < 0 or fetch_offset < log.log_start_offset:
        raise out_of_range(log, fetch_offset)
    if epoch < last_fetched_epoch or end_offset < fetch_offset:
        return epoch, end_offset
    return None


def out_of_range(log: Log, offset: int) -> ApiError:
    return ApiError(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"offset {offset} of {log.topic}-{log.partition} is outside"
        f" {log.log_start_offset} to {log.log_end_offset}",
    )
