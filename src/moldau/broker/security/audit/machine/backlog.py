"""Audit events that wait to be written to the topic.

Invariants: they use a bounded amount of memory; they are written in the order in which they came;
how many were dropped for lack of room is counted, and reported with the next batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Backlog", "Batch"]


class Batch(NamedTuple):
    """What is written next. It stays the same until it is written or given up."""

    lines: tuple[bytes, ...]
    #: Events that were dropped and have not been reported.
    dropped: int


class Backlog:
    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._lines)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to write, not even that events were dropped."""
        return not self._lines and not self._dropped

    def add(self, lines: Sequence[str]) -> int:
        """How many were dropped: the newest ones, since an attack begins with its first event."""
        dropped = 0
        for line in lines:
            data = line.rstrip("\n").encode()
            if self._bytes + len(data) > self._bytes_max:
                dropped += 1
                continue
            self._bytes += len(data)
            self._lines.append(data)
        self._dropped += dropped
        return dropped

    def next_batch(self, bytes_max: int) -> Batch:
        """As many of the first events as fit, and one at least."""
        taken: list[bytes] = []
        size = 0
        for line in self._lines:
            size += len(line)
            if taken and size > bytes_max:
                break
            taken.append(line)
        return Batch(tuple(taken), self._dropped)

    def written(self, batch: Batch) -> None:
        self._dropped -= batch.dropped
        self._remove(batch)

    def give_up(self, batch: Batch) -> None:
        """It can never be written."""
        self._remove(batch)
        self._dropped += len(batch.lines)

    def _remove(self, batch: Batch) -> None:
        for line in batch.lines:
            self._lines.popleft()
            self._bytes -= len(line)
