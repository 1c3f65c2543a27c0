"""What the offset index and the time index have in common: a file of entries of one size.

Invariants: the first `entry_count` entries are real, and bytes beyond them have no meaning.
There are such bytes only in a file that Kafka preallocated and did not close; here a file ends
with its last entry, so that an idle partition's index needs no work at a stop or a recovery.
Nothing is opened or mapped before it is used: most partitions idle.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from struct import Struct
from typing import ClassVar

from moldau.broker.log.disk import Disk, File


class CorruptIndex(Exception):
    """An index file cannot be trusted and must be rebuilt from its segment."""


class IndexFile(ABC):
    """A subclass defines the entry; entries are pairs of numbers."""

    __slots__ = (
        "_disk",
        "_entries_max",
        "_file",
        "_file_size",
        "base_offset",
        "entry_count",
        "last_offset",
        "path",
    )

    ENTRY: ClassVar[Struct]
    FIRST: ClassVar[Struct]
    """The entry, and its first number alone, by which entries ascend."""

    def __init__(
        self, disk: Disk, path: str, base_offset: int, *, size_max: int, file_size: int = -1
    ) -> None:
        """Describe the index at `path`; `file_size` is -1 if the file does not exist yet."""
        self._disk = disk
        self.path = path
        self.base_offset = base_offset
        self._entries_max = size_max // self.ENTRY.size
        self._file: File | None = None
        self._file_size = file_size
        self.entry_count = max(file_size, 0) // self.ENTRY.size
        self.last_offset = base_offset
        self._take_last(None)

    @abstractmethod
    def _take_last(self, entry: tuple[int, int] | None) -> None:
        """Remember the last entry, None where there is none."""

    @abstractmethod
    def _is_sound(self, entry: tuple[int, int], count: int) -> bool:
        """Whether this can be the last of `count` entries."""

    @property
    @abstractmethod
    def last_entry(self) -> tuple[int, int] | None:
        """As it is in the file; None where there is none."""

    def restore(self, last_entry: tuple[int, int] | None) -> None:
        """In place of `load`, if the last entry of a file without preallocation is known."""
        self._take_last(last_entry)

    def create(self) -> None:
        """Create the file, empty."""
        file = self._disk.open(self.path, create=True)
        if file.size:
            file.truncate(0)
        file.close()
        self._file_size = 0
        self.entry_count = 0
        self._take_last(None)

    def load(self) -> None:
        """Check the file and find where its entries end; CorruptIndex when it is damaged.

        After a clean stop the file is trimmed to its entries. A file that still has its
        preallocation (Kafka was killed, but the segment is below the recovery point) ends
        where its zeros begin.
        """
        size = self.ENTRY.size
        if self._file_size % size:
            raise CorruptIndex(f"{self.path}: size {self._file_size} is no multiple of {size}")
        count = self._file_size // size
        last = self._handle().read((count - 1) * size, size) if count else b""
        if count and last == bytes(size):
            count = self._count_real(count)
            last = self._handle().read((count - 1) * size, size) if count else b""
        entry = None
        if count:
            entry = self.ENTRY.unpack(last)
            if not self._is_sound(entry, count):
                raise CorruptIndex(f"{self.path}: last of {count} entries is {entry}")
        self.entry_count = count
        self._take_last(entry)

    def _count_real(self, count: int) -> int:
        """How many leading entries are real when zeros of the preallocation follow them.

        Looked for from the front, as most indexes are short, and by plain reads: to map a
        preallocated file costs milliseconds.
        """
        read, size = self._handle().read, self.ENTRY.size
        empty = bytes(size)
        low, high = 0, 1
        while high < count and read((high - 1) * size, size) != empty:
            low, high = high, 2 * high
        high = min(high, count)
        while low < high:
            middle = (low + high) >> 1
            if read(middle * size, size) != empty:
                low = middle + 1
            else:
                high = middle
        return low

    def _entry(self, view: memoryview, index: int) -> tuple[int, int]:
        entry: tuple[int, int] = self.ENTRY.unpack_from(view, index * self.ENTRY.size)
        return entry

    def _view(self) -> memoryview:
        """All real entries."""
        return self._handle().view(0, self.entry_count * self.ENTRY.size)

    def _upper_bound(self, view: memoryview, first: int) -> int:
        """How many entries have a first number <= `first`."""
        unpack, size = self.FIRST.unpack_from, self.ENTRY.size
        low, high = 0, self.entry_count
        while low < high:
            middle = (low + high) >> 1
            if unpack(view, middle * size)[0] <= first:
                low = middle + 1
            else:
                high = middle
        return low

    def _add(self, entry: tuple[int, int]) -> None:
        file = self._file or self._handle()
        start = self.entry_count * self.ENTRY.size
        file.write(self.ENTRY.pack(*entry), start)
        if file.size > start + self.ENTRY.size:
            # What was beyond the entries must not come back as entries.
            file.truncate(start + self.ENTRY.size)
        self._file_size = file.size
        self.entry_count += 1
        self._take_last(entry)

    def _keep(self, view: memoryview, count: int) -> None:
        """Drop all but the first `count` entries, of which `view` is a view."""
        entry = self._entry(view, count - 1) if count else None
        view.release()
        self._take_last(entry)
        self._cut(count)

    def reset(self) -> None:
        """Remove every entry; the file is created if it is missing.

        The file is cut with the next entry or when the index is closed. Until then it must not be
        trusted, and no start does after a crash: only a recovery resets an index.
        """
        if self._file_size < 0:
            self.create()
            return
        self._take_last(None)
        self.entry_count = 0

    def begin_again(self, path: str) -> None:
        """Leave the file; `reset` creates another one at `path`."""
        self.close()
        self.path = path
        self._file_size = -1
        self.entry_count = 0
        self._take_last(None)

    def resize(self, size_max: int) -> None:
        """A changed segment.index.bytes counts from the next append on."""
        self._entries_max = max(size_max // self.ENTRY.size, self.entry_count)

    def trim(self) -> None:
        """Cut what follows the last entry."""
        if self._file_size != self.entry_count * self.ENTRY.size:
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

    def begin_sync(self) -> Callable[[], None]:
        """What a thread must call to make the file durable."""
        sync = self._handle().begin_sync()
        self.close()
        return sync

    @property
    def file_size(self) -> int:
        """-1 if the file does not exist."""
        return self._file_size

    @property
    def file_exists(self) -> bool:
        return self._file_size >= 0

    def _handle(self) -> File:
        if self._file is None:
            self._file = self._disk.open(self.path, size=self._file_size)
        return self._file

    def _cut(self, count: int) -> None:
        file = self._handle()
        file.truncate(count * self.ENTRY.size)
        self._file_size = file.size
        self.entry_count = count
