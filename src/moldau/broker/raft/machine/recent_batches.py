"""RecentBatches: decoded batches at the end of the log that are not committed yet.

Each batch is needed when it is appended and again when it is committed; in between it stays here,
so that it is read and decoded once.

Invariants: the batches are the last ones of the log, without a gap; their size is bounded. Older
ones are read from the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from moldau.broker.raft.machine.batches import MetadataBatch

SIZE_MAX = 8 << 20


class RecentBatches:
    def __init__(self, size_max: int = SIZE_MAX) -> None:
        self._size_max = size_max
        self._batches: deque[MetadataBatch] = deque()
        self._size = 0

    def add(self, batch: MetadataBatch) -> None:
        """`batch` is now the last one of the log."""
        if self._batches and self._batches[-1].next_offset != batch.base_offset:
            self.clear()
        self._batches.append(batch)
        self._size += batch.size
        while self._size > self._size_max:
            self._size -= self._batches.popleft().size

    def truncate_to(self, end_offset: int) -> None:
        while self._batches and self._batches[-1].next_offset > end_offset:
            self._size -= self._batches.pop().size

    def forget_before(self, offset: int) -> None:
        while self._batches and self._batches[0].next_offset <= offset:
            self._size -= self._batches.popleft().size

    def clear(self) -> None:
        self._batches.clear()
        self._size = 0

    @property
    def start_offset(self) -> int | None:
        return self._batches[0].base_offset if self._batches else None

    def from_offset(self, offset: int) -> Iterator[MetadataBatch]:
        """Those that end after `offset`."""
        return (batch for batch in tuple(self._batches) if batch.next_offset > offset)
