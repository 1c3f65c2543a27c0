"""Checking one segment batch by batch after a crash, and rebuilding what is beside it."""

from __future__ import annotations

from typing import NamedTuple

from moldau.broker.log.machine.leader_epochs import LeaderEpochs
from moldau.broker.log.machine.producer_state import ProducerStates
from moldau.broker.log.producer_snapshots import ProducerSnapshots
from moldau.broker.log.replay import rebuild_producers, record_batch
from moldau.broker.log.segment import RELATIVE_OFFSET_MAX, Segment
from moldau.broker.log.segments import Segments
from moldau.wire.batch_header import HEADER_SIZE
from moldau.wire.errors import WireError
from moldau.wire.records import BatchHeader, crc_matches, read_header


class Recovered(NamedTuple):
    next_offset: int
    position: int  # where the sound batches end
    cut_bytes: int  # how many bytes follow there
    reason: str


def recover_segment(
    segment: Segment,
    segments: Segments,
    producers: ProducerStates,
    snapshots: ProducerSnapshots,
    epochs: LeaderEpochs,
    *,
    log_start_offset: int,
    now_ms: int,
    expiration_ms: int,
) -> Recovered:
    """Find the leading sound batches of a segment and rebuild its indexes from them.

    The caller cuts off the rest, possibly after removing other segments.
    """
    earlier = Segments([s for s in segments if s.base_offset < segment.base_offset])
    if producers.map_end_offset != segment.base_offset and len(earlier):
        rebuild_producers(
            earlier,
            producers,
            snapshots,
            log_start_offset=max(log_start_offset, earlier.first.base_offset),
            end_offset=segment.base_offset,
            now_ms=now_ms,
            expiration_ms=expiration_ms,
        )
    elif not len(earlier):
        producers.clear(segment.base_offset)
    segment.reset_indexes()
    # A view over all of it: checksums of a large segment run over mapped pages without copying.
    view = segment.read(0, segment.size) if segment.size else memoryview(b"")
    position = 0
    next_offset = segment.base_offset
    reason = ""
    while position < segment.size:
        header, reason = _sound_batch(view, position, next_offset, segment.base_offset)
        if header is None:
            break
        segment.index_batch(position, header.size, header.last_offset, header.max_timestamp)
        # Only what is beyond the known history: older batches would undo it.
        if header.partition_leader_epoch > epochs.latest_epoch:
            epochs.assign(header.partition_leader_epoch, header.base_offset)
        try:
            aborted = record_batch(producers, header, view[position : position + header.size])
        except WireError as error:
            reason = str(error)
            break
        if aborted is not None:
            segment.txn_index.append(aborted)
        position += header.size
        next_offset = header.last_offset + 1
        producers.map_end_offset = next_offset
    view.release()
    return Recovered(next_offset, position, segment.size - position, reason)


def _sound_batch(
    view: memoryview, position: int, next_offset: int, base_offset: int
) -> tuple[BatchHeader | None, str]:
    rest = len(view) - position
    if rest < HEADER_SIZE:
        return None, f"{rest} bytes are too few for a batch"
    header = read_header(view, position)
    if header.magic != 2 or header.size < HEADER_SIZE or header.size > rest:
        return None, f"magic {header.magic}, {header.size} bytes announced, {rest} there"
    if (
        header.base_offset < next_offset
        or header.last_offset_delta < 0
        or header.last_offset - base_offset > RELATIVE_OFFSET_MAX
    ):
        return None, f"offsets {header.base_offset}..{header.last_offset} after {next_offset - 1}"
    if not crc_matches(view, position, header):
        return None, "the checksum does not match"
    return header, ""
