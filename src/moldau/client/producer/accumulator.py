"""Records wait here until they are sent: a queue of batches for each partition.

Decided here: when a batch is ready (full, lingered for `linger.ms`, wanted by a flush, a commit or
somebody who waits for memory), what goes into the next request to a node, and when a batch has
waited too long. The time is passed in. `machine/memory_pool.py` has the memory,
`machine/topic_table.py` the topics and their leaders.

Invariants: the batches that are not done yet hold at most `buffer.memory` together. A batch that is
sent again goes before those with higher sequence numbers. Senders and the loop share all this:
`lock` is held for as long as queues or memory are looked at, and never while anything is waited
for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from moldau.client._batch_builder import BatchBuilder
from moldau.client.producer._batch import Outcome, ProducerBatch
from moldau.client.producer.machine.memory_pool import MemoryPool
from moldau.client.producer.machine.queues import (
    NEVER_MS,
    AccumulatorLimits,
    Drained,
    Flush,
    Gate,
    PartitionQueue,
)
from moldau.client.producer.machine.topic_table import TopicTable
from moldau.peers.machine.backoff import ExponentialBackoff, RandomSource
from moldau.times import ElapsedMs

__all__ = ["Accumulator"]

_RECORD_OVERHEAD_MAX = 21 + 61


class Accumulator:
    """See the module."""

    def __init__(
        self,
        limits: AccumulatorLimits,
        *,
        backoff: ExponentialBackoff,
        random: RandomSource,
        gate: Gate | None = None,
    ) -> None:
        self.limits = limits
        self.lock = threading.Lock()
        self.table = TopicTable(limits, random)
        self.topics = self.table.by_name
        self.memory = MemoryPool(limits.buffer_memory)
        self.incomplete: set[ProducerBatch] = set()
        self.closed = False
        self.gate = gate
        self._backoff = backoff
        self._in_flight: dict[ProducerBatch, None] = {}
        self._in_flight_expiry_ms = NEVER_MS
        # Queues with batches, the one that was drained longest ago first.
        self._active: dict[PartitionQueue, None] = {}
        # Buffers of batches that are done, for new ones.
        self._spares: list[bytearray] = []
        self._flushes: list[Flush] = []

    # Memory and batches. All under the lock.

    def record_size_max(self, key: bytes | None, value: bytes | None, headers: Any) -> int:
        """No more than this takes a batch with this record alone, uncompressed."""
        size = _RECORD_OVERHEAD_MAX + len(key or b"") + len(value or b"")
        for name, content in headers or ():
            size += 10 + len(name.encode()) + len(content or b"")
        return size

    def batch_memory(self, record_size: int) -> int:
        """What a new batch takes of the memory that begins with a record of this size."""
        return max(min(self.limits.batch_size, self.limits.buffer_memory), record_size)

    def open_batch(
        self, queue: PartitionQueue, memory_size: int, now_ms: ElapsedMs
    ) -> ProducerBatch:
        """A new batch at the end of a queue, which has no open one."""
        limits = self.limits
        topic = queue.topic_queues
        builder = BatchBuilder(
            memory_size,
            compression=limits.compression,
            compression_level=limits.compression_level,
            compression_ratio=1.0 if topic is None else topic.ratio,
            spares=self._spares,
        )
        batch = queue.open = self.add(queue, builder, memory_size, now_ms)
        return batch

    def add(
        self, queue: PartitionQueue, builder: Any, memory_size: int, now_ms: ElapsedMs
    ) -> ProducerBatch:
        """A batch at the end of a queue; the one that was open gets no more records."""
        if queue.open is not None:
            queue.open.builder.close()
            queue.open = None
        batch = ProducerBatch(queue, builder, now_ms, memory_size)
        queue.batches.append(batch)
        self._active[queue] = None
        self.incomplete.add(batch)
        if queue.topic_queues is not None:
            queue.topic_queues.used_ms = now_ms
        return batch

    def discard(self, batch: ProducerBatch) -> None:
        """A batch is done, or was split: it holds no memory any more."""
        size, batch.memory_size = batch.memory_size, 0
        self.incomplete.discard(batch)
        self._in_flight.pop(batch, None)
        if size:
            self.memory.give_back(size)
        for flush in [each for each in self._flushes if batch in each.pending]:
            flush.pending.discard(batch)
            if not flush.pending:
                self.end_flush(flush)
                flush.wake()

    # Flushing.

    def begin_flush(self, wake: Callable[[], Any]) -> Flush | None:
        """Make everything ready; None if there is nothing to wait for."""
        if not self.incomplete:
            return None
        flush = Flush(set(self.incomplete), wake)
        self._flushes.append(flush)
        return flush

    def end_flush(self, flush: Flush) -> None:
        if flush in self._flushes:
            self._flushes.remove(flush)

    # Sending.

    def drain(
        self, now_ms: ElapsedMs, usable: Callable[[int], bool], *, mute: bool = False
    ) -> Drained:
        """Take out what is to be sent now; at most one batch of a partition, as in any request."""
        ready, next_check_ms, leaderless = self._ready_nodes(now_ms)
        batches: dict[int, list[ProducerBatch]] = {}
        unavailable: set[int] = set()
        for node_id in ready:
            if usable(node_id):
                self.table.note_latency(node_id, now_ms, drained=True)
                batches[node_id] = []
            else:
                self.table.note_latency(node_id, now_ms, drained=False)
                unavailable.add(node_id)
        sizes = dict.fromkeys(batches, 0)
        for queue in list(self._active) if batches else ():
            batch = self._next_of(queue, now_ms, sizes, batches)
            if batch is None:
                continue
            self._take_out(queue, batch, now_ms)
            queue.muted = mute
            batches[queue.leader_id].append(batch)
        return Drained(
            {node_id: taken for node_id, taken in batches.items() if taken},
            unavailable,
            next_check_ms,
            leaderless,
        )

    def _ready_nodes(self, now_ms: ElapsedMs) -> tuple[set[int], int, set[str]]:
        ready: set[int] = set()
        leaderless: set[str] = set()
        next_check_ms = NEVER_MS
        gate = self.gate
        hurry = (
            self.closed
            or bool(self.memory.waiters)
            or bool(self._flushes)
            or (gate is not None and gate.is_completing)
        )
        for queue in self._active:
            head = queue.batches[0]
            next_check_ms = min(next_check_ms, head.created_ms + self.limits.delivery_timeout_ms)
            if queue.leader_id < 0:
                leaderless.add(queue.topic)
                continue
            if queue.muted:
                continue
            due_ms = self._due_ms(queue, head, hurry)
            if due_ms <= now_ms:
                ready.add(queue.leader_id)
            else:
                next_check_ms = min(next_check_ms, due_ms)
        return ready, next_check_ms, leaderless

    def _due_ms(self, queue: PartitionQueue, head: ProducerBatch, hurry: bool) -> int:
        backing_off_ms = self._backing_off_until_ms(queue, head)
        if backing_off_ms:
            return backing_off_ms
        if hurry or head.attempts or len(queue.batches) > 1 or self._is_full(head):
            return 0
        return head.created_ms + self.limits.linger_ms

    def _is_full(self, batch: ProducerBatch) -> bool:
        builder = batch.builder
        return bool(builder.closed or builder.size >= batch.memory_size)

    def _backing_off_until_ms(self, queue: PartitionQueue, head: ProducerBatch) -> int:
        """Until when a batch that failed waits; 0 if it does not. Another leader than the one
        that it failed at is asked at once (KIP-951)."""
        if head.attempts == 0 or queue.leader_epoch > head.leader_epoch:
            return 0
        return head.last_attempt_ms + self._backoff.delay_ms(head.attempts, _Middle())

    def _next_of(
        self,
        queue: PartitionQueue,
        now_ms: ElapsedMs,
        sizes: dict[int, int],
        batches: Mapping[int, list[ProducerBatch]],
    ) -> ProducerBatch | None:
        taken = batches.get(queue.leader_id)
        if taken is None or queue.muted:
            return None
        head = queue.batches[0]
        if self._backing_off_until_ms(queue, head) > now_ms:
            return None
        size = sizes[queue.leader_id] + head.builder.size
        if taken and size > self.limits.max_request_size:
            return None
        if self.gate is not None and not self.gate.may_drain(queue, head):
            return None
        sizes[queue.leader_id] = size
        return head

    def _take_out(self, queue: PartitionQueue, batch: ProducerBatch, now_ms: ElapsedMs) -> None:
        queue.batches.popleft()
        if queue.open is batch:
            queue.open = None
        batch.builder.close()
        batch.record_count = batch.builder.record_count
        batch.drained_ms = now_ms
        batch.leader_epoch = queue.leader_epoch
        # From now on a complaint is about the numbers that it has.
        batch.sequence_reset = False
        # To the end: the next request begins with the other partitions.
        del self._active[queue]
        if queue.batches:
            self._active[queue] = None
        if batch.attempts == 0 and not batch.is_part:
            queue.untold.append(batch)
        if self.gate is not None:
            self.gate.on_drained(queue, batch)
        self._in_flight[batch] = None
        expiry_ms = batch.created_ms + self.limits.delivery_timeout_ms
        self._in_flight_expiry_ms = min(self._in_flight_expiry_ms, expiry_ms)

    def unmute(self, queue: PartitionQueue) -> None:
        queue.muted = False

    def reenqueue(self, batch: ProducerBatch, now_ms: ElapsedMs) -> None:
        """A batch failed and is to be sent again."""
        batch.attempts += 1
        batch.last_attempt_ms = now_ms
        batch.in_retry = True
        self._in_flight.pop(batch, None)
        self._put_back(batch.queue, batch)

    def _put_back(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        self._active[queue] = None
        before: list[ProducerBatch] = []
        if batch.has_sequence:
            while queue.batches:
                head = queue.batches[0]
                if not head.has_sequence or head.base_sequence >= batch.base_sequence:
                    break
                before.append(queue.batches.popleft())
        queue.batches.appendleft(batch)
        queue.batches.extendleft(reversed(before))

    def split(self, batch: ProducerBatch, now_ms: ElapsedMs) -> list[ProducerBatch]:
        """Put smaller batches in the place of one that the broker found too large."""
        queue = batch.queue
        self.table.note_ratio(queue, 1.0)
        parts: list[tuple[int, ProducerBatch]] = []
        first = 0
        limit = batch.builder.size // 2 if batch.is_part else self.limits.batch_size
        for builder in batch.builder.split(limit):
            part = ProducerBatch(queue, builder, batch.created_ms, 0)
            part.is_part = True
            part.record_count = builder.record_count
            part.last_attempt_ms = now_ms
            parts.append((first, part))
            first += builder.record_count
        made = [part for _, part in parts]
        # The memory stays taken until the last of them is done.
        made[-1].memory_size, batch.memory_size = batch.memory_size, 0
        self.incomplete.update(made)
        for flush in self._flushes:
            if batch in flush.pending:
                flush.pending.update(made)
        if batch.has_sequence:
            queue.sequences.replace(batch, made)
        for part in reversed(made):
            self._put_back(queue, part)
        place = queue.untold.index(batch)
        del queue.untold[place]
        for part in reversed(made):
            queue.untold.insert(place, part)
        batch.split(parts)
        self.discard(batch)
        return made

    def settle(self, batch: ProducerBatch, outcome: Outcome) -> list[ProducerBatch]:
        """It is known how a batch ended. Returns the batches that may be completed now: within a
        partition in the order of sending, even if a later one was answered first."""
        batch.outcome = outcome
        self._in_flight.pop(batch, None)
        untold = batch.queue.untold
        if batch not in untold:
            # It was never taken out.
            untold.append(batch)
        ready = []
        while untold and untold[0].outcome is not None:
            ready.append(untold.popleft())
        return ready

    # Giving up.

    def expired(self, now_ms: ElapsedMs) -> tuple[list[ProducerBatch], list[ProducerBatch]]:
        """What has passed `delivery.timeout.ms`: taken out of the queues, and in flight."""
        limit_ms = now_ms - self.limits.delivery_timeout_ms
        waiting: list[ProducerBatch] = []
        for queue in list(self._active):
            while queue.batches and queue.batches[0].created_ms <= limit_ms:
                waiting.append(self._abandon(queue, queue.batches[0]))
        in_flight: list[ProducerBatch] = []
        if now_ms >= self._in_flight_expiry_ms:
            in_flight = [each for each in self._in_flight if each.created_ms <= limit_ms]
            left = [each.created_ms for each in self._in_flight if each.created_ms > limit_ms]
            self._in_flight_expiry_ms = (
                min(left) + self.limits.delivery_timeout_ms if left else NEVER_MS
            )
        return waiting, in_flight

    @property
    def in_flight_expiry_ms(self) -> int:
        return self._in_flight_expiry_ms

    def _abandon(self, queue: PartitionQueue, batch: ProducerBatch) -> ProducerBatch:
        queue.batches.remove(batch)
        if queue.open is batch:
            queue.open = None
        if not queue.batches:
            self._active.pop(queue, None)
        batch.record_count = batch.builder.record_count
        return batch

    def abandon_waiting(self, *, unsent_only: bool = False) -> list[ProducerBatch]:
        """Take out everything that is not in flight; with `unsent_only` what has been sent before
        stays, for its numbers are the broker's."""
        return [
            self._abandon(queue, batch)
            for queue in list(self._active)
            for batch in list(queue.batches)
            if not unsent_only or not batch.has_sequence
        ]

    def update_weights(self) -> None:
        """Let the sticky partitioners know how long the queues are (KIP-794)."""
        self.table.update_weights(self._active)

    @property
    def has_incomplete(self) -> bool:
        return bool(self.incomplete)

    @property
    def has_waiting(self) -> bool:
        return bool(self._active)

    # The end.

    def close(self) -> None:
        """Everything is ready now, and nobody waits for memory any longer."""
        self.closed = True
        self.memory.close()


class _Middle:
    """No jitter: a batch's backoff is asked for many times and must not change."""

    def randrange(self, stop: int, /) -> int:
        return stop // 2
