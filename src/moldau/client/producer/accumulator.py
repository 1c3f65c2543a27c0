"""Records wait here until they are sent: a queue of batches for each partition.

Decided here: when a batch is ready (full, lingered for `linger.ms`, wanted by a flush, a commit or
somebody who waits for memory), what goes into the next request to a node, when a batch has waited
too long, and who gets memory that becomes free. Pure: the time is passed in.

What always holds: the batches that are not done yet hold at most `buffer.memory` together, and who
waits for some gets it in the order of asking. A batch that is sent again goes before those with
higher sequence numbers. Senders and the loop share all this: `lock` is held for as long as queues
or memory are looked at, and never while anything is waited for.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from moldau.client._batch_builder import BatchBuilder
from moldau.client.machine.metadata import ClusterMetadata
from moldau.client.producer._batch import Outcome, ProducerBatch
from moldau.client.producer.machine.partitioners import StickyPartition, cumulative_weights
from moldau.client.producer.machine.queues import (
    NEVER_MS,
    AccumulatorLimits,
    Drained,
    Flush,
    Gate,
    MemoryWaiter,
    NodeLatency,
    PartitionQueue,
    TopicQueues,
)
from moldau.peers.machine.backoff import ExponentialBackoff, RandomSource
from moldau.wire.compression import Compression

__all__ = ["Accumulator"]

_RECORD_OVERHEAD_MAX = 21 + 61
_RATIO_STEP_UP = 0.05
_RATIO_STEP_DOWN = 0.005


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
        self.topics: dict[str, TopicQueues] = {}
        self.free = limits.buffer_memory
        self.waiters: deque[MemoryWaiter] = deque()
        self.incomplete: set[ProducerBatch] = set()
        self.closed = False
        self.gate = gate
        self.home_thread = 0
        self._backoff = backoff
        self._random = random
        self._in_flight: dict[ProducerBatch, None] = {}
        self._in_flight_expiry_ms = NEVER_MS
        # Queues with batches, the one that was drained longest ago first.
        self._active: dict[PartitionQueue, None] = {}
        # Buffers of batches that are done, for new ones.
        self._spares: list[bytearray] = []
        self._flushes: list[Flush] = []
        self._latencies: dict[int, NodeLatency] = {}

    # Topics.

    def topic(self, name: str) -> TopicQueues:
        found = self.topics.get(name)
        if found is None:
            found = TopicQueues(name, StickyPartition(self.limits.batch_size, self._random))
            self.topics[name] = found
        return found

    def update_leaders(self, picture: ClusterMetadata) -> None:
        """Take over who leads what; partitions may be added, never taken away. Lock held."""
        for topic in self.topics.values():
            view = picture.topics.get(topic.name)
            if view is None:
                continue
            topic.queues = topic.queues or topic.put_away
            while len(topic.queues) < len(view.partitions):
                queue = PartitionQueue(topic.name, len(topic.queues), topic)
                queue.home_thread = self.home_thread
                topic.queues.append(queue)
            for queue in topic.queues:
                seen = view.partitions.get(queue.partition)
                if seen is None or seen.leader_id not in picture.nodes:
                    queue.leader_id = -1
                else:
                    queue.leader_id = seen.leader_id
                    queue.leader_epoch = seen.leader_epoch
            available = tuple(each.partition for each in topic.queues if each.leader_id >= 0)
            if available != topic.available:
                topic.available = available
                topic.sticky.update(available or range(len(topic.queues)), None)
            if topic.sticky.partition < 0 and topic.queues:
                topic.sticky.update(available or range(len(topic.queues)), None)
                topic.sticky.switch()

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

    def take_memory(self, size: int) -> bool:
        """Whether there was enough, and nobody had waited longer."""
        if self.waiters or self.free < size:
            return False
        self.free -= size
        return True

    def give_back(self, size: int) -> None:
        self.free += size
        self._grant()

    def _grant(self) -> None:
        while self.waiters and self.free >= self.waiters[0].size:
            waiter = self.waiters.popleft()
            self.free -= waiter.size
            waiter.granted = True
            waiter.wake()

    def withdraw(self, waiter: MemoryWaiter) -> None:
        """Somebody does not wait any longer; what was granted at the last moment is given back."""
        if waiter.granted:
            self.give_back(waiter.size)
        elif waiter in self.waiters:
            self.waiters.remove(waiter)
            self._grant()

    def open_batch(self, queue: PartitionQueue, memory_size: int, now_ms: int) -> ProducerBatch:
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
        batch = ProducerBatch(queue, builder, now_ms, memory_size)
        queue.batches.append(batch)
        queue.open = batch
        self._active[queue] = None
        self.incomplete.add(batch)
        if topic is not None:
            topic.used_ms = now_ms
        return batch

    def discard(self, batch: ProducerBatch) -> None:
        """A batch is done, or was split: it holds no memory any more."""
        size, batch.memory_size = batch.memory_size, 0
        self.incomplete.discard(batch)
        self._in_flight.pop(batch, None)
        if size:
            self.give_back(size)
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

    def drain(self, now_ms: int, usable: Callable[[int], bool], *, mute: bool = False) -> Drained:
        """Take out what is to be sent now; at most one batch of a partition, as in any request."""
        ready, next_check_ms, leaderless = self._ready_nodes(now_ms)
        batches: dict[int, list[ProducerBatch]] = {}
        unavailable: set[int] = set()
        for node_id in ready:
            if usable(node_id):
                self._note_latency(node_id, now_ms, drained=True)
                batches[node_id] = []
            else:
                self._note_latency(node_id, now_ms, drained=False)
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

    def _ready_nodes(self, now_ms: int) -> tuple[set[int], int, set[str]]:
        ready: set[int] = set()
        leaderless: set[str] = set()
        next_check_ms = NEVER_MS
        gate = self.gate
        hurry = (
            self.closed
            or bool(self.waiters)
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
        now_ms: int,
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

    def _take_out(self, queue: PartitionQueue, batch: ProducerBatch, now_ms: int) -> None:
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

    def reenqueue(self, batch: ProducerBatch, now_ms: int) -> None:
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

    def split(self, batch: ProducerBatch, now_ms: int) -> list[ProducerBatch]:
        """Put smaller batches in the place of one that the broker found too large."""
        queue = batch.queue
        self.note_ratio(queue, 1.0)
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
        """It is known how a batch ended. Which batches may be told of now: within a partition that
        happens in the order of sending, also if a later one was answered first."""
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

    def expired(self, now_ms: int) -> tuple[list[ProducerBatch], list[ProducerBatch]]:
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

    @property
    def has_incomplete(self) -> bool:
        return bool(self.incomplete)

    @property
    def has_waiting(self) -> bool:
        return bool(self._active)

    # Statistics that decide about later batches.

    def note_ratio(self, queue: PartitionQueue, observed: float) -> None:
        """Follow what compression achieves: up fast, down slowly, as in Kafka."""
        topic = queue.topic_queues
        if topic is None or self.limits.compression is Compression.NONE:
            return
        if observed > topic.ratio:
            topic.ratio = max(topic.ratio + _RATIO_STEP_UP, observed)
        else:
            topic.ratio = max(topic.ratio - _RATIO_STEP_DOWN, observed)

    def _note_latency(self, node_id: int, now_ms: int, *, drained: bool) -> None:
        if self.limits.availability_timeout_ms <= 0:
            return
        latency = self._latencies.get(node_id)
        if latency is None:
            latency = self._latencies[node_id] = NodeLatency(now_ms)
        latency.ready_ms = now_ms
        if drained:
            latency.drained_ms = now_ms

    def update_weights(self) -> None:
        """Let the sticky partitioners know how long the queues are (KIP-794)."""
        for topic in {queue.topic_queues for queue in self._active}:
            if topic is None or len(topic.queues) < 2:
                continue
            queues = [each for each in topic.queues if self._takes(each.leader_id)]
            sizes = [len(each.batches) for each in queues]
            weights = cumulative_weights(sizes, len(topic.queues))
            if weights is None:
                topic.sticky.update(topic.available or range(len(topic.queues)), None)
            else:
                topic.sticky.update([each.partition for each in queues], weights)

    def _takes(self, leader_id: int) -> bool:
        if leader_id < 0:
            return False
        latency = self._latencies.get(leader_id)
        if latency is None:
            return True
        late_ms = latency.ready_ms - latency.drained_ms
        return late_ms <= self.limits.availability_timeout_ms

    # The end.

    def close(self) -> None:
        """Everything is ready now, and nobody waits for memory any longer."""
        self.closed = True
        waiters, self.waiters = self.waiters, deque()
        for waiter in waiters:
            waiter.wake()

    def put_away(self, names: Iterable[str]) -> None:
        """Topics that are no longer in the picture: they must be asked for before the next
        record. Their numbers stay, for brokers know them."""
        for name in names:
            topic = self.topics[name]
            topic.put_away = topic.queues or topic.put_away
            topic.queues = []

    def idle_topics(self, now_ms: int, idle_ms: int) -> list[str]:
        """Topics without batches that nothing was sent to for `metadata.max.idle.ms`."""
        return [
            topic.name
            for topic in self.topics.values()
            if topic.queues
            and now_ms - topic.used_ms > idle_ms
            and not any(queue.batches or queue.sequences.in_flight for queue in topic.queues)
        ]


class _Middle:
    """No jitter: a batch's backoff is asked for many times and must not change."""

    def randrange(self, stop: int, /) -> int:
        return stop // 2
