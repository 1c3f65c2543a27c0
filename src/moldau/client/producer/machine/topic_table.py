"""The topics that a producer sends to: their partitions, leaders, and what is known of their load.

Pure; the accumulator's lock guards it. Invariant: partitions may be added, never taken away.
"""

from __future__ import annotations

from collections.abc import Iterable

from moldau.client.machine.metadata import ClusterMetadata
from moldau.client.producer.machine.partitioners import StickyPartition, cumulative_weights
from moldau.client.producer.machine.queues import (
    AccumulatorLimits,
    NodeLatency,
    PartitionQueue,
    TopicQueues,
)
from moldau.peers.machine.backoff import RandomSource
from moldau.times import ElapsedMs
from moldau.wire.compression import Compression

__all__ = ["TopicTable"]

_RATIO_STEP_UP = 0.05
_RATIO_STEP_DOWN = 0.005


class TopicTable:
    """See the module."""

    def __init__(self, limits: AccumulatorLimits, random: RandomSource) -> None:
        self._limits = limits
        self._random = random
        self.by_name: dict[str, TopicQueues] = {}
        #: The thread that sends, which must not wait for a record.
        self.home_thread = 0
        self._latencies: dict[int, NodeLatency] = {}

    def topic(self, name: str) -> TopicQueues:
        found = self.by_name.get(name)
        if found is None:
            found = TopicQueues(name, StickyPartition(self._limits.batch_size, self._random))
            self.by_name[name] = found
        return found

    def update_leaders(self, picture: ClusterMetadata) -> None:
        """Take over who leads what; partitions may be added, never taken away. Lock held."""
        for topic in self.by_name.values():
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

    def put_away(self, names: Iterable[str]) -> None:
        """Topics that are no longer in the picture: they must be asked for before the next
        record. Their numbers stay, for brokers know them."""
        for name in names:
            topic = self.by_name[name]
            topic.put_away = topic.queues or topic.put_away
            topic.queues = []

    def idle_topics(self, now_ms: ElapsedMs, idle_ms: int) -> list[str]:
        """Topics without batches that nothing was sent to for `metadata.max.idle.ms`."""
        return [
            topic.name
            for topic in self.by_name.values()
            if topic.queues
            and now_ms - topic.used_ms > idle_ms
            and not any(queue.batches or queue.sequences.in_flight for queue in topic.queues)
        ]

    # Statistics that decide about later batches.

    def note_ratio(self, queue: PartitionQueue, observed: float) -> None:
        """Follow what compression achieves: up fast, down slowly, as in Kafka."""
        topic = queue.topic_queues
        if topic is None or self._limits.compression is Compression.NONE:
            return
        if observed > topic.ratio:
            topic.ratio = max(topic.ratio + _RATIO_STEP_UP, observed)
        else:
            topic.ratio = max(topic.ratio - _RATIO_STEP_DOWN, observed)

    def note_latency(self, node_id: int, now_ms: ElapsedMs, *, drained: bool) -> None:
        if self._limits.availability_timeout_ms <= 0:
            return
        latency = self._latencies.get(node_id)
        if latency is None:
            latency = self._latencies[node_id] = NodeLatency(now_ms)
        latency.ready_ms = now_ms
        if drained:
            latency.drained_ms = now_ms

    def update_weights(self, active: Iterable[PartitionQueue]) -> None:
        """Let the sticky partitioners know how long the queues are (KIP-794)."""
        for topic in {queue.topic_queues for queue in active}:
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
        return late_ms <= self._limits.availability_timeout_ms
