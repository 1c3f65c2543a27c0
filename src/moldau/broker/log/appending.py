"""Appending to a log: checks against its producers, transaction markers and the write itself.

Invariants: a batch is checked before it is written and follows the end of the log; it is in the
file before any state refers to it.
"""

from __future__ import annotations

from moldau.broker.log import surgery
from moldau.broker.log.context import AppendInfo, AppendOrigin
from moldau.broker.log.machine.producer_state import Verification
from moldau.broker.log.machine.validation import ValidatedBatch
from moldau.broker.log.replay import end_marker, record_batch
from moldau.broker.log.state import LogState
from moldau.times import WallMs
from moldau.wire.constants import NO_TIMESTAMP, Buffer
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.records import BatchHeader, read_header


def check_producer(
    log: LogState, valid: ValidatedBatch, origin: AppendOrigin, guard: Verification | None
) -> AppendInfo | None:
    """Reject what is out of order; the result of the former append if the batch is a duplicate."""
    from_client = origin is AppendOrigin.CLIENT
    if from_client:
        duplicate = log.producers.find_duplicate(
            valid.producer_id, valid.producer_epoch, valid.base_sequence, valid.last_sequence
        )
        if duplicate is not None:
            return AppendInfo(
                duplicate.first_offset,
                duplicate.last_offset,
                duplicate.timestamp,
                log.log_start_offset,
                True,
                # It may come again before the flush that the first one waits for has ended.
                duplicate.last_offset + 1 - log.flusher.recovery_point >= log.flush_messages,
                0,
            )
    log.producers.check(
        valid.producer_id,
        valid.producer_epoch,
        valid.base_sequence,
        transactional=valid.is_transactional,
        check_sequence=from_client,
        guard=guard,
    )
    return None


def append_marker(
    log: LogState, batch: memoryview, now_ms: WallMs, transaction_version: int
) -> AppendInfo:
    header = read_header(batch)
    marker = end_marker(header, batch)
    if marker is not None:
        log.producers.check_marker(
            header.producer_id, header.producer_epoch, marker[1], transaction_version
        )
    write_recorded(log, batch, header, now_ms)
    return AppendInfo(
        header.base_offset,
        header.last_offset,
        NO_TIMESTAMP,
        log.log_start_offset,
        False,
        log.flush_due,
        header.size,
    )


def write_recorded(log: LogState, batch: memoryview, header: BatchHeader, now_ms: WallMs) -> None:
    """Write a batch that has its offsets and epoch to the end of the log."""
    write(
        log,
        batch,
        header.size,
        header.base_offset,
        header.last_offset,
        header.max_timestamp,
        header.partition_leader_epoch,
        now_ms,
    )
    aborted = record_batch(log.producers, header, batch)
    if aborted is not None:
        try:
            log.segments.active.txn_index.append(aborted)
        except OSError as error:
            raise log.dir_state.fail(f"writing {log.dir}", error) from error


def write(
    log: LogState,
    batch: Buffer,
    size: int,
    base_offset: int,
    last_offset: int,
    max_timestamp: int,
    leader_epoch: int,
    now_ms: WallMs,
) -> None:
    """Write one checked batch to the active segment, rolling it first when due."""
    if size > log.segment_bytes:
        raise ApiError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"{size} bytes are more than segment.bytes={log.segment_bytes}",
        )
    segment = log.segments.active
    try:
        if segment.should_roll(
            size=size,
            last_offset=last_offset,
            max_timestamp=max_timestamp,
            now_ms=now_ms,
            segment_bytes=log.segment_bytes,
            segment_ms=log.segment_ms,
        ):
            segment = surgery.roll(log, base_offset, now_ms)
        if leader_epoch != log.checkpointed_epoch:
            log.checkpoint_epoch(leader_epoch, base_offset)
        segment.append(batch, size, base_offset, last_offset, max_timestamp)
    except OSError as error:
        raise log.dir_state.fail(f"writing {log.dir}", error) from error
    log.log_end_offset = log.producers.map_end_offset = last_offset + 1
