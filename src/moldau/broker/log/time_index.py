"""The map from timestamps to offsets beside each segment (`.timeindex`).

Entries are 12 bytes: int64 timestamp, int32 offset relative to the segment's base. An
entry (T, offset) says: no batch up to `offset` has a timestamp above T. What always
holds: timestamps ascend strictly and offsets do not descend; an append that would break
that is left out, which only makes later scans start earlier.
"""

from __future__ import annotations

from struct import Struct

from moldau.broker.log.disk import Disk, File
from moldau.broker.log.offset_index import CorruptIndex

_ENTRY = Struct(">qi")
_TIMESTAMP = Struct(">q")
ENTRY_SIZE = 12
NO_TIMESTAMP = -1


class TimeIndex:
    __slots__ = (
        "_disk",
        "_entries_max",
        "_file",
        "_file_size",
        "base_offset",
        "entry_count",
        "last_offset",
        "last_timestamp",
        "path",
    )

    def __init__(
        self, disk: Disk, path: str, base_offset: int, *, size_max: int, file_size: int = -1
    ) -> None:
        self._disk = disk
        self.path = path
        self.base_offset = base_offset
        self._entries_max = size_max // ENTRY_SIZE
        self._file: File | None = None
        self._file_size = file_size
        self.entry_count = max(file_size, 0) // ENTRY_SIZE
        self.last_timestamp = NO_TIMESTAMP
        self.last_offset = base_offset

    def create(self) -> None:
        file = self._disk.open(self.path, create=True)
        if file.size != 0:
            file.truncate(0)
        file.truncate(self._entries_max * ENTRY_SIZE)
        self._file_size = file.size
        self._forget()
        file.close()

    def _forget(self) -> None:
        self.entry_count = 0
        self.last_timestamp = NO_TIMESTAMP
        self.last_offset = self.base_offset

    def load(self) -> None:
        """Check the file and find where its entries end; CorruptIndex when it is damaged."""
        if self._file_size % ENTRY_SIZE:
            raise CorruptIndex(f"{self.path}: size {self._file_size} is no multiple of 12")
        count = self._file_size // ENTRY_SIZE
        if count == 0:
            return
        last = self._handle().read((count - 1) * ENTRY_SIZE, ENTRY_SIZE)
        if last == bytes(ENTRY_SIZE):
            count = _count_real(self._handle().view(0, count * ENTRY_SIZE), count)
            if count == 0:
                self._forget()
                return
            last = self._handle().read((count - 1) * ENTRY_SIZE, ENTRY_SIZE)
        timestamp, relative = _ENTRY.unpack(last)
        if timestamp < 0 or relative < 0:
            raise CorruptIndex(f"{self.path}: last of {count} entries is ({timestamp}, {relative})")
        self.entry_count = count
        self.last_timestamp = timestamp
        self.last_offset = self.base_offset + relative

    @property
    def is_full(self) -> bool:
        # One place is kept for the entry written when the segment is rolled.
        return self.entry_count >= self._entries_max - 1

    def maybe_append(self, timestamp: int, offset: int, *, even_if_full: bool = False) -> None:
        if timestamp <= self.last_timestamp or offset < self.last_offset:
            return
        if self.is_full and not even_if_full:
            return
        file = self._file or self._handle()
        if self._file_size < self._entries_max * ENTRY_SIZE and not even_if_full:
            file.truncate(self.entry_count * ENTRY_SIZE)
            file.truncate(self._entries_max * ENTRY_SIZE)
            self._file_size = file.size
        file.write(_ENTRY.pack(timestamp, offset - self.base_offset), self.entry_count * ENTRY_SIZE)
        self._file_size = max(self._file_size, file.size)
        self.entry_count += 1
        self.last_timestamp = timestamp
        self.last_offset = offset

    def lookup(self, timestamp: int) -> tuple[int, int]:
        """The entry with the greatest timestamp <= `timestamp`; else (-1, base offset)."""
        count = self.entry_count
        if count == 0:
            return NO_TIMESTAMP, self.base_offset
        view = self._handle().view(0, count * ENTRY_SIZE)
        low, high = 0, count
        while low < high:
            middle = (low + high) >> 1
            if _TIMESTAMP.unpack_from(view, middle * ENTRY_SIZE)[0] <= timestamp:
                low = middle + 1
            else:
                high = middle
        if low == 0:
            return NO_TIMESTAMP, self.base_offset
        found, relative = _ENTRY.unpack_from(view, (low - 1) * ENTRY_SIZE)
        return found, self.base_offset + relative

    def truncate_to(self, offset: int) -> None:
        """Drop entries whose offset is at or above `offset`."""
        if self.entry_count == 0:
            return
        view = self._handle().view(0, self.entry_count * ENTRY_SIZE)
        count = self.entry_count
        while count and self.base_offset + _relative(view, count - 1) >= offset:
            count -= 1
        self._set_count(view, count)
        view.release()
        self._cut()

    def reset(self) -> None:
        if self._file_size < 0:
            self.create()
            return
        self._forget()
        self._cut()

    def resize(self, size_max: int) -> None:
        self._entries_max = max(size_max // ENTRY_SIZE, self.entry_count)

    def trim(self) -> None:
        if self._file_size != self.entry_count * ENTRY_SIZE:
            self._cut()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def moved(self, path: str) -> None:
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

    def _set_count(self, view: memoryview, count: int) -> None:
        self._forget()
        self.entry_count = count
        if count:
            timestamp, relative = _ENTRY.unpack_from(view, (count - 1) * ENTRY_SIZE)
            self.last_timestamp = timestamp
            self.last_offset = self.base_offset + relative

    def _cut(self) -> None:
        file = self._handle()
        file.truncate(self.entry_count * ENTRY_SIZE)
        self._file_size = file.size


def _relative(view: memoryview, entry: int) -> int:
    relative: int = _ENTRY.unpack_from(view, entry * ENTRY_SIZE)[1]
    return relative


def _count_real(view: memoryview, count: int) -> int:
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if _ENTRY.unpack_from(view, middle * ENTRY_SIZE) != (0, 0):
            low = middle + 1
        else:
            high = middle
    return low
