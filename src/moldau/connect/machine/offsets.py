"""Which source offsets may be committed.

Records of one source partition are acknowledged by Kafka in any order; its offset advances to the
last record before the first that is not acknowledged yet. Partitions do not wait for one another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from moldau.connect.api.records import SourcePartition

__all__ = ["Acknowledgement", "Submitted", "SubmittedRecords"]


class Acknowledgement(Protocol):
    """What a producer returns for a record."""

    def done(self) -> bool: ...


#: A record that was sent: its acknowledgement (None: there is none to wait for), offset, record.
Submitted = tuple[Acknowledgement | None, Mapping[str, Any] | None, Any]


class SubmittedRecords:
    """Records in the order in which they were sent, by source partition."""

    def __init__(self) -> None:
        self._queues: dict[SourcePartition, deque[Submitted]] = {}
        self._without_partition: deque[Submitted] = deque()
        self._committable: dict[SourcePartition, Mapping[str, Any]] = {}
        self._last: tuple[Mapping[str, Any] | None, deque[Submitted]] | None = None

    def add(
        self,
        partition: Mapping[str, Any] | None,
        offset: Mapping[str, Any] | None,
        acknowledgement: Acknowledgement | None,
        record: Any,
    ) -> None:
        """A record was sent, or dropped if there is no acknowledgement to wait for."""
        last = self._last
        # Tasks mostly use one dict for all records of a partition: then it is not hashed again.
        if last is None or last[0] is not partition or partition is None:
            last = self._last = (partition, self._queue(partition))
        last[1].append((acknowledgement, offset, record))

    def _queue(self, partition: Mapping[str, Any] | None) -> deque[Submitted]:
        if partition is None:
            return self._without_partition
        key = SourcePartition(partition)
        found = self._queues.get(key)
        if found is None:
            found = self._queues[key] = deque()
        return found

    def drain(self, on_done: Callable[[Submitted], None]) -> None:
        """Take out what is acknowledged; `on_done` is called for each and may raise."""
        self._drain(self._without_partition, None, on_done)
        empty = []
        for partition, queue in self._queues.items():
            self._drain(queue, partition, on_done)
            if not queue:
                empty.append(partition)
        for partition in empty:
            del self._queues[partition]
        if empty:
            self._last = None

    def _drain(
        self,
        queue: deque[Submitted],
        partition: SourcePartition | None,
        on_done: Callable[[Submitted], None],
    ) -> None:
        offset = None
        while queue:
            first = queue[0]
            if first[0] is not None and not first[0].done():
                break
            on_done(first)
            queue.popleft()
            if first[1] is not None:
                offset = first[1]
        if partition is not None and offset is not None:
            self._committable[partition] = offset

    def take_committable(self) -> dict[SourcePartition, Mapping[str, Any]]:
        """The offsets that advanced since the last call."""
        found, self._committable = self._committable, {}
        return found

    def put_back(self, offsets: Mapping[SourcePartition, Mapping[str, Any]]) -> None:
        """After a commit that failed; what advanced meanwhile counts."""
        self._committable = {**offsets, **self._committable}

    @property
    def pending(self) -> int:
        return len(self._without_partition) + sum(map(len, self._queues.values()))

    def waiting(self) -> Iterator[Submitted]:
        """Everything that is not acknowledged yet."""
        yield from self._without_partition
        for queue in self._queues.values():
            yield from queue
