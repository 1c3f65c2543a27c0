"""What share partitions need to know about the bytes they read: where batches begin and end, and
which of them an aborted transaction wrote. Only transaction markers are ever decoded."""

from __future__ import annotations

from collections.abc import Sequence

from moldau.broker.log.replay import end_marker
from moldau.broker.share.machine.acquisition import AcquiredRecords, Span
from moldau.wire.batch_header import BOUNDS_STRUCT, HEADER_SIZE, LOG_OVERHEAD
from moldau.wire.records import read_header


def base_offset_of(buffer: memoryview) -> int:
    """Where the first batch begins, -1 if there is none."""
    return int.from_bytes(buffer[:8], "big") if len(buffer) >= HEADER_SIZE else -1


def spans_of(buffer: memoryview, reach: int, max_records: int) -> list[Span]:
    """The complete batches, up to the one with `reach` or the last of `max_records`: a long log
    is not scanned for a few records."""
    spans: list[Span] = []
    position = 0
    size = len(buffer)
    while position + HEADER_SIZE <= size:
        base_offset, length, last_offset_delta = BOUNDS_STRUCT.unpack_from(buffer, position)
        end = position + LOG_OVERHEAD + length
        if end > size or end <= position:
            break
        last_offset = base_offset + last_offset_delta
        spans.append(Span(base_offset, last_offset, position, end - position))
        if last_offset >= reach and last_offset - spans[0].base_offset >= max_records - 1:
            break
        position = end
    return spans


def aborted_spans(
    buffer: memoryview, spans: Sequence[Span], aborted_transactions: Sequence[tuple[int, int]]
) -> list[Span]:
    """The batches of aborted transactions, of which (producer id, first offset) are given."""
    waiting = sorted(aborted_transactions, key=lambda entry: entry[1], reverse=True)
    aborting: set[int] = set()
    found = []
    for span in spans:
        header = read_header(buffer, span.position)
        if not header.has_producer_id:
            continue
        while waiting and waiting[-1][1] <= span.last_offset:
            aborting.add(waiting.pop()[0])
        if header.is_control:
            marker = end_marker(header, buffer[span.position : span.position + span.size])
            if marker is not None and marker[0]:
                aborting.discard(header.producer_id)
        elif header.is_transactional and header.producer_id in aborting:
            found.append(span)
    return found


def slice_for(
    buffer: memoryview, spans: Sequence[Span], acquired: Sequence[AcquiredRecords]
) -> memoryview:
    """The whole batches that hold the acquired records."""
    first, last = acquired[0].first_offset, acquired[-1].last_offset
    begin = spans[0]
    end = spans[0]
    for span in spans:
        if span.base_offset <= first:
            begin = span
        if span.base_offset > last:
            break
        end = span
    return buffer[begin.position : end.position + end.size]
