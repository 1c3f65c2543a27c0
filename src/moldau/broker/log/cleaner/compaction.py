"""Doing one job: read the dirty segments into a map, then rewrite the log by it.

Invariants: only closed segments are read, up to the sizes the job names; only files
with the suffix `.cleaned` are written, and a new segment is announced when all of it is on
the disk. Memory is bounded by the map, one read buffer and one decompressed batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from moldau.broker.log.cleaner.filtering import BatchFilter
from moldau.broker.log.cleaner.job import (
    CleanDone,
    CleanedSegment,
    CleanEvent,
    CleanFailed,
    CleanJob,
)
from moldau.broker.log.cleaner.machine.offset_map import OffsetMap
from moldau.broker.log.cleaner.machine.schedule import SourceSegment, group_segments
from moldau.broker.log.cleaner.transactions import TransactionTracker
from moldau.broker.log.disk import Disk
from moldau.broker.log.machine.names import (
    CLEANED_SUFFIX,
    LOG_SUFFIX,
    TXN_INDEX_SUFFIX,
    offset_prefix,
)
from moldau.broker.log.offset_index import CorruptIndex
from moldau.broker.log.segment import Segment, create_segment
from moldau.broker.log.transaction_index import AbortedTransaction, TransactionIndex
from moldau.wire.batch_header import HEADER_SIZE
from moldau.wire.errors import WireError
from moldau.wire.records import (
    BatchHeader,
    CorruptBatchError,
    crc_matches,
    decode_batch,
    read_header,
)

SEGMENT_SIZE_MAX = 2**31 - 1
BUFFER_SIZE_MIN = 64 * 1024

# Called with the bytes read or written; may wait, or raise to stop the work.
OnBytes = Callable[[int], None]


def run(job: CleanJob, disk: Disk, on_bytes: OnBytes) -> Iterator[CleanEvent]:
    """Do the job; events come as soon as they are true, the last is done or failed."""
    try:
        yield from _Compaction(job, disk, on_bytes).run()
    except (WireError, CorruptIndex, ValueError, OverflowError) as error:
        yield CleanFailed(f"{job.directory}: {error}", corrupt=True)
    except OSError as error:
        yield CleanFailed(f"{job.directory}: {error}", corrupt=False)


def remove_unfinished(disk: Disk, directory: str) -> None:
    """Remove what a cleaning that was broken off has left."""
    if disk.is_dir(directory):
        for name in disk.list_dir(directory):
            if name.endswith(CLEANED_SUFFIX):
                disk.remove(f"{directory}/{name}", missing_ok=True)


class _Compaction:
    def __init__(self, job: CleanJob, disk: Disk, on_bytes: OnBytes) -> None:
        self._job = job
        self._disk = disk
        self._on_bytes = on_bytes
        self._map = OffsetMap(job.map_size_max)
        self._aborted: list[AbortedTransaction] = []
        self._bytes_read = 0
        self._bytes_written = 0
        self._target: Segment | None = None
        self._tracker = TransactionTracker(self._retain)
        self._filter = BatchFilter(
            self._map,
            self._tracker,
            producers=job.producers,
            upper_offset=job.upper_offset,
            now_ms=job.now_ms,
            delete_retention_ms=job.delete_retention_ms,
        )

    def run(self) -> Iterator[CleanEvent]:
        job = self._job
        remove_unfinished(self._disk, job.directory)
        self._aborted = self._read_aborted()
        self._build_map()
        end_offset = self._map.latest_offset + 1
        touched = [segment for segment in job.segments if segment.base_offset < end_offset]
        for group in group_segments(
            touched,
            segment_bytes=job.segment_bytes,
            segment_index_bytes=job.segment_index_bytes,
        ):
            yield self._clean_group(group)
        yield CleanDone(
            end_offset,
            len(self._map),
            self._bytes_read,
            self._bytes_written,
            self._filter.invalid_records,
        )

    # Reading ------------------------------------------------------------------------

    def _read_aborted(self) -> list[AbortedTransaction]:
        """All of them at once: later the broker replaces segments under our hands."""
        found: list[AbortedTransaction] = []
        for base_offset in self._job.txn_index_offsets:
            path = f"{self._job.directory}/{offset_prefix(base_offset)}{TXN_INDEX_SUFFIX}"
            size = self._disk.size(path)
            found.extend(TransactionIndex(self._disk, path, base_offset, file_size=size).entries())
        return found

    def _overlapping(self, from_offset: int, to_offset: int) -> list[AbortedTransaction]:
        return [
            transaction
            for transaction in self._aborted
            if transaction.last_offset >= from_offset and transaction.first_offset < to_offset
        ]

    def _batches(self, segment: SourceSegment) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Every batch of a segment, checked, read in large pieces."""
        path = f"{self._job.directory}/{offset_prefix(segment.base_offset)}{LOG_SUFFIX}"
        file = self._disk.open(path, size=segment.size)
        piece = max(self._job.buffer_size, BUFFER_SIZE_MIN)
        position = 0
        try:
            while position < segment.size:
                data = file.read(position, min(piece, segment.size - position))
                self._bytes_read += len(data)
                self._on_bytes(len(data))
                used = 0
                view = memoryview(data)
                while used + HEADER_SIZE <= len(data):
                    header = read_header(data, used)
                    if used + header.size > len(data):
                        break
                    if header.size < HEADER_SIZE or not crc_matches(data, used, header):
                        raise CorruptBatchError(
                            f"segment {segment.base_offset}: the batch at position "
                            f"{position + used} is damaged"
                        )
                    yield header, view[used : used + header.size]
                    used += header.size
                if used == 0:
                    piece = self._needed(segment, position, data)
                position += used
        finally:
            file.close()

    def _needed(self, segment: SourceSegment, position: int, data: bytes) -> int:
        """How much must be read for the batch that did not fit into one piece."""
        size = read_header(data).size if len(data) >= HEADER_SIZE else 0
        if size <= len(data) or size > segment.size - position:
            raise CorruptBatchError(
                f"segment {segment.base_offset}: {segment.size - position} bytes at position "
                f"{position} are no whole batch"
            )
        return size

    def _build_map(self) -> None:
        job, offset_map = self._job, self._map
        tracker = TransactionTracker()
        tracker.expect(self._overlapping(job.first_dirty_offset, job.upper_offset))
        for segment in job.segments:
            if segment.next_offset <= job.first_dirty_offset:
                continue
            for header, batch in self._batches(segment):
                if header.last_offset < job.first_dirty_offset:
                    continue
                if offset_map.is_full:
                    return
                if header.is_control:
                    tracker.on_control(header, batch)
                elif not tracker.on_data(header) and header.record_count:
                    offset_map.add(decode_batch(batch), job.first_dirty_offset)
                offset_map.cover(header.last_offset)
            offset_map.cover(segment.next_offset - 1)

    # Writing ------------------------------------------------------------------------

    def _retain(self, transaction: AbortedTransaction) -> None:
        if self._target is not None:
            self._target.txn_index.append(transaction)

    def _clean_group(self, group: Sequence[SourceSegment]) -> CleanedSegment:
        job = self._job
        target = self._target = create_segment(
            self._disk,
            job.directory,
            group[0].base_offset,
            index_size_max=job.segment_index_bytes,
            index_interval_bytes=job.index_interval_bytes,
            created_ms=job.now_ms,
            suffix=CLEANED_SUFFIX,
        )
        try:
            for segment in group:
                self._tracker.expect(self._overlapping(segment.base_offset, segment.next_offset))
                for header, batch in self._batches(segment):
                    self._append(target, header, batch)
            return self._finish(target, group)
        except BaseException:
            paths = target.paths()
            target.release()
            for path in paths:
                self._disk.remove(path, missing_ok=True)
            raise

    def _append(self, target: Segment, header: BatchHeader, batch: memoryview) -> None:
        kept = self._filter.keep(header, batch)
        if kept is None:
            return
        size = len(kept.buffer)
        if target.size > SEGMENT_SIZE_MAX - size:
            raise OverflowError(
                f"segments from {target.base_offset} on do not fit into one any more; "
                "lower segment.bytes"
            )
        target.append(kept.buffer, size, header.base_offset, header.last_offset, kept.max_timestamp)
        self._bytes_written += size
        self._on_bytes(size)

    def _finish(self, target: Segment, group: Sequence[SourceSegment]) -> CleanedSegment:
        target.become_inactive()
        for sync in target.begin_sync():
            sync()
        if target.txn_index.file_size:
            file = self._disk.open(target.txn_index.path)
            file.sync()
            file.close()
        # Retention of records without timestamps goes by the file's time.
        newest = f"{self._job.directory}/{offset_prefix(group[-1].base_offset)}{LOG_SUFFIX}"
        self._disk.set_mtime_ms(target.file.path, self._disk.mtime_ms(newest))
        target.release()
        self._target = None
        return CleanedSegment(
            target.base_offset,
            tuple(segment.base_offset for segment in group),
            target.size,
            self._disk.size(target.offset_index.path),
            self._disk.size(target.time_index.path),
            target.txn_index.file_size,
        )
