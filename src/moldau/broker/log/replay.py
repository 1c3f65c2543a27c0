"""Bringing producer state up to a log's end by replaying its batches.

The same two functions serve live appends, followers, recovery and truncation, so the
state a restart finds is the state the running broker had.
"""

from __future__ import annotations

from moldau.broker.log.machine.producer_state import ProducerStates
from moldau.broker.log.producer_snapshots import ProducerSnapshots
from moldau.broker.log.segments import Segments
from moldau.broker.log.transaction_index import AbortedTransaction
from moldau.wire.batch_header import HEADER_SIZE
from moldau.wire.constants import Buffer
from moldau.wire.records import (
    BatchHeader,
    ControlType,
    decode_batch,
    decode_control_type,
    decode_coordinator_epoch,
    read_header,
)


def end_marker(header: BatchHeader, batch: Buffer) -> tuple[bool, int] | None:
    """(aborted, coordinator epoch) of a transaction marker; None for other control batches."""
    if header.record_count == 0:
        return None
    record = decode_batch(batch)[0]
    kind = decode_control_type(record.key)
    if kind not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    return kind == ControlType.ABORT, decode_coordinator_epoch(record.value)


def record_batch(
    producers: ProducerStates, header: BatchHeader, batch: Buffer | None
) -> AbortedTransaction | None:
    """Record a batch of the log; an aborted transaction it ends goes into the index.

    `batch` may be None for data batches, whose header has everything that is needed.
    """
    if header.producer_id < 0:
        return None
    if not header.is_control:
        producers.record_batch(
            header.producer_id,
            header.producer_epoch,
            header.last_sequence,
            first_offset=header.base_offset,
            last_offset=header.last_offset,
            timestamp=header.max_timestamp,
            transactional=header.is_transactional,
        )
        return None
    marker = None if batch is None else end_marker(header, batch)
    if marker is None:
        return None
    aborted, coordinator_epoch = marker
    completed = producers.record_marker(
        header.producer_id,
        header.producer_epoch,
        coordinator_epoch=coordinator_epoch,
        offset=header.last_offset,
        timestamp=header.max_timestamp,
        aborted=aborted,
    )
    if completed is None:
        return None
    stable = producers.last_stable_offset_after(completed)
    producers.complete(completed)
    if not completed.aborted:
        return None
    return AbortedTransaction(
        completed.producer_id, completed.first_offset, completed.last_offset, stable
    )


def needs_snapshot(
    segments: Segments, producers: ProducerStates, snapshots: ProducerSnapshots
) -> bool:
    """Whether a snapshot at the end of the log adds anything to what a start finds.

    A log of one segment in which no producer has an id needs none: after a crash the segment is
    read from its beginning in any case, and after a clean stop there is no state to know.
    """
    return bool(producers.entries or snapshots.offsets or len(segments) > 1)


def rebuild_producers(
    segments: Segments,
    producers: ProducerStates,
    snapshots: ProducerSnapshots,
    *,
    log_start_offset: int,
    end_offset: int,
    now_ms: int,
    expiration_ms: int,
    clean: bool = False,
) -> None:
    """Make `producers` describe the log up to `end_offset`, from a snapshot where possible.

    Snapshots are left at the last two segment starts and at the end, so that a later
    restart or truncation finds one near. After a clean stop without any snapshot (a log
    that never had a producer id, or older than snapshots) nothing needs replaying.
    """
    if clean and not snapshots.offsets:
        producers.clear(log_start_offset)
        snapshots.last_taken = log_start_offset
        producers.map_end_offset = end_offset
        if needs_snapshot(segments, producers, snapshots):
            snapshots.take(producers)
        return
    snapshots.reload(
        producers,
        log_start_offset=log_start_offset,
        end_offset=end_offset,
        now_ms=now_ms,
        expiration_ms=expiration_ms,
    )
    wanted = {segment.base_offset for segment in list(segments)[-2:]}
    # After a clean stop nothing is left to read, and the files of most logs stay closed.
    complete = producers.map_end_offset == end_offset
    for segment in () if complete else segments.overlapping(producers.map_end_offset, end_offset):
        start = max(segment.base_offset, producers.map_end_offset, log_start_offset)
        producers.map_end_offset = start
        if segment.base_offset in wanted and needs_snapshot(segments, producers, snapshots):
            snapshots.take(producers)
        place = segment.locate(start)
        if place is None:
            continue
        for batch in segment.places(place.position):
            if batch.base_offset >= end_offset:
                break
            header = read_header(segment.file.read(batch.position, HEADER_SIZE))
            if header.producer_id >= 0:
                whole = segment.file.read(batch.position, batch.size) if header.is_control else None
                record_batch(producers, header, whole)
    producers.map_end_offset = end_offset
    if needs_snapshot(segments, producers, snapshots):
        snapshots.take(producers)
