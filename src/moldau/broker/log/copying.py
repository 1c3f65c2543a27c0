"""Appending batches that have their offsets and epochs already: what a leader sent to its follower,
and what the leader of the metadata quorum has given its own.

Invariants: a batch is checked before it is written, and follows the end of the log.
"""

from __future__ import annotations

from moldau.broker.log import surgery
from moldau.broker.log.appending import write_recorded
from moldau.broker.log.context import AppendInfo
from moldau.broker.log.state import LogState
from moldau.invariant import invariant
from moldau.times import WallMs
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.records import crc_matches, iterate_headers


def append_fetched(
    log: LogState, batches: memoryview, now_ms: WallMs, epoch_max: int
) -> AppendInfo:
    """As `Log.append_as_follower`."""
    base_offset = -1
    size = 0
    for position, header in iterate_headers(batches):
        if header.partition_leader_epoch > epoch_max:
            break
        log_start_offset = log.log_start_offset
        if header.base_offset < log.log_end_offset <= header.last_offset and not log.size:
            # DeleteRecords may put a log's start inside a batch, and a copy begins with that
            # batch as a whole.
            surgery.restart_at(log, header.base_offset, None, now_ms)
        if header.base_offset < log.log_end_offset:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{log.dir}: batch at offset {header.base_offset} is below the log end "
                f"{log.log_end_offset}",
            )
        if header.last_offset_delta < 0 or not crc_matches(batches, position, header):
            raise ApiError(
                ErrorCode.CORRUPT_MESSAGE,
                f"{log.dir}: batch at offset {header.base_offset} from the leader is damaged",
            )
        if base_offset < 0:
            base_offset = header.base_offset
        write_recorded(log, batches[position : position + header.size], header, now_ms)
        if log.log_start_offset < log_start_offset:
            log.set_log_start(log_start_offset)
        size += header.size
    return _appended(log, base_offset, size)


def append_stamped(log: LogState, batches: memoryview, now_ms: WallMs) -> AppendInfo:
    """What the quorum's leader has given offsets and epochs itself."""
    base_offset = log.log_end_offset
    for position, header in iterate_headers(batches):
        invariant(
            header.base_offset == log.log_end_offset,
            f"{log.dir}: batch at {header.base_offset} for offset {log.log_end_offset}",
        )
        write_recorded(log, batches[position : position + header.size], header, now_ms)
    return _appended(log, base_offset, len(batches))


def _appended(log: LogState, base_offset: int, size: int) -> AppendInfo:
    return AppendInfo(
        base_offset,
        log.log_end_offset - 1,
        -1,
        log.log_start_offset,
        False,
        log.flush_due,
        size,
    )
