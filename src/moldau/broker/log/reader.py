"""Reading a log: by offset for Fetch, by timestamp for ListOffsets.

Invariants: no byte of a batch at or beyond the upper offset is returned, and
what is handed out begins with the batch that holds the asked offset. The end may cut the
last batch short; clients drop such a rest, and Kafka does the same.
"""

from __future__ import annotations

from typing import NamedTuple

from moldau.broker.log.batch_walk import Place, batch_size_at
from moldau.broker.log.segment import Segment
from moldau.broker.log.segments import Segments
from moldau.broker.log.transaction_index import ENTRY_SIZE
from moldau.wire.records import decode_batch, iterate_headers, read_header

# Up to this many, sending all is cheaper than finding those that matter.
_FEW_ABORTED = 16


class ReadResult(NamedTuple):
    """Buffers to send as they are, valid for as long as they are held."""

    buffers: list[memoryview]
    size: int
    # Not even one whole batch fits into the allowed bytes.
    first_batch_incomplete: bool = False


EMPTY = ReadResult([], 0)


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


def read(
    segments: Segments,
    offset: int,
    max_bytes: int,
    *,
    upper_offset: int,
    log_end_offset: int,
    min_one_batch: bool,
) -> ReadResult:
    """Bytes of one segment from the batch that holds `offset` on."""
    index = segments.index_for(offset)
    while 0 <= index < len(segments):
        segment = segments[index]
        if segment.base_offset >= upper_offset:
            return EMPTY
        position = segment.position_of(offset)
        if position is not None:
            break
        # The segment's tail has been compacted away: the offset's successor comes later.
        index += 1
    else:
        return EMPTY
    next_base = segments.next_base(index)
    end_offset = log_end_offset if next_base is None else next_base
    end = segment.size
    if upper_offset < end_offset:
        bound = segment.position_of(upper_offset)
        end = segment.size if bound is None else bound
    available = end - position
    if available <= 0:
        return EMPTY
    length = available
    incomplete = False
    if available > max_bytes:
        length, incomplete = _limit(segment, position, available, max_bytes, min_one_batch)
        if length <= 0:
            return ReadResult([], 0, incomplete)
    return ReadResult([segment.read(position, length)], length, incomplete)


def _limit(
    segment: Segment, position: int, available: int, max_bytes: int, min_one_batch: bool
) -> tuple[int, bool]:
    first_size = batch_size_at(segment.file, position)
    if min_one_batch:
        return min(max(max_bytes, first_size), available), False
    return max(max_bytes, 0), first_size > max_bytes


def end_of(segments: Segments, data: ReadResult, upper_offset: int) -> int:
    """An offset that no whole batch of a read reaches, `upper_offset` at most.

    It bounds the search for aborted transactions, so it is exact only where they are many: to
    find the last batch all headers are read.
    """
    buffer = data.buffers[0]
    index = max(segments.index_for(read_header(buffer).base_offset), 0)
    next_base = segments.next_base(index)
    end = upper_offset if next_base is None else min(upper_offset, next_base)
    if segments[index].txn_index.file_size <= _FEW_ABORTED * ENTRY_SIZE:
        return end
    last = end
    for _, header in iterate_headers(buffer):
        last = header.next_offset
    return min(end, last)


def offset_for_timestamp(
    segments: Segments, timestamp: int, log_start_offset: int
) -> TimestampOffset | None:
    """The first record at or after `log_start_offset` with at least this timestamp."""
    for segment in segments:
        if segment.size == 0 or segment.max_timestamp < timestamp:
            continue
        indexed_offset = max(segment.time_index.lookup(timestamp - 1)[1], log_start_offset)
        place = segment.locate(max(indexed_offset, segment.base_offset))
        if place is None:
            continue
        for candidate in segment.places(place.position):
            if candidate.max_timestamp >= timestamp:
                found = _first_record(segment, candidate, timestamp, log_start_offset)
                if found is not None:
                    return found
    return None


def offset_of_max_timestamp(segments: Segments) -> TimestampOffset | None:
    """The first record that has the greatest timestamp of the log."""
    filled = [segment for segment in segments if segment.size]
    if not filled:
        return None
    newest = max(filled, key=lambda segment: segment.max_timestamp)
    place = newest.locate(newest.max_timestamp_offset)
    if place is None or newest.max_timestamp < 0:
        return None
    return _first_record(newest, place, newest.max_timestamp, 0)


def _first_record(
    segment: Segment, place: Place, timestamp: int, start_offset: int
) -> TimestampOffset | None:
    batch = segment.file.read(place.position, place.size)
    header = read_header(batch)
    for record in decode_batch(batch):
        if record.timestamp >= timestamp and record.offset >= start_offset:
            return TimestampOffset(record.timestamp, record.offset, header.partition_leader_epoch)
    return None
