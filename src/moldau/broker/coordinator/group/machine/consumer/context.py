"""What consumer groups look at beyond themselves: topics, settings, assignors.

Nothing here is replicated. What is remembered is remembered for one version of the topics,
so a group of many members costs the work of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from moldau.broker.coordinator.group.machine.assignors.interface import Assignor
from moldau.broker.coordinator.group.machine.config import GroupConfig
from moldau.broker.coordinator.group.machine.consumer.subscriptions import Subscriptions
from moldau.broker.coordinator.group.machine.metadata_hash import group_hash, topic_hash
from moldau.broker.coordinator.group.machine.settings import GroupSettings
from moldau.broker.coordinator.machine.topics import ClusterTopics, TopicFacts

# Distinct subscriptions remembered; more than that, and all are forgotten.
_REMEMBERED_MAX = 1_000


class ConsumerContext:
    def __init__(
        self,
        config: GroupConfig,
        topics: ClusterTopics,
        settings: GroupSettings,
        assignors: Mapping[str, Assignor],
    ) -> None:
        """`assignors` are all there are; the config says which of them may be used."""
        self.config = config
        self.topics = topics
        self._settings = settings
        self.assignors: dict[str, Assignor] = {}
        for name in config.group_consumer_assignors:
            # Kafka's own may also be named by their classes: ...assignor.UniformAssignor.
            short = name.rpartition(".")[2].removesuffix("Assignor").lower()
            self.assignors[short] = assignors[short]
        self.default_assignor = next(iter(self.assignors))
        self._version = topics.version
        self._ids: dict[frozenset[str], frozenset[UUID]] = {}
        self._hashes: dict[frozenset[str], int] = {}
        self._topic_hashes: dict[str, tuple[TopicFacts, int]] = {}
        self._names: frozenset[str] = frozenset()
        self._names_version: int | None = None
        self._newest_topic_version = 0

    def session_timeout_ms(self, group_id: str) -> int:
        value: int = self._settings.get(group_id, "consumer.session.timeout.ms")
        return value

    def heartbeat_interval_ms(self, group_id: str) -> int:
        value: int = self._settings.get(group_id, "consumer.heartbeat.interval.ms")
        return value

    def assignment_interval_ms(self, group_id: str) -> int:
        value: int = self._settings.get(group_id, "consumer.assignment.interval.ms")
        return value

    def topic_ids(self, names: frozenset[str]) -> frozenset[UUID]:
        """The ids of those that exist."""
        self._check_version()
        ids = self._ids.get(names)
        if ids is None:
            found = (self.topics.topic(name) for name in names)
            ids = frozenset(facts.id for facts in found if facts is not None)
            if len(self._ids) >= _REMEMBERED_MAX:
                self._ids.clear()
            self._ids[names] = ids
        return ids

    def metadata_hash(self, subscriptions: Subscriptions) -> int:
        """Kafka's hash of all that an assignment depends on."""
        self._check_version()
        names = subscriptions.topics()
        found = self._hashes.get(names)
        if found is None:
            hashes = {}
            for name in names:
                facts = self.topics.topic(name)
                if facts is not None:
                    hashes[name] = self._topic_hash(facts)
            found = group_hash(hashes)
            if len(self._hashes) >= _REMEMBERED_MAX:
                self._hashes.clear()
            self._hashes[names] = found
        return found

    def topic_names(self) -> frozenset[str]:
        """All topics there are."""
        version = self.topics.version
        if version != self._names_version:
            names = frozenset(self.topics.names())
            if not names <= self._names:
                self._newest_topic_version = version
            self._names = names
            self._names_version = version
        return self._names

    def newest_topic_version(self) -> int:
        """The version of the topics in which a new name was first seen."""
        self.topic_names()
        return self._newest_topic_version

    def _topic_hash(self, facts: TopicFacts) -> int:
        known = self._topic_hashes.get(facts.name)
        # The same object means the same facts: they are cached while they are valid.
        if known is not None and known[0] is facts:
            return known[1]
        if len(self._topic_hashes) > 2 * len(self.topics.names()):
            # Mostly of topics that are gone.
            self._topic_hashes.clear()
        found = topic_hash(facts)
        self._topic_hashes[facts.name] = facts, found
        return found

    def _check_version(self) -> None:
        if self._version != self.topics.version:
            self._version = self.topics.version
            self._ids.clear()
            self._hashes.clear()
