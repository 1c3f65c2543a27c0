"""The aborted transactions of a segment (`.txnindex`), created with the first of them.

Entries are 34 bytes: int16 version 0, int64 producer id, int64 first offset, int64 last
offset (the abort marker's), int64 last stable offset when the marker was written. Invariants:
entries are in the order of their last offsets, and the file exists only if there is at least one.
Aborts are rare, so entries are read from the file when they are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct
from typing import NamedTuple

from moldau.broker.log.disk import Disk
from moldau.broker.log.offset_index import CorruptIndex

_ENTRY = Struct(">hqqqq")
ENTRY_SIZE = 34
VERSION = 0


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    __slots__ = ("_disk", "base_offset", "file_size", "path")

    def __init__(self, disk: Disk, path: str, base_offset: int, *, file_size: int = 0) -> None:
        self._disk = disk
        self.path = path
        self.base_offset = base_offset
        self.file_size = file_size

    def check(self) -> None:
        """CorruptIndex unless every entry belongs to this segment and they ascend."""
        if self.file_size % ENTRY_SIZE:
            raise CorruptIndex(f"{self.path}: size {self.file_size} is no multiple of 34")
        previous = -1
        for entry in self.entries():
            if entry.last_offset < self.base_offset or entry.last_offset <= previous:
                raise CorruptIndex(f"{self.path}: {entry} is out of place")
            previous = entry.last_offset

    def append(self, entry: AbortedTransaction) -> None:
        file = self._disk.open(self.path, create=True)
        try:
            file.write(_ENTRY.pack(VERSION, *entry), self.file_size)
            self.file_size += ENTRY_SIZE
        finally:
            file.close()

    def entries(self) -> Iterator[AbortedTransaction]:
        if self.file_size == 0:
            return
        data = self._disk.read_bytes(self.path)
        # Another process may read it while it grows: half an entry is not one yet.
        whole = memoryview(data)[: len(data) - len(data) % ENTRY_SIZE]
        for version, *fields in _ENTRY.iter_unpack(whole):
            if version > VERSION:
                raise CorruptIndex(f"{self.path}: entry version {version} is not known")
            yield AbortedTransaction(*fields)

    def collect(
        self, fetch_offset: int, upper_offset: int, found: list[AbortedTransaction]
    ) -> bool:
        """Add what overlaps [fetch_offset, upper_offset); True when later segments cannot.

        An entry whose last stable offset is at or beyond the upper bound was written when
        nothing below the bound was undecided any more: the search is complete with it.
        """
        for entry in self.entries():
            if entry.last_offset >= fetch_offset and entry.first_offset < upper_offset:
                found.append(entry)
            if entry.last_stable_offset >= upper_offset:
                return True
        return False

    def truncate_to(self, offset: int) -> None:
        """Drop entries whose marker is at or above `offset`."""
        if self.file_size == 0:
            return
        kept = sum(1 for entry in self.entries() if entry.last_offset < offset)
        self._cut(kept * ENTRY_SIZE)

    def reset(self) -> None:
        self._cut(0)

    @property
    def file_exists(self) -> bool:
        # It is made with the first entry and removed with the last.
        return self.file_size > 0

    def begin_sync(self) -> Callable[[], None]:
        """What a thread must call to make the file durable."""
        file = self._disk.open(self.path, size=self.file_size)
        sync = file.begin_sync()
        file.close()
        return sync

    def moved(self, path: str) -> None:
        self.path = path

    def _cut(self, size: int) -> None:
        if size == 0 and self.file_size:
            self._disk.remove(self.path, missing_ok=True)
        elif size != self.file_size:
            file = self._disk.open(self.path, size=self.file_size)
            file.truncate(size)
            file.close()
        self.file_size = size
