"""What group coordinators ask of their surroundings, for tests without a metadata log."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from uuid import UUID

from moldau.broker.config.resource_keys import GROUP_KEYS
from moldau.broker.coordinator.machine.topics import TopicFacts


class FakeTopics:
    """Implements `ClusterTopics`: topic ids count from 1 in the order of creation."""

    def __init__(self, **partition_counts: int) -> None:
        self.version = 1
        self._facts: dict[str, TopicFacts] = {}
        self._by_id: dict[UUID, TopicFacts] = {}
        self._made = 0
        for name, count in partition_counts.items():
            self.create(name, count)

    def create(self, name: str, partitions: int, rack: str | None = None) -> UUID:
        """Create a topic, or give it more partitions; its id."""
        old = self._facts.get(name)
        if old is None:
            self._made += 1
        topic_id = UUID(int=self._made) if old is None else old.id
        racks = frozenset(() if rack is None else (rack,))
        facts = TopicFacts(topic_id, name, (racks,) * partitions)
        self._facts[name] = self._by_id[topic_id] = facts
        self.version += 1
        return topic_id

    def delete(self, name: str) -> UUID:
        topic_id = self._facts.pop(name).id
        del self._by_id[topic_id]
        self.version += 1
        return topic_id

    def id(self, name: str) -> UUID:
        return self._facts[name].id

    def partition_count(self, name: str) -> int:
        return self._facts[name].partition_count

    def topic(self, name: str) -> TopicFacts | None:
        return self._facts.get(name)

    def topic_by_id(self, topic_id: UUID) -> TopicFacts | None:
        return self._by_id.get(topic_id)

    def names(self) -> Collection[str]:
        return self._facts.keys()


class FakeSettings:
    """Implements `GroupSettings`: Kafka's defaults and what a test sets, for all groups alike."""

    def __init__(self, **values: Any) -> None:
        """Keys with underscores for dots."""
        self.values = {name: key.default for name, key in GROUP_KEYS.items()}
        self.values.update({name.replace("_", "."): value for name, value in values.items()})

    def get(self, group_id: str, key: str) -> Any:
        return self.values[key]


def no_actions(action: object) -> None:
    raise AssertionError(f"nobody expects {action!r}")
