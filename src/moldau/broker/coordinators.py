"""Tells the coordinators which partitions of their internal topics this broker leads.

What always holds: a coordinator is told in the order of the metadata log, and never of a
partition that this broker cannot serve.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Protocol

from moldau.broker.coordinator.log import CoordinatorLog
from moldau.broker.coordinator.partition_log import PartitionLog
from moldau.broker.metadata.delta import MetadataDelta
from moldau.broker.metadata.image import MetadataImage
from moldau.broker.metadata.model import Topic
from moldau.broker.replication.manager import ReplicaManager


class Coordinator(Protocol):
    def on_elected(self, partition: int, leader_epoch: int, log: CoordinatorLog) -> None: ...

    def on_resigned(self, partition: int, leader_epoch: int | None = None) -> None: ...

    async def loaded(self) -> None: ...

    def close(self) -> None: ...


class Coordinators:
    def __init__(
        self, by_topic: Mapping[str, Coordinator], replicas: ReplicaManager, *, node_id: int
    ) -> None:
        self._by_topic = by_topic
        self._replicas = replicas
        self._node_id = node_id

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        for name, coordinator in self._by_topic.items():
            topic = image.topic(name)
            if topic is not None and delta.from_snapshot:
                self._tell(coordinator, topic, list(topic.partitions))
            elif topic is not None and (changed := delta.topics.get(topic.id)):
                self._tell(coordinator, topic, list(changed.before))
        for topic in delta.deleted_topics.values():
            owner = self._by_topic.get(topic.name)
            if owner is not None:
                for index in topic.partitions:
                    owner.on_resigned(index)

    def _tell(self, coordinator: Coordinator, topic: Topic, indexes: list[int]) -> None:
        for index in indexes:
            state = topic.partitions[index]
            partition = self._replicas.find(topic.name, index)
            if state.leader == self._node_id and partition is not None:
                coordinator.on_elected(index, state.leader_epoch, PartitionLog(partition))
            else:
                coordinator.on_resigned(index, state.leader_epoch)

    async def loaded(self) -> None:
        """Wait until everything led here is served."""
        await asyncio.gather(*(each.loaded() for each in self._by_topic.values()))

    def close(self) -> None:
        for coordinator in self._by_topic.values():
            coordinator.close()
