"""What coordinators and their handlers ask about the cluster's topics.

Protocols, so that handlers and machines can be tested without a metadata log, and their
implementations over the metadata image.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection
from typing import NamedTuple, Protocol

from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.model import Node, Topic


class Topics(Protocol):
    def name_of(self, topic_id: uuid.UUID) -> str | None: ...

    def id_of(self, name: str) -> uuid.UUID | None: ...

    def has_partition(self, name: str, partition: int) -> bool: ...

    def partition_count(self, name: str) -> int | None:
        """None if there is no such topic."""
        ...

    def leader(self, name: str, partition: int, listener_name: str) -> Node | None:
        """The live leader's endpoint of that listener, if there is one."""
        ...


class ImageTopics:
    """Implements `Topics` over the current metadata image."""

    def __init__(self, image: Callable[[], MetadataImage]) -> None:
        self._image = image

    def name_of(self, topic_id: uuid.UUID) -> str | None:
        topic = self._image().topics_by_id.get(topic_id)
        return None if topic is None else topic.name

    def id_of(self, name: str) -> uuid.UUID | None:
        topic = self._image().topics_by_name.get(name)
        return None if topic is None else topic.id

    def has_partition(self, name: str, partition: int) -> bool:
        topic = self._image().topics_by_name.get(name)
        return topic is not None and partition in topic.partitions

    def partition_count(self, name: str) -> int | None:
        topic = self._image().topics_by_name.get(name)
        return None if topic is None else len(topic.partitions)

    def leader(self, name: str, partition: int, listener_name: str) -> Node | None:
        image = self._image()
        topic = image.topics_by_name.get(name)
        found = None if topic is None else topic.partitions.get(partition)
        broker = None if found is None else image.brokers.get(found.leader)
        if broker is None or broker.fenced:
            return None
        endpoint = broker.endpoint(listener_name)
        return None if endpoint is None else Node(broker.id, endpoint.host, endpoint.port)


class TopicFacts(NamedTuple):
    """What a partition assignment depends on."""

    id: uuid.UUID
    name: str
    racks: tuple[Collection[str], ...]
    """For each partition the racks of its replicas, as often as it has replicas there."""

    @property
    def partition_count(self) -> int:
        return len(self.racks)


class ClusterTopics(Protocol):
    @property
    def version(self) -> int:
        """Rises whenever the facts of any topic have changed."""
        ...

    def topic(self, name: str) -> TopicFacts | None: ...

    def topic_by_id(self, topic_id: uuid.UUID) -> TopicFacts | None: ...

    def names(self) -> Collection[str]: ...


class ImageClusterTopics:
    """Implements `ClusterTopics`: facts are built on demand and cached while they are valid."""

    def __init__(self) -> None:
        self._image = MetadataImage()
        self._version = 0
        self._facts: dict[uuid.UUID, TopicFacts] = {}

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self._image = image
        if delta.from_snapshot or _racks_changed(delta, image):
            self._facts.clear()
            self._version += 1
            return
        changed = [
            topic_id
            for topic_id, topic in delta.topics.items()
            if topic.created
            or any(
                before is None or before.replicas != after.replicas
                for before, after in topic.changed_partitions.values()
            )
        ]
        changed += delta.deleted_topics
        for topic_id in changed:
            self._facts.pop(topic_id, None)
        if changed:
            self._version += 1

    @property
    def version(self) -> int:
        return self._version

    def topic(self, name: str) -> TopicFacts | None:
        topic = self._image.topics_by_name.get(name)
        return None if topic is None else self._facts_of(topic)

    def topic_by_id(self, topic_id: uuid.UUID) -> TopicFacts | None:
        topic = self._image.topics_by_id.get(topic_id)
        return None if topic is None else self._facts_of(topic)

    def names(self) -> Collection[str]:
        return self._image.topics_by_name.keys()

    def _facts_of(self, topic: Topic) -> TopicFacts:
        facts = self._facts.get(topic.id)
        if facts is None:
            brokers = self._image.brokers
            racks: list[Collection[str]] = []
            for index in range(len(topic.partitions)):
                replicas = topic.partitions[index].replicas
                found = (brokers[each].rack for each in replicas if each in brokers)
                racks.append(tuple(rack for rack in found if rack is not None))
            facts = self._facts[topic.id] = TopicFacts(topic.id, topic.name, tuple(racks))
        return facts


def _racks_changed(delta: MetadataDelta, image: MetadataImage) -> bool:
    for broker_id, before in delta.brokers.items():
        after = image.brokers.get(broker_id)
        if (None if before is None else before.rack) != (None if after is None else after.rack):
            return True
    return False
