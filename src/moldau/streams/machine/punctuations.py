"""Which punctuations are due, in Kafka Streams' order.

Invariants: a punctuation fires at most once per call, and its next time stays on the grid of its
interval. One that is scheduled while others fire, and is due, fires in the same call.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.streams.machine.context import ProcessorContext


class Punctuation:
    """A call that a processor has asked for."""

    __slots__ = ("callback", "cancelled", "context", "interval_ms", "next_ms")

    def __init__(
        self,
        context: ProcessorContext,
        interval_ms: int,
        next_ms: int,
        callback: Callable[[int], None],
    ) -> None:
        self.context = context
        self.interval_ms = interval_ms
        self.next_ms = next_ms
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True

    def advance(self, now_ms: int) -> None:
        """The next time after now; those that were missed are left out."""
        missed = max(0, now_ms - self.next_ms) // self.interval_ms
        self.next_ms += (missed + 1) * self.interval_ms


class PunctuationQueue:
    """Punctuations by their next time.

    Several that are due at the same time fire in the order of a binary heap, exactly as Java's
    PriorityQueue keeps it: not in the order in which they were scheduled. `heapq` moves equal
    entries differently.
    """

    def __init__(self) -> None:
        self._heap: list[Punctuation] = []

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, punctuation: Punctuation) -> None:
        heap, at = self._heap, len(self._heap)
        heap.append(punctuation)
        while at > 0:
            parent = (at - 1) // 2
            if punctuation.next_ms >= heap[parent].next_ms:
                break
            heap[at] = heap[parent]
            at = parent
        heap[at] = punctuation

    def _take(self) -> Punctuation:
        heap = self._heap
        first, last = heap[0], heap.pop()
        count, at = len(heap), 0
        if not count:
            return first
        while at < count // 2:
            child = 2 * at + 1
            if child + 1 < count and heap[child].next_ms > heap[child + 1].next_ms:
                child += 1
            if last.next_ms <= heap[child].next_ms:
                break
            heap[at] = heap[child]
            at = child
        heap[at] = last
        return first

    def fire(self, now_ms: int, call: Callable[[Punctuation, int], None]) -> bool:
        """Call all that are due; whether any was."""
        fired = False
        while self._heap and self._heap[0].next_ms <= now_ms:
            due = self._take()
            if due.cancelled:
                continue
            fired = True
            call(due, now_ms)
            if not due.cancelled:
                due.advance(now_ms)
                self.add(due)
        return fired
