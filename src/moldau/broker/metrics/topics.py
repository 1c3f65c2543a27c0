"""What goes in and out: of each partition, its topic, and all topics.

A partition's meter has its topic's as its parent, and that one the broker's: one call counts in all
three. Meters are made when a partition is opened and removed with it.
"""

from __future__ import annotations

from moldau.broker.metrics.tables import ALL_TOPICS, PARTITION, TOPIC
from moldau.metrics import Flow, Meter, Registry

__all__ = ["PartitionMeters", "TopicMeters", "TopicMetrics"]

_BYTES_IN = PARTITION["BytesInPerSec"]
_BYTES_OUT = PARTITION["BytesOutPerSec"]
_MESSAGES_IN = PARTITION["MessagesInPerSec"]


class TopicMeters:
    """Those of one topic."""

    __slots__ = (
        "_metrics",
        "bytes_in",
        "bytes_out",
        "fetches",
        "messages_in",
        "name",
        "partitions",
        "produces",
        "sent_to_follower",
    )

    def __init__(self, metrics: TopicMetrics, name: str) -> None:
        self._metrics = metrics
        self.name = name
        self.produces = self.meter("TotalProduceRequestsPerSec")
        self.fetches = self.meter("TotalFetchRequestsPerSec")
        self.bytes_in = self.meter("BytesInPerSec")
        self.bytes_out = self.meter("BytesOutPerSec")
        self.messages_in = self.meter("MessagesInPerSec")
        #: Called with the bytes that a follower gets.
        self.sent_to_follower = Flow(self.fetches, metrics.replication_out).passed
        self.partitions = 0

    def meter(self, name: str) -> Meter:
        metrics = self._metrics
        return metrics.registry.meter(TOPIC[name], self.name, parent=metrics.all[name])

    def mark(self, name: str, events: int = 1) -> None:
        """For what is rare."""
        self.meter(name).mark(events)


class PartitionMeters:
    """Those of one partition: what the hot path marks."""

    __slots__ = ("index", "produced", "sent", "topic")

    def __init__(self, metrics: TopicMetrics, topic: TopicMeters, index: int) -> None:
        # A start makes those of thousands of partitions.
        tags, meter = (topic.name, str(index)), metrics.registry.meter
        bytes_in = meter(_BYTES_IN, *tags, parent=topic.bytes_in)
        messages_in = meter(_MESSAGES_IN, *tags, parent=topic.messages_in)
        bytes_out = meter(_BYTES_OUT, *tags, parent=topic.bytes_out)
        self.topic = topic
        self.index = index
        #: Called with the bytes, and the first and last offset, that a producer has appended.
        self.produced = Flow(topic.produces, bytes_in, messages_in).appended
        #: Called with the bytes that a consumer gets.
        self.sent = Flow(topic.fetches, bytes_out).passed


class TopicMetrics:
    """`kafka.server:type=BrokerTopicMetrics`."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.all = {name: registry.meter(spec) for name, spec in ALL_TOPICS.items()}
        self.replication_in = self.all["ReplicationBytesInPerSec"]
        self.replication_out = self.all["ReplicationBytesOutPerSec"]
        self._topics: dict[str, TopicMeters] = {}

    def open(self, topic: str, index: int) -> PartitionMeters:
        """The meters of a partition that this broker hosts from now on."""
        meters = self._topics.get(topic)
        if meters is None:
            meters = self._topics[topic] = TopicMeters(self, topic)
        meters.partitions += 1
        return PartitionMeters(self, meters, index)

    def close(self, meters: PartitionMeters) -> None:
        """The partition is not here any more; the last one takes its topic with it."""
        topic = meters.topic
        for spec in PARTITION.values():
            self.registry.remove(spec, topic.name, str(meters.index))
        topic.partitions -= 1
        if not topic.partitions and self._topics.get(topic.name) is topic:
            del self._topics[topic.name]
            for spec in TOPIC.values():
                self.registry.remove(spec, topic.name)
