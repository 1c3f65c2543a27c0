"""An accumulator with topics, for the tests of what it decides."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any
from uuid import UUID

from moldau.client.machine.metadata import EMPTY, ClusterMetadata, PartitionView, TopicView
from moldau.client.producer._batch import ProducerBatch
from moldau.client.producer.accumulator import Accumulator
from moldau.client.producer.machine.queues import AccumulatorLimits, Drained, PartitionQueue
from moldau.client.topics import Node
from moldau.peers.machine.backoff import ExponentialBackoff

BATCH = 1000


class Zero:
    """No chance."""

    def randrange(self, stop: int, /) -> int:
        return 0


def picture(topics: dict[str, list[int]], epoch: int = 0) -> ClusterMetadata:
    """By topic the leaders of its partitions; -1 for none."""
    views = {
        name: TopicView(
            name,
            UUID(int=1),
            False,
            MappingProxyType(
                {
                    index: PartitionView(leader, epoch, (leader,), (leader,), ())
                    for index, leader in enumerate(leaders)
                }
            ),
        )
        for name, leaders in topics.items()
    }
    nodes = {each: Node(each, "h", each) for one in topics.values() for each in one if each >= 0}
    return EMPTY._replace(topics=MappingProxyType(views), nodes=MappingProxyType(nodes))


class Stage:
    def __init__(
        self, topics: dict[str, list[int]] | None = None, gate: Any = None, **limits: Any
    ) -> None:
        values = {
            "batch_size": BATCH,
            "linger_ms": 10,
            "buffer_memory": 100 * BATCH,
            "delivery_timeout_ms": 500,
            "max_request_size": 10 * BATCH,
            **limits,
        }
        self.accumulator = Accumulator(
            AccumulatorLimits(**values),
            backoff=ExponentialBackoff(100, 1000),
            random=Zero(),
            gate=gate,
        )
        self.lead(topics or {"t": [1]})

    def lead(self, topics: dict[str, list[int]], epoch: int = 0) -> None:
        for name in topics:
            self.accumulator.table.topic(name)
        self.accumulator.table.update_leaders(picture(topics, epoch))

    def queue(self, partition: int = 0, topic: str = "t") -> PartitionQueue:
        return self.accumulator.topics[topic].queues[partition]

    def batch(
        self, now_ms: int = 0, *, partition: int = 0, size: int = 10, records: int = 1
    ) -> ProducerBatch:
        """A new batch at the end of a queue."""
        queue = self.queue(partition)
        assert self.accumulator.memory.take(BATCH)
        batch = self.accumulator.open_batch(queue, BATCH, now_ms)
        for _ in range(records):
            assert batch.builder.append(0, None, bytes(size)) >= 0
        return batch

    def drain(self, now_ms: int, *usable: int, **options: Any) -> Drained:
        nodes = usable or (1,)
        return self.accumulator.drain(now_ms, lambda node_id: node_id in nodes, **options)
