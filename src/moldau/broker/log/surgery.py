"""Operations that change a log's segments: rolling, cutting, deleting, replacing.

Each brings segments, indexes, epochs, producer state and watermarks to the new shape
together. Invariant: a file is renamed before it is forgotten, so that a crash at
any point leaves a directory the loader understands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from moldau.broker.log.machine.names import CLEANED_SUFFIX, DELETED_SUFFIX, SWAP_SUFFIX
from moldau.broker.log.machine.retention import Retention, SegmentFacts, deletable_count
from moldau.broker.log.replay import needs_snapshot, rebuild_producers
from moldau.broker.log.segment import Segment, create_segment
from moldau.broker.log.state import LogState
from moldau.invariant import invariant
from moldau.times import WallMs

P = ParamSpec("P")
R = TypeVar("R")


def guarded(
    log: LogState,
    what: str,
    operation: Callable[Concatenate[LogState, P], R],
    /,
    *args: P.args,
    **kwargs: P.kwargs,
) -> R:
    """Run an operation; an I/O error in it takes the log directory offline."""
    if log.dir_state.failure is not None:
        raise log.dir_state.failure.again()
    # A log that was not used yet needs its files under the names that they have now.
    try:
        return operation(log, *args, **kwargs)
    except OSError as error:
        raise log.dir_state.fail(f"{what} {log.dir}", error) from error


def new_segment(log: LogState, base_offset: int, now_ms: WallMs) -> Segment:
    config = log.config
    log.flusher.note_new_file()
    return create_segment(
        log.context.disk,
        log.dir,
        base_offset,
        index_size_max=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
        created_ms=now_ms,
        jitter_ms=log.context.jitter(min(config.segment_jitter_ms, config.segment_ms)),
    )


def roll(log: LogState, base_offset: int, now_ms: WallMs) -> Segment:
    """Continue in a new segment; `base_offset` is that of the next batch."""
    base_offset = max(base_offset, log.log_end_offset)
    active = log.segments.active
    if active.base_offset == base_offset:
        # Rolled while empty (its indexes were full or made for another size): start over.
        invariant(active.size == 0, f"{log.dir}: rolling to its own base offset {base_offset}")
        log.segments.remove(active)
        active.release()
    else:
        active.become_inactive()
        log.producers.map_end_offset = base_offset
        log.snapshots.take(log.producers)
        log.flusher.rolled_at(base_offset)
    segment = new_segment(log, base_offset, now_ms)
    log.segments.add(segment)
    log.flusher.request(base_offset, now_ms)
    return segment


def delete_segments(log: LogState, segments: list[Segment]) -> None:
    """Take segments out of the log; their files go after file.delete.delay.ms."""
    paths: list[str] = []
    for segment in segments:
        log.segments.remove(segment)
        paths += retire(log, segment)
    if paths:
        log.context.remove_later(paths, log.config.file_delete_delay_ms)


def retire(log: LogState, segment: Segment, *, with_snapshot: bool = True) -> list[str]:
    """Rename a segment's files to `.deleted`; the paths to remove later."""
    log.has_retired_files = True
    segment.release()
    segment.change_suffix(DELETED_SUFFIX)
    paths = segment.paths()
    if with_snapshot and segment.base_offset in log.snapshots.offsets:
        path = log.snapshots.path(segment.base_offset)
        log.context.disk.rename(path, path + DELETED_SUFFIX)
        log.snapshots.offsets.discard(segment.base_offset)
        paths.append(path + DELETED_SUFFIX)
    return paths


def delete_old_segments(log: LogState, now_ms: WallMs) -> int:
    config = log.config
    segments = log.segments
    if len(segments) == 1 and segments.active.size == 0:
        return 0
    facts = [
        SegmentFacts(
            segment.base_offset,
            segments.next_base(index),
            segment.size,
            segment.largest_timestamp() if config.retention_ms >= 0 else 0,
        )
        for index, segment in enumerate(segments)
    ]
    count = deletable_count(
        facts,
        Retention(config.retention_ms, config.retention_bytes, "delete" in config.cleanup_policy),
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        high_watermark=log.high_watermark,
        now_ms=now_ms,
    )
    if count == 0:
        return 0
    old = list(segments)[:count]
    if count == len(segments):
        roll(log, log.log_end_offset, now_ms)
    # The log start moves first: a reader must never find an offset without its segment.
    first_kept = segments[count].base_offset
    if first_kept > log.log_start_offset:
        log.set_log_start(first_kept)
    delete_segments(log, old)
    return count


def truncate_to(log: LogState, offset: int, now_ms: WallMs) -> bool:
    if offset >= log.log_end_offset:
        # A leader that wrote nothing has left its epoch at the end: it contradicts the next one's.
        if log.leader_epochs.truncate_from_end(log.log_end_offset):
            log.write_epochs()
        return False
    if offset < log.segments.first.base_offset:
        truncate_fully_and_start_at(log, offset, None, now_ms)
        return True
    log.lowest_cut = min(log.lowest_cut, offset)
    # From the last on: a crash in between must not leave a hole.
    delete_segments(log, [s for s in reversed(list(log.segments)) if s.base_offset > offset])
    log.segments.active.truncate_to(offset, now_ms)
    log.segments.active.resize_indexes(log.config.segment_index_bytes)
    _end_at(log, offset, now_ms)
    if log.context.on_cut is not None:
        log.context.on_cut(log)
    return True


def restart_at(log: LogState, offset: int, log_start_offset: int | None, now_ms: WallMs) -> None:
    """Drop everything and continue at `offset`."""
    guarded(log, "truncating", truncate_fully_and_start_at, offset, log_start_offset, now_ms)


def truncate_fully_and_start_at(
    log: LogState, offset: int, log_start_offset: int | None, now_ms: WallMs
) -> None:
    old = list(log.segments)
    log.lowest_cut = min(log.lowest_cut, offset, old[0].base_offset)
    paths: list[str] = []
    for segment in old:
        paths += retire(log, segment)
    for segment in old[1:]:
        log.segments.remove(segment)
    segment = new_segment(log, offset, now_ms)
    log.segments.remove(old[0])
    log.segments.add(segment)
    log.context.remove_later(paths, log.config.file_delete_delay_ms)
    log.leader_epochs.clear()
    log.write_epochs()
    log.snapshots.remove_all()
    log.log_start_offset = offset if log_start_offset is None else log_start_offset
    log.flusher.truncated(offset)
    log.log_end_offset = offset
    log.producers.clear(offset)
    log.snapshots.last_taken = offset
    log.flusher.started_at(log.log_start_offset)
    log.high_watermark = min(max(log.high_watermark, log.log_start_offset), offset)
    if log.context.on_cut is not None:
        log.context.on_cut(log)


def _end_at(log: LogState, offset: int, now_ms: WallMs) -> None:
    """Bring everything beside the segments to a log that now ends at `offset`."""
    if log.leader_epochs.truncate_from_end(offset):
        log.write_epochs()
    log.log_end_offset = offset
    log.log_start_offset = min(log.log_start_offset, offset)
    log.flusher.truncated(offset)
    rebuild_producers(
        log.segments,
        log.producers,
        log.snapshots,
        log_start_offset=log.log_start_offset,
        end_offset=offset,
        now_ms=now_ms,
        expiration_ms=log.context.producer_id_expiration_ms,
    )
    log.high_watermark = min(log.high_watermark, offset)
    log.producers.on_high_watermark(log.high_watermark)


def replace_segments(log: LogState, new: list[Segment], old: list[Segment]) -> None:
    """`.cleaned` files become `.swap`, the old ones `.deleted`, then `.swap` the real ones.

    The loader drops `.cleaned` files (the old ones are all there) and completes `.swap`
    ones (their content is complete and durable), so every crash ends in one of the two.
    """
    invariant(bool(new), f"{log.dir}: nothing to replace segments with")
    ordered = sorted(new, key=lambda segment: segment.base_offset)
    for segment in ordered:
        invariant(segment.suffix == CLEANED_SUFFIX, f"{segment.file.path} is not {CLEANED_SUFFIX}")
        segment.become_inactive()
    # From the last on: a crash between two leaves .cleaned files below the .swap ones,
    # by which the loader knows that the set is not complete.
    for segment in reversed(ordered):
        segment.change_suffix(SWAP_SUFFIX)
    log.context.disk.sync_dir(log.dir)
    new_bases = {segment.base_offset for segment in ordered}
    paths: list[str] = []
    for segment in old:
        log.segments.remove(segment)
        paths += retire(log, segment, with_snapshot=segment.base_offset not in new_bases)
    for segment in ordered:
        segment.change_suffix("")
        log.segments.add(segment)
    log.flusher.note_new_file()
    if paths:
        log.context.remove_later(paths, log.config.file_delete_delay_ms)


def rename_dir(log: LogState, directory: str, sync: bool) -> None:
    log.context.disk.rename(log.dir, directory, sync=sync)
    log.dir = directory
    log.flusher.directory = directory
    log.snapshots.moved_to(directory)
    for segment in log.segments:
        segment.moved_to(directory)


def settle(log: LogState) -> None:
    """Write now, without syncing it, what `close` would write: the log may still grow."""
    _take_snapshot(log, sync=False)
    log.flusher.write_small_files(stopping=True)
    for segment in log.segments:
        segment.complete_indexes()
        segment.release()


def close(log: LogState, sync: bool) -> None:
    """Leave the files as a clean stop should: complete, and durable as a whole, because after
    it the next start checks nothing.

    Without `sync` the caller makes them durable, then calls `flusher.closed_cleanly`.
    """
    _take_snapshot(log, sync=sync)
    if not sync:
        log.flusher.write_small_files(stopping=True)
    for segment in log.segments:
        segment.close(sync=sync)
    if sync:
        log.flusher.closed_cleanly(log.log_end_offset)


def _take_snapshot(log: LogState, *, sync: bool) -> None:
    log.producers.map_end_offset = log.log_end_offset
    if needs_snapshot(log.segments, log.producers, log.snapshots):
        log.snapshots.take(log.producers, sync=sync)
