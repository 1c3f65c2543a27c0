"""Which share partitions of a group have state with the share coordinator, or are about to.

A partition is initializing until its state is known to exist; only then is it assigned. A topic is
deleting while its state is being removed; an initialization that begins ends that. All functions
return the next value and do not change the old one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from uuid import UUID

from moldau.wire.messages import ShareGroupStatePartitionMetadataValue as StateValue

Partitions = Mapping[UUID, frozenset[int]]


class TopicPartitions(NamedTuple):
    name: str
    partitions: frozenset[int]


Topics = Mapping[UUID, TopicPartitions]


@dataclass(frozen=True, slots=True)
class PartitionStates:
    initializing: Topics = field(default_factory=dict)
    initialized: Topics = field(default_factory=dict)
    deleting: Mapping[UUID, str] = field(default_factory=dict)
    """Topic id: name."""

    @property
    def initialized_partitions(self) -> dict[UUID, frozenset[int]]:
        return {topic_id: topic.partitions for topic_id, topic in self.initialized.items()}

    def began(self, topics: Topics) -> PartitionStates:
        """State of these partitions is being made."""
        initializing = merged(self.initializing, topics)
        return replace(
            self,
            initializing=initializing,
            deleting={
                topic_id: name
                for topic_id, name in self.deleting.items()
                if topic_id not in initializing
            },
        )

    def succeeded(self, topics: Topics) -> PartitionStates:
        """State of these partitions exists."""
        return replace(
            self,
            initializing=_without(self.initializing, topics),
            initialized=merged(self.initialized, topics),
        )

    def failed(self, topics: Topics) -> PartitionStates:
        """State of these partitions could not be made: they may be tried again."""
        return replace(self, initializing=_without(self.initializing, topics))

    def without_topics(self, topic_ids: Collection[UUID]) -> PartitionStates:
        """The topics are gone from the cluster, and their state with them."""
        return PartitionStates(
            {key: value for key, value in self.initializing.items() if key not in topic_ids},
            {key: value for key, value in self.initialized.items() if key not in topic_ids},
            {key: value for key, value in self.deleting.items() if key not in topic_ids},
        )

    def deleting_all(self, topics: Topics) -> PartitionStates:
        """The group goes: everything it ever initialised is to be removed."""
        return PartitionStates(
            deleting={topic_id: topic.name for topic_id, topic in topics.items()}
        )

    def deleting_offsets(self, topics: Topics) -> PartitionStates:
        return replace(
            self,
            initialized={
                topic_id: topic
                for topic_id, topic in self.initialized.items()
                if topic_id not in topics
            },
            deleting={
                **self.deleting,
                **{topic_id: topic.name for topic_id, topic in topics.items()},
            },
        )

    def deleted(self, topic_ids: Collection[UUID]) -> PartitionStates:
        return replace(
            self,
            deleting={
                topic_id: name
                for topic_id, name in self.deleting.items()
                if topic_id not in topic_ids
            },
        )

    def as_value(self) -> StateValue:
        return StateValue(
            initializing_topics=_infos(self.initializing),
            initialized_topics=_infos(self.initialized),
            deleting_topics=[
                StateValue.TopicInfo(topic_id=topic_id, topic_name=name)
                for topic_id, name in self.deleting.items()
            ],
        )


def states_from(value: StateValue) -> PartitionStates:
    return PartitionStates(
        _topics(value.initializing_topics),
        _topics(value.initialized_topics),
        {topic.topic_id: topic.topic_name for topic in value.deleting_topics},
    )


def merged(one: Topics, other: Topics) -> dict[UUID, TopicPartitions]:
    result = dict(one)
    for topic_id, topic in other.items():
        known = result.get(topic_id)
        partitions = topic.partitions if known is None else known.partitions | topic.partitions
        result[topic_id] = TopicPartitions(topic.name, partitions)
    return result


def _without(topics: Topics, removed: Topics) -> dict[UUID, TopicPartitions]:
    result = {}
    for topic_id, topic in topics.items():
        gone = removed.get(topic_id)
        left = topic.partitions if gone is None else topic.partitions - gone.partitions
        if left:
            result[topic_id] = TopicPartitions(topic.name, left)
    return result


def _infos(topics: Topics) -> list[StateValue.TopicPartitionsInfo]:
    return [
        StateValue.TopicPartitionsInfo(
            topic_id=topic_id, topic_name=topic.name, partitions=sorted(topic.partitions)
        )
        for topic_id, topic in topics.items()
    ]


def _topics(infos: list[StateValue.TopicPartitionsInfo]) -> dict[UUID, TopicPartitions]:
    return {
        info.topic_id: TopicPartitions(info.topic_name, frozenset(info.partitions))
        for info in infos
    }
