"""What a run of metadata records changed.

A delta names what changed and keeps what was there before; what is there now is in the image it
was made with. Its size follows the number of changes, never the size of the image.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from moldau.broker.metadata.machine.model import Broker, Partition, ResourceType, Topic

ConfigKey = tuple[int, str]


@dataclass(slots=True)
class TopicDelta:
    """How one topic that still exists changed. `before` is None for a partition that is new."""

    topic: Topic
    created: bool = False
    before: dict[int, Partition | None] = field(default_factory=dict)

    @property
    def changed_partitions(self) -> dict[int, tuple[Partition | None, Partition]]:
        """(before, after) of every partition that is new or changed."""
        return {
            index: (before, self.topic.partitions[index]) for index, before in self.before.items()
        }


@dataclass(slots=True)
class MetadataDelta:
    """Changes since the last publication.

    topics          changed or created topics by id, deleted ones excluded
    deleted_topics  topics by id as they were when they were removed; a topic that was both created
                    and removed since the last publication is in neither
    brokers         registrations before the change by broker id (None: newly registered)
    configs         (resource type, resource name) -> the names of the changed keys; a deleted
                    topic's configs vanish with the topic and are not listed
    acls            the ids of ACLs that are new or gone; with `acls_changed` alone, any may be
    """

    topics: dict[UUID, TopicDelta] = field(default_factory=dict)
    deleted_topics: dict[UUID, Topic] = field(default_factory=dict)
    brokers: dict[int, Broker | None] = field(default_factory=dict)
    configs: dict[ConfigKey, set[str]] = field(default_factory=dict)
    features: set[str] = field(default_factory=set)
    producer_ids_changed: bool = False
    quotas_changed: bool = False
    acls_changed: bool = False
    acls: set[UUID] = field(default_factory=set)
    scram_changed: bool = False
    tokens_changed: bool = False
    controllers_changed: bool = False
    from_snapshot: bool = False
    """The image was replaced as a whole: listeners compare it with what they hold."""

    def __bool__(self) -> bool:
        return bool(
            self.topics
            or self.deleted_topics
            or self.brokers
            or self.configs
            or self.features
            or self.producer_ids_changed
            or self.quotas_changed
            or self.acls_changed
            or self.scram_changed
            or self.tokens_changed
            or self.controllers_changed
            or self.from_snapshot
        )

    def on_topic_created(self, topic: Topic) -> None:
        self.topics[topic.id] = TopicDelta(topic, created=True)

    def on_partition_changed(self, topic: Topic, index: int, before: Partition | None) -> None:
        changed = self.topics.get(topic.id)
        if changed is None:
            changed = self.topics[topic.id] = TopicDelta(topic)
        # The first change since the last publication knows what listeners last saw.
        changed.before.setdefault(index, before)

    def on_topic_removed(self, topic: Topic) -> None:
        changed = self.topics.pop(topic.id, None)
        self.configs.pop((ResourceType.TOPIC, topic.name), None)
        if changed is None or not changed.created:
            self.deleted_topics[topic.id] = topic

    def on_broker_changed(self, broker_id: int, before: Broker | None) -> None:
        self.brokers.setdefault(broker_id, before)

    def on_acl_changed(self, acl_id: UUID) -> None:
        self.acls_changed = True
        self.acls.add(acl_id)

    def on_config_changed(self, resource: ConfigKey, name: str) -> None:
        self.configs.setdefault(resource, set()).add(name)
