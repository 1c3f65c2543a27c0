"""One segment: a `.log` file of batches and its three indexes.

Invariants: the first `size` bytes of the file are whole batches whose offsets ascend from
`base_offset` on; bytes beyond them have no meaning. Index entries point at batch starts. A failed
append leaves size, file and indexes as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from moldau.broker.log import batch_walk
from moldau.broker.log.batch_walk import Place
from moldau.broker.log.disk import Disk, File
from moldau.broker.log.machine.inventory import SegmentFacts
from moldau.broker.log.machine.names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    offset_prefix,
)
from moldau.broker.log.offset_index import CorruptIndex, OffsetIndex
from moldau.broker.log.time_index import TimeIndex
from moldau.broker.log.transaction_index import TransactionIndex
from moldau.wire.constants import NO_TIMESTAMP, Buffer

RELATIVE_OFFSET_MAX = 2**31 - 1
# Positions of this many batches at the end are remembered, for readers at the tail.
RECENT_BATCHES_MAX = 64
# A mapping costs two system calls and page faults; below this a copy is cheaper.
MAP_SIZE_MIN = 128 * 1024


class Segment:
    __slots__ = (
        "_bytes_since_entry",
        "_disk",
        "_first_timestamp",
        "_max_timestamp",
        "_recent",
        "base_offset",
        "created_ms",
        "dir",
        "file",
        "index_interval_bytes",
        "jitter_ms",
        "max_timestamp_offset",
        "offset_index",
        "size",
        "suffix",
        "time_index",
        "txn_index",
        "unsynced_indexes",
    )

    def __init__(
        self,
        disk: Disk,
        directory: str,
        base_offset: int,
        *,
        file: File,
        index_size_max: int,
        index_interval_bytes: int,
        created_ms: int,
        jitter_ms: int = 0,
        suffix: str = "",
        index_size: int = -1,
        time_index_size: int = -1,
        txn_index_size: int = 0,
    ) -> None:
        prefix = f"{directory}/{offset_prefix(base_offset)}"
        self._disk = disk
        self.dir = directory
        self.suffix = suffix
        self.base_offset = base_offset
        self.file = file
        self.size = file.size
        self.created_ms = created_ms
        self.jitter_ms = jitter_ms
        self.index_interval_bytes = index_interval_bytes
        self.offset_index = OffsetIndex(
            disk,
            prefix + INDEX_SUFFIX + suffix,
            base_offset,
            size_max=index_size_max,
            file_size=index_size,
        )
        self.time_index = TimeIndex(
            disk,
            prefix + TIME_INDEX_SUFFIX + suffix,
            base_offset,
            size_max=index_size_max,
            file_size=time_index_size,
        )
        self.txn_index = TransactionIndex(
            disk, prefix + TXN_INDEX_SUFFIX + suffix, base_offset, file_size=txn_index_size
        )
        self._bytes_since_entry = 0
        self._first_timestamp: int | None = None
        self._max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        self._recent: dict[int, int] = {}
        # Whether the index files may hold what no fsync has covered.
        self.unsynced_indexes = False

    # Appending ----------------------------------------------------------------------

    def append(
        self, batch: Buffer, size: int, base_offset: int, last_offset: int, max_timestamp: int
    ) -> None:
        """Write one batch at the end and index it when enough bytes have gone by."""
        position = self.size
        self.file.write(batch, position)
        if self._bytes_since_entry > self.index_interval_bytes:
            try:
                self._add_index_entry(position, last_offset, max_timestamp)
            except OSError:
                self.file.truncate(position)
                raise
            self._bytes_since_entry = 0
        self.size = position + size
        self.unsynced_indexes = True
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if position == 0:
            self._first_timestamp = max_timestamp
        self._bytes_since_entry += size
        recent = self._recent
        recent[base_offset] = position
        if len(recent) > RECENT_BATCHES_MAX:
            del recent[next(iter(recent))]

    def _add_index_entry(self, position: int, last_offset: int, max_timestamp: int) -> None:
        self.offset_index.append(last_offset, position)
        if max_timestamp > self._max_timestamp:
            self.time_index.maybe_append(max_timestamp, last_offset)
        else:
            self.time_index.maybe_append(self._max_timestamp, self.max_timestamp_offset)

    def should_roll(
        self,
        *,
        size: int,
        last_offset: int,
        max_timestamp: int,
        now_ms: int,
        segment_bytes: int,
        segment_ms: int,
    ) -> bool:
        """Whether the next batch belongs into a new segment."""
        if self.size > segment_bytes - size:
            return True
        if self.size == 0:
            return self.offset_index.is_full or self.time_index.is_full
        first = self._first_timestamp
        if first is None:
            first = self.first_timestamp()
        # Age by the records' own clock, so that replayed logs roll alike; else by ours.
        waited_ms = max_timestamp - first if first >= 0 else now_ms - self.created_ms
        return (
            waited_ms > segment_ms - self.jitter_ms
            or self.offset_index.is_full
            or self.time_index.is_full
            or last_offset - self.base_offset > RELATIVE_OFFSET_MAX
        )

    def first_timestamp(self) -> int:
        """The first batch's maximum timestamp, -1 when there is none."""
        first = self._first_timestamp
        if first is None:
            place = next(self.places(0), None)
            first = NO_TIMESTAMP if place is None else place.max_timestamp
            self._first_timestamp = first
        return first

    def become_inactive(self) -> None:
        """No more appends: complete the time index."""
        self.time_index.maybe_append(
            self._max_timestamp, self.max_timestamp_offset, even_if_full=True
        )
        self.offset_index.trim()
        self.time_index.trim()
        self.offset_index.close()
        self.time_index.close()
        self._recent = {}

    # Finding ------------------------------------------------------------------------

    @property
    def max_timestamp(self) -> int:
        return self._max_timestamp

    def largest_timestamp(self) -> int:
        """For retention: the batches' own maximum, or the file's time without any."""
        if self._max_timestamp >= 0:
            return self._max_timestamp
        return self._disk.mtime_ms(self.file.path)

    def position_of(self, offset: int) -> int | None:
        """Start of the first batch that ends at or above `offset`; None beyond the last."""
        position = self._recent.get(offset)
        if position is not None:
            return position
        end = self.size
        if end == 0:
            return None
        entry = self.offset_index.lookup(offset)
        return batch_walk.position_of(self.file, offset, entry, self.base_offset, end)

    def locate(self, offset: int) -> Place | None:
        """The first batch that ends at or above `offset`."""
        position = self.position_of(offset)
        return None if position is None else next(self.places(position), None)

    def places(self, position: int) -> Iterator[Place]:
        """The batches from `position` on, by their headers alone."""
        return batch_walk.places(self.file, position, self.size)

    def read(self, position: int, length: int) -> memoryview:
        """Bytes of the segment, mapped when they are many and copied when few."""
        file = self.file
        if length < MAP_SIZE_MIN and position + length > file.mapped_size():
            return memoryview(file.read(position, length))
        return file.view(position, length)

    def next_offset(self) -> int:
        """One past the last offset in the segment, found by its last batches."""
        next_offset = self.base_offset
        for place in self.places(self.offset_index.last_position):
            next_offset = place.last_offset + 1
        return next_offset

    # Changing -----------------------------------------------------------------------

    def load(self) -> None:
        """Check the indexes found on disk; CorruptIndex when they must be rebuilt."""
        if not self.offset_index.file_exists or not self.time_index.file_exists:
            raise CorruptIndex(f"{self.dir}: segment {self.base_offset} lacks an index file")
        self.offset_index.load()
        self.time_index.load()
        self.txn_index.check()
        if self.offset_index.last_position and self.offset_index.last_position >= self.size:
            raise CorruptIndex(f"{self.offset_index.path}: points beyond the segment's end")
        self._max_timestamp = self.time_index.last_timestamp
        self.max_timestamp_offset = self.time_index.last_offset
        self.offset_index.close()
        self.time_index.close()

    def restore(self, facts: SegmentFacts) -> None:
        """In place of `load`, if a clean stop has recorded what it would find."""
        self.offset_index.restore(facts.offset_entry)
        self.time_index.restore(facts.time_entry)
        self._max_timestamp = facts.max_timestamp
        self.max_timestamp_offset = facts.max_timestamp_offset

    def reset_indexes(self) -> None:
        self.unsynced_indexes = True
        self.offset_index.reset()
        self.time_index.reset()
        self.txn_index.reset()
        self._max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = self.base_offset
        self._first_timestamp = None
        self._bytes_since_entry = 0
        self._recent = {}

    def index_batch(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        """Index a batch that is already in the file (recovery)."""
        if self._bytes_since_entry > self.index_interval_bytes:
            self._add_index_entry(position, last_offset, max_timestamp)
            self._bytes_since_entry = 0
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        self._bytes_since_entry += size

    def cut(self, size: int) -> None:
        """Drop the bytes from `size` on; the caller has seen to the indexes."""
        self.file.truncate(size)
        self.size = size
        self._recent = {}

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Drop the batches that end at or above `offset`."""
        place = self.locate(offset)
        self.unsynced_indexes = True
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.txn_index.truncate_to(offset)
        if place is not None:
            self.cut(place.position)
        if self.size == 0:
            self.created_ms = now_ms
            self._first_timestamp = None
        self._bytes_since_entry = 0
        self.load_end()

    def load_end(self) -> int:
        """Take the maximum timestamp from the time index and the batches after it; one past the
        last offset."""
        self._max_timestamp = self.time_index.last_timestamp
        self.max_timestamp_offset = self.time_index.last_offset
        next_offset = self.base_offset
        timed = self.offset_index.lookup(self.time_index.last_offset)[1]
        for place in self.places(min(timed, self.offset_index.last_position)):
            next_offset = place.last_offset + 1
            if place.max_timestamp > self._max_timestamp:
                self._max_timestamp = place.max_timestamp
                self.max_timestamp_offset = place.last_offset
        return next_offset

    def resize_indexes(self, size_max: int) -> None:
        self.offset_index.resize(size_max)
        self.time_index.resize(size_max)

    def paths(self) -> list[str]:
        """The files that exist for this segment."""
        return [self.file.path, *(index.path for index in self._indexes() if index.file_exists)]

    def _indexes(self) -> tuple[OffsetIndex, TimeIndex, TransactionIndex]:
        return self.offset_index, self.time_index, self.txn_index

    def change_suffix(self, suffix: str) -> None:
        """Rename the files from one suffix to another (`.cleaned`, `.swap`, `.deleted`)."""
        former, self.suffix = self.suffix, suffix
        self._move(lambda path: path.removesuffix(former) + suffix, rename=self.paths())

    def moved_to(self, directory: str) -> None:
        """The partition's directory has been renamed, and our files with it."""
        self.dir = directory
        self._move(lambda path: f"{directory}/{path.rpartition('/')[2]}", rename=())

    def _move(self, target: Callable[[str], str], *, rename: Iterable[str]) -> None:
        """Go on under other names; files that are yet to be made get theirs as well."""
        self.file.close()
        for path in rename:
            self._disk.rename(path, target(path))
        self.file = self._disk.open(target(self.file.path), size=self.size)
        for index in self._indexes():
            index.moved(target(index.path))

    def begin_sync(self) -> list[Callable[[], None]]:
        """What a thread must call to make this segment durable."""
        return [self.file.begin_sync(), *self._index_syncs()]

    def _index_syncs(self) -> list[Callable[[], None]]:
        self.unsynced_indexes = False
        return [index.begin_sync() for index in self._indexes() if index.file_exists]

    def close(self, *, sync: bool = True) -> None:
        """Close the files as a clean stop leaves them: indexes complete, trimmed and durable.

        Without `sync` the caller makes them durable.
        """
        self.complete_indexes()
        if sync and self.unsynced_indexes:
            for sync_file in self._index_syncs():
                sync_file()
        self.release()

    def complete_indexes(self) -> None:
        """Bring the indexes to the end of the segment, and cut what follows their last entries."""
        entries = self.time_index.entry_count
        if self.size:
            self.time_index.maybe_append(
                self._max_timestamp, self.max_timestamp_offset, even_if_full=True
            )
        if self.time_index.entry_count != entries:
            self.unsynced_indexes = True
        if self.offset_index.file_exists:
            self.offset_index.trim()
        if self.time_index.file_exists:
            self.time_index.trim()

    def release(self) -> None:
        """Let go of descriptors and mappings without touching the files."""
        self.file.close()
        self.offset_index.close()
        self.time_index.close()
        self._recent = {}


def create_segment(
    disk: Disk,
    directory: str,
    base_offset: int,
    *,
    index_size_max: int,
    index_interval_bytes: int,
    created_ms: int,
    jitter_ms: int = 0,
    suffix: str = "",
) -> Segment:
    """Make the files of an empty segment, over whatever has their names."""
    path = f"{directory}/{offset_prefix(base_offset)}{LOG_SUFFIX}{suffix}"
    file = disk.open(path, create=True)
    if file.size:
        file.truncate(0)
    segment = Segment(
        disk,
        directory,
        base_offset,
        file=file,
        index_size_max=index_size_max,
        index_interval_bytes=index_interval_bytes,
        created_ms=created_ms,
        jitter_ms=jitter_ms,
        suffix=suffix,
    )
    segment.offset_index.create()
    segment.time_index.create()
    disk.remove(segment.txn_index.path, missing_ok=True)
    segment.unsynced_indexes = True
    return segment
