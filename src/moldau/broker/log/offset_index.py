"""The sparse map from offsets to file positions beside each segment (`.index`).

Entries are 8 bytes: int32 offset relative to the segment's base, int32 position of the
batch. What always holds: offsets ascend strictly, and bytes beyond `entry_count` entries
are preallocation without meaning. The file of an active segment is preallocated (sparse)
so that Kafka, which maps it, finds it as it expects; it is trimmed when the segment is
rolled or closed. Nothing is opened or mapped before it is used: most partitions idle.
"""

from __future__ import annotations

from struct import Struct

from moldau.broker.log.disk import Disk, File
from moldau.invariant import invariant

_ENTRY = Struct(">ii")
_OFFSET = Struct(">i")
ENTRY_SIZE = 8


class CorruptIndex(Exception):
    """An index file cannot be trusted and must be rebuilt from its segment."""


class OffsetIndex:
    __slots__ = (
        "_disk",
        "_entries_max",
        "_file",
        "_file_size",
        "base_offset",
        "entry_count",
        "last_offset",
        "last_position",
        "path",
    )

    def __init__(
        self, disk: Disk, path: str, base_offset: int, *, size_max: int, file_size: int = -1
    ) -> None:
        """Describe the index at `path`; `file_size` is -1 when the file is yet to be made."""
        self._disk = disk
        self.path = path
        self.base_offset = base_offset
        self._entries_max = size_max // ENTRY_SIZE
        self._file: File | None = None
        self._file_size = file_size
        self.entry_count = max(file_size, 0) // ENTRY_SIZE
        self.last_offset = base_offset
        self.last_position = 0

    def create(self) -> None:
        """Make the file, empty and preallocated."""
        file = self._disk.open(self.path, create=True)
        if file.size != 0:
            file.truncate(0)
        file.truncate(self._entries_max * ENTRY_SIZE)
        self._file_size = file.size
        self._forget()
        file.close()

    def _forget(self) -> None:
        self.entry_count = 0
        self.last_offset = self.base_offset
        self.last_position = 0

    def load(self) -> None:
        """Check the file and find where its entries end; CorruptIndex when it is damaged.

        After a clean stop the file is trimmed to its entries. A file that still has its
        preallocation (Kafka was killed, but the segment is below the recovery point) ends
        at the first entry that does not ascend.
        """
        if self._file_size % ENTRY_SIZE:
            raise CorruptIndex(f"{self.path}: size {self._file_size} is no multiple of 8")
        count = self._file_size // ENTRY_SIZE
        if count == 0:
            return
        last = self._handle().read((count - 1) * ENTRY_SIZE, ENTRY_SIZE)
        if last == bytes(ENTRY_SIZE):
            count = _count_real(self._handle().view(0, count * ENTRY_SIZE), count)
            last = self._handle().read(max(count - 1, 0) * ENTRY_SIZE, ENTRY_SIZE)
        relative, position = _ENTRY.unpack(last)
        if relative < max(count - 1, 0) or position < 0:
            raise CorruptIndex(f"{self.path}: last of {count} entries is ({relative}, {position})")
        self.entry_count = count
        self.last_offset = self.base_offset + relative
        self.last_position = position

    @property
    def is_full(self) -> bool:
        return self.entry_count >= self._entries_max

    def append(self, offset: int, position: int) -> None:
        invariant(
            self.entry_count == 0 or offset > self.last_offset,
            f"{self.path}: offset {offset} after {self.last_offset}",
        )
        file = self._file or self._handle()
        if self._file_size < self._entries_max * ENTRY_SIZE:
            self._preallocate(file)
        file.write(_ENTRY.pack(offset - self.base_offset, position), self.entry_count * ENTRY_SIZE)
        self.entry_count += 1
        self.last_offset = offset
        self.last_position = position

    def lookup(self, offset: int) -> tuple[int, int]:
        """The greatest entry at or below `offset` as (offset, position); else (base, 0)."""
        count = self.entry_count
        if count == 0:
            return self.base_offset, 0
        relative = offset - self.base_offset
        view = self._handle().view(0, count * ENTRY_SIZE)
        low = _upper_bound(view, count, relative)
        if low == 0:
            return self.base_offset, 0
        found, position = _ENTRY.unpack_from(view, (low - 1) * ENTRY_SIZE)
        return self.base_offset + found, position

    def truncate_to(self, offset: int) -> None:
        """Drop entries at or above `offset`."""
        if self.entry_count == 0:
            return
        view = self._handle().view(0, self.entry_count * ENTRY_SIZE)
        count = _upper_bound(view, self.entry_count, offset - self.base_offset - 1)
        self._forget()
        if count:
            relative, self.last_position = _ENTRY.unpack_from(view, (count - 1) * ENTRY_SIZE)
            self.last_offset += relative
        view.release()
        self._cut(count)

    def reset(self) -> None:
        """Forget every entry; the file is made when it is missing."""
        if self._file_size < 0:
            self.create()
            return
        self._forget()
        self._cut(0)

    def resize(self, size_max: int) -> None:
        """A changed segment.index.bytes counts from the next append on."""
        self._entries_max = max(size_max // ENTRY_SIZE, self.entry_count)

    def trim(self) -> None:
        """Give back the preallocation: the file ends with its last entry."""
        if self._file_size != self.entry_count * ENTRY_SIZE:
            self._cut(self.entry_count)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def moved(self, path: str) -> None:
        """The file has been renamed."""
        self.close()
        self.path = path

    def file(self) -> File:
        return self._handle()

    @property
    def file_exists(self) -> bool:
        return self._file_size >= 0

    def _handle(self) -> File:
        if self._file is None:
            self._file = self._disk.open(self.path, size=self._file_size)
        return self._file

    def _cut(self, count: int) -> None:
        file = self._handle()
        file.truncate(count * ENTRY_SIZE)
        self._file_size = file.size
        self.entry_count = count

    def _preallocate(self, file: File) -> None:
        # The garbage of a former preallocation must not come back as entries.
        file.truncate(self.entry_count * ENTRY_SIZE)
        file.truncate(self._entries_max * ENTRY_SIZE)
        self._file_size = file.size


def _upper_bound(view: memoryview, count: int, relative: int) -> int:
    """How many of the first `count` entries have an offset <= `relative`."""
    unpack = _OFFSET.unpack_from
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if unpack(view, middle << 3)[0] <= relative:
            low = middle + 1
        else:
            high = middle
    return low


def _count_real(view: memoryview, count: int) -> int:
    """How many leading entries are real when zeros of the preallocation follow them."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if _ENTRY.unpack_from(view, middle * ENTRY_SIZE) != (0, 0):
            low = middle + 1
        else:
            high = middle
    return low
