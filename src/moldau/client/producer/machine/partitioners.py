"""Which partition a record goes to.

Pure: chance is passed in. Invariants: a record with a key goes where Kafka's own producer
would send it (murmur2 of the key's bytes), whatever the partitions' state; one without a key goes
to the topic's sticky partition, which changes after about `batch.size` bytes (KIP-794). Which
partition is next is a matter of chance, weighted by how short the queues are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, Protocol, cast

from moldau.client.errors import ConfigError
from moldau.client.machine.metadata import ClusterMetadata
from moldau.client.producer._murmur2 import murmur2, partition_for_key
from moldau.peers.machine.backoff import RandomSource

__all__ = [
    "Partitioner",
    "RoundRobinPartitioner",
    "StickyPartition",
    "UniformStickyPartitioner",
    "cumulative_weights",
    "murmur2",
    "partition_for_key",
    "partition_function",
]


def cumulative_weights(queue_sizes: Sequence[int], partition_count: int) -> list[int] | None:
    """For a choice among partitions with these queues: the shorter, the likelier.

    None if all are equally likely: one partition only, or all queues alike and none left out.
    """
    if not queue_sizes or partition_count < 2:
        return None
    longest = max(queue_sizes)
    if len(queue_sizes) == partition_count and min(queue_sizes) == longest:
        return None
    return list(accumulate(longest + 1 - size for size in queue_sizes))


class StickyPartition:
    """The partition for records without a key, and when it changes. The accumulator's lock guards
    it."""

    __slots__ = ("_batch_size", "_partitions", "_random", "_weights", "partition", "produced")

    def __init__(self, batch_size: int, random: RandomSource) -> None:
        self._batch_size = max(1, batch_size)
        self._random = random
        self._partitions: Sequence[int] = ()
        self._weights: list[int] | None = None
        #: -1 before the first choice.
        self.partition = -1
        self.produced = 0

    def update(self, partitions: Sequence[int], weights: list[int] | None) -> None:
        """What may be chosen from now on."""
        self._partitions = partitions
        self._weights = weights

    def switch(self) -> None:
        """Choose the next one."""
        weights = self._weights
        if weights is None:
            chosen = self._random.randrange(len(self._partitions))
        else:
            chosen = bisect_right(weights, self._random.randrange(weights[-1]))
        self.partition = self._partitions[chosen]
        self.produced = 0

    def switched_at_boundary(self, size: int) -> bool:
        """A batch is full, and a record of this size would begin the next: another partition's
        turn, if this one had about a batch's bytes."""
        if self.produced + size < self._batch_size:
            return False
        self.switch()
        return True


class Partitioner(Protocol):
    """One's own; a plain function of the same arguments will do. It may also have
    `configure(config)` and `close()`."""

    def partition(
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        cluster: ClusterMetadata,
    ) -> int: ...


class RoundRobinPartitioner:
    """One partition after the other, whatever the key; those without a leader are passed over."""

    def __init__(self) -> None:
        self._counters: dict[str, int] = {}

    def partition(
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        cluster: ClusterMetadata,
    ) -> int:
        number = self._counters.get(topic, 0)
        self._counters[topic] = number + 1
        partitions = cluster.topics[topic].partitions
        available = [index for index, view in partitions.items() if view.leader_id >= 0]
        choice = available or list(partitions)
        return choice[number % len(choice)]


class UniformStickyPartitioner:
    """The sticky partition for every record, also for one with a key: stands for
    `partitioner.ignore.keys`."""


PartitionFunction = Callable[[str, Any, bytes | None, Any, bytes | None, ClusterMetadata], int]


def partition_function(partitioner: Any) -> PartitionFunction:
    """What is called for each record; raises ConfigError if there is nothing."""
    found = getattr(partitioner, "partition", None) or partitioner
    if not callable(found):
        raise ConfigError.invalid(
            "partitioner.class", partitioner, "must be callable or have a method partition"
        )
    return cast(PartitionFunction, found)
