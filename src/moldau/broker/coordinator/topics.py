"""What coordinators and their handlers ask about the cluster's topics.

A protocol, so that handlers can be tested without a metadata log, and its
implementation over the metadata image.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import NamedTuple, Protocol

from moldau.broker.metadata.image import MetadataImage


class Node(NamedTuple):
    """A broker as a client of one listener reaches it."""

    node_id: int
    host: str
    port: int


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
