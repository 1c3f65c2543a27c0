"""The parts of the accumulator: queues of batches by partition, and who waits for what.

The accumulator's lock guards all of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from moldau.client.producer.machine.partitioners import StickyPartition
from moldau.client.producer.machine.sequences import PartitionSequences
from moldau.client.topics import TopicPartition
from moldau.times import ElapsedMs
from moldau.wire.compression import Compression
from moldau.wire.constants import NO_EPOCH

if TYPE_CHECKING:
    from moldau.client.producer._batch import ProducerBatch

__all__ = [
    "NEVER_MS",
    "AccumulatorLimits",
    "Drained",
    "Flush",
    "Gate",
    "MemoryWaiter",
    "NodeLatency",
    "PartitionQueue",
    "TopicQueues",
]

NEVER_MS = 2**62


class AccumulatorLimits(NamedTuple):
    """Those of Kafka's keys that decide here."""

    batch_size: int
    linger_ms: int
    buffer_memory: int
    delivery_timeout_ms: int
    max_request_size: int
    compression: Compression = Compression.NONE
    compression_level: int | None = None
    adaptive: bool = True
    availability_timeout_ms: int = 0


class Gate(Protocol):
    """Whether a partition's next batch may go, and its numbers: `SequenceBook`."""

    @property
    def is_completing(self) -> bool: ...

    def may_drain(self, queue: PartitionQueue, batch: ProducerBatch) -> bool: ...

    def on_drained(self, queue: PartitionQueue, batch: ProducerBatch) -> None: ...


class PartitionQueue:
    """The batches of one partition; the last one may still take records."""

    __slots__ = (
        "batches",
        "home_thread",
        "key",
        "leader_epoch",
        "leader_id",
        "muted",
        "open",
        "partition",
        "sequences",
        "topic",
        "topic_queues",
        "untold",
    )

    def __init__(self, topic: str, partition: int, topic_queues: TopicQueues | None) -> None:
        self.topic = topic
        self.partition = partition
        self.key = TopicPartition(topic, partition)
        self.topic_queues = topic_queues
        #: The thread that sends, which must not wait for a record.
        self.home_thread = 0
        self.leader_id = -1
        self.leader_epoch = NO_EPOCH
        self.batches: deque[ProducerBatch] = deque()
        self.open: ProducerBatch | None = None
        #: What was taken out and is not completed yet, in the order in which it will be.
        self.untold: deque[ProducerBatch] = deque()
        #: A batch is in flight, and order demands that no other is.
        self.muted = False
        self.sequences = PartitionSequences()


class TopicQueues:
    """The partitions of one topic, as the last picture of the cluster had them."""

    __slots__ = ("available", "name", "put_away", "queues", "ratio", "sticky", "used_ms")

    def __init__(self, name: str, sticky: StickyPartition) -> None:
        self.name = name
        #: By partition; none while the topic is not in the picture.
        self.queues: list[PartitionQueue] = []
        self.put_away: list[PartitionQueue] = []
        self.available: tuple[int, ...] = ()
        self.sticky = sticky
        #: What compression makes of this topic's records, roughly; 1.0 for none.
        self.ratio = 1.0
        self.used_ms = 0

    @property
    def partition_count(self) -> int:
        return len(self.queues)


class MemoryWaiter:
    """Somebody who needs memory; `wake` is called once it was granted or the client closes."""

    __slots__ = ("granted", "size", "wake")

    def __init__(self, size: int, wake: Callable[[], Any]) -> None:
        self.size = size
        self.wake = wake
        self.granted = False


class Flush:
    """Waits for the batches that were there when it began."""

    __slots__ = ("pending", "wake")

    def __init__(self, pending: set[ProducerBatch], wake: Callable[[], Any]) -> None:
        self.pending = pending
        self.wake = wake


class Drained(NamedTuple):
    """What one look at the queues gave."""

    #: By node, what to send there now.
    batches: dict[int, list[ProducerBatch]]
    #: Nodes that something is ready for, but that nothing can be sent to now.
    unavailable: set[int]
    #: When to look again, if nothing else happens.
    next_check_ms: int
    topics_without_leader: set[str]


class NodeLatency:
    """Since when a node has batches that it does not take."""

    __slots__ = ("drained_ms", "ready_ms")

    def __init__(self, now_ms: ElapsedMs) -> None:
        self.ready_ms = now_ms
        self.drained_ms = now_ms
