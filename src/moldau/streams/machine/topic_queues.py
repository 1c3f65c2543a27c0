"""Decides which record of a test driver comes next: that with the smallest timestamp.

Among topics whose first records have the same timestamp, Kafka Streams takes the one that its heap
has on top. Results depend on it where a record is on several ways through internal topics, so this
heap moves its entries exactly as Java's PriorityQueue does.
"""

from __future__ import annotations

from collections import deque

from moldau.streams.records import Produced


class TopicQueues:
    """The records that wait, by topic."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[Produced]] = {}
        self._heap: list[deque[Produced]] = []

    def add(self, record: Produced) -> None:
        queue = self._queues.setdefault(record.topic, deque())
        queue.append(record)
        if len(queue) == 1:
            self._push(queue)

    def take(self) -> Produced | None:
        """The next record, or None if nothing waits."""
        if not self._heap:
            return None
        queue = self._heap[0]
        last = self._heap.pop()
        if self._heap:
            self._sink(last)
        record = queue.popleft()
        if queue:
            self._push(queue)
        return record

    def _push(self, queue: deque[Produced]) -> None:
        heap, place = self._heap, len(self._heap)
        heap.append(queue)
        while place and queue[0].timestamp < heap[(place - 1) // 2][0].timestamp:
            heap[place] = heap[(place - 1) // 2]
            place = (place - 1) // 2
        heap[place] = queue

    def _sink(self, queue: deque[Produced]) -> None:
        """Put a queue where the first one was, and let it find its place."""
        heap, place, count = self._heap, 0, len(self._heap)
        while (child := 2 * place + 1) < count:
            other = child + 1
            if other < count and heap[child][0].timestamp > heap[other][0].timestamp:
                child = other
            if queue[0].timestamp <= heap[child][0].timestamp:
                break
            heap[place] = heap[child]
            place = child
        heap[place] = queue
