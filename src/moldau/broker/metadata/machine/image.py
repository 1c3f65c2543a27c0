"""The cluster's metadata as one value built from records.

Only `replay` changes an image; live decisions, restarts and snapshots all use it. Its cost depends
on the record, not on the size of the image, and it adds what changed to a delta. Records between
BeginTransaction and EndTransaction take effect together at the end, or not at all after
AbortTransaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from moldau.broker.metadata.machine.acl_model import Acl
from moldau.broker.metadata.machine.delta import ConfigKey, MetadataDelta
from moldau.broker.metadata.machine.features import METADATA_VERSION, MINIMUM_METADATA_VERSION
from moldau.broker.metadata.machine.model import (
    Broker,
    ControllerNode,
    Partition,
    ResourceType,
    Topic,
)
from moldau.broker.raft.machine.errors import MetadataError
from moldau.wire.constants import NO_PRODUCER_ID
from moldau.wire.messages import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)

Record = Any
QuotaEntity = frozenset[tuple[str, str | None]]
ScramKey = tuple[int, str]


class MetadataImage:
    """Everything the metadata log says. Read it freely; change it only by `replay`.

    topics_by_id, topics_by_name  the same Topic objects under both keys
    brokers                       registrations by broker id, fenced ones included
    configs                       (resource type, resource name) -> {key: value}
    features                      finalized levels by name, metadata.version included
    next_producer_id              first id not yet given to a broker, -1 when none ever was
    quotas                        client quota entity -> {key: value}
    acls, tokens, scram           the records themselves, by id
    acl_ids                       the ids of ACLs by their content
    controllers                   registrations by controller id
    zk_migration_state            kept because a log from Kafka 3.x may say it
    """

    __slots__ = (
        "_transaction",
        "acl_ids",
        "acls",
        "brokers",
        "configs",
        "controllers",
        "features",
        "next_producer_id",
        "quotas",
        "scram",
        "tokens",
        "topics_by_id",
        "topics_by_name",
        "zk_migration_state",
    )

    def __init__(self) -> None:
        self.topics_by_id: dict[UUID, Topic] = {}
        self.topics_by_name: dict[str, Topic] = {}
        self.brokers: dict[int, Broker] = {}
        self.configs: dict[ConfigKey, dict[str, str]] = {}
        self.features: dict[str, int] = {}
        self.next_producer_id = NO_PRODUCER_ID
        self.quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.acls: dict[UUID, AccessControlEntryRecord] = {}
        self.acl_ids: dict[Acl, UUID] = {}
        self.scram: dict[ScramKey, UserScramCredentialRecord] = {}
        self.tokens: dict[str, DelegationTokenRecord] = {}
        self.controllers: dict[int, ControllerNode] = {}
        self.zk_migration_state = 0
        self._transaction: list[Record] | None = None

    @property
    def metadata_version(self) -> int:
        return self.features.get(METADATA_VERSION, MINIMUM_METADATA_VERSION)

    @property
    def in_transaction(self) -> bool:
        return self._transaction is not None

    def topic(self, name: str) -> Topic | None:
        return self.topics_by_name.get(name)

    def partition(self, topic_id: UUID, index: int) -> Partition | None:
        topic = self.topics_by_id.get(topic_id)
        return None if topic is None else topic.partitions.get(index)

    def topic_configs(self, name: str) -> Mapping[str, str]:
        return self.configs.get((ResourceType.TOPIC, name), {})

    def broker_configs(self, broker_id: int) -> Mapping[str, str]:
        """What is set for this one broker, without the cluster-wide defaults."""
        return self.configs.get((ResourceType.BROKER, str(broker_id)), {})

    def cluster_configs(self) -> Mapping[str, str]:
        """What is set for all brokers (resource name "")."""
        return self.configs.get((ResourceType.BROKER, ""), {})

    def replay(self, record: Record, delta: MetadataDelta) -> None:
        """Apply one committed record; MetadataError if it contradicts what came before it."""
        if self._transaction is not None:
            self._replay_in_transaction(record, delta)
            return
        handler = _HANDLERS.get(type(record))
        if handler is None:
            raise MetadataError(
                f"record type {type(record).__name__} is not known to this version of Moldau"
            )
        handler(self, record, delta)

    def replay_all(self, records: Iterable[Record], delta: MetadataDelta | None = None) -> None:
        delta = MetadataDelta() if delta is None else delta
        for record in records:
            self.replay(record, delta)

    def copy(self) -> MetadataImage:
        """An independent image; the immutable values inside are shared."""
        image = MetadataImage()
        for topic_id, topic in self.topics_by_id.items():
            image.topics_by_id[topic_id] = image.topics_by_name[topic.name] = topic.copy()
        image.brokers = dict(self.brokers)
        image.configs = {key: dict(values) for key, values in self.configs.items()}
        image.features = dict(self.features)
        image.next_producer_id = self.next_producer_id
        image.quotas = {key: dict(values) for key, values in self.quotas.items()}
        image.acls = dict(self.acls)
        image.acl_ids = dict(self.acl_ids)
        image.scram = dict(self.scram)
        image.tokens = dict(self.tokens)
        image.controllers = dict(self.controllers)
        image.zk_migration_state = self.zk_migration_state
        image._transaction = None if self._transaction is None else list(self._transaction)
        return image

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MetadataImage):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"MetadataImage(topics={len(self.topics_by_id)}, brokers={sorted(self.brokers)},"
            f" features={self.features})"
        )

    def _replay_in_transaction(self, record: Record, delta: MetadataDelta) -> None:
        pending = self._transaction
        if isinstance(record, BeginTransactionRecord):
            raise MetadataError("a metadata transaction begins inside another one")
        if isinstance(record, AbortTransactionRecord):
            self._transaction = None
        elif isinstance(record, EndTransactionRecord):
            self._transaction = None
            self.replay_all(pending or (), delta)
        elif pending is not None:
            pending.append(record)

    def _begin(self, record: BeginTransactionRecord, delta: MetadataDelta) -> None:
        self._transaction = []

    def _end_unopened(
        self, record: EndTransactionRecord | AbortTransactionRecord, delta: MetadataDelta
    ) -> None:
        raise MetadataError(f"{type(record).__name__} without an open metadata transaction")

    def _no_op(self, record: NoOpRecord, delta: MetadataDelta) -> None:
        pass

    def _topic(self, record: TopicRecord, delta: MetadataDelta) -> None:
        if record.topic_id in self.topics_by_id:
            raise MetadataError(f"duplicate TopicRecord for topic id {record.topic_id}")
        if record.name in self.topics_by_name:
            raise MetadataError(f"duplicate TopicRecord for topic {record.name!r}")
        topic = Topic(record.name, record.topic_id)
        self.topics_by_id[topic.id] = self.topics_by_name[topic.name] = topic
        delta.on_topic_created(topic)

    def _partition(self, record: PartitionRecord, delta: MetadataDelta) -> None:
        topic = self._known_topic(record.topic_id, record)
        before = topic.partitions.get(record.partition_id)
        topic.partitions[record.partition_id] = Partition.from_record(record)
        delta.on_partition_changed(topic, record.partition_id, before)

    def _partition_change(self, record: PartitionChangeRecord, delta: MetadataDelta) -> None:
        topic = self._known_topic(record.topic_id, record)
        before = topic.partitions.get(record.partition_id)
        if before is None:
            raise MetadataError(f"no partition {topic.name}-{record.partition_id} for {record!r}")
        topic.partitions[record.partition_id] = before.changed_by(record)
        delta.on_partition_changed(topic, record.partition_id, before)

    def _remove_topic(self, record: RemoveTopicRecord, delta: MetadataDelta) -> None:
        topic = self._known_topic(record.topic_id, record)
        del self.topics_by_id[topic.id]
        del self.topics_by_name[topic.name]
        self.configs.pop((ResourceType.TOPIC, topic.name), None)
        delta.on_topic_removed(topic)

    def _clear_elr(self, record: ClearElrRecord, delta: MetadataDelta) -> None:
        if record.topic_name:
            named = self.topics_by_name.get(record.topic_name)
            if named is None:
                raise MetadataError(f"no topic {record.topic_name!r} to clear the ELR of")
            topics: Iterable[Topic] = (named,)
        else:
            topics = self.topics_by_id.values()
        for topic in topics:
            for index, before in topic.partitions.items():
                if before.elr or before.last_known_elr:
                    topic.partitions[index] = before._replace(
                        elr=(),
                        last_known_elr=(),
                        partition_epoch=before.partition_epoch + 1,
                    )
                    delta.on_partition_changed(topic, index, before)

    def _known_topic(self, topic_id: UUID, record: Record) -> Topic:
        topic = self.topics_by_id.get(topic_id)
        if topic is None:
            raise MetadataError(f"no topic has the id in {record!r}")
        return topic

    def _config(self, record: ConfigRecord, delta: MetadataDelta) -> None:
        resource = (record.resource_type, record.resource_name)
        values = self.configs.get(resource)
        if record.value is not None:
            if values is None:
                values = self.configs[resource] = {}
            values[record.name] = record.value
        elif values is not None:
            values.pop(record.name, None)
            if not values:
                del self.configs[resource]
        delta.on_config_changed(resource, record.name)

    def _register_broker(self, record: RegisterBrokerRecord, delta: MetadataDelta) -> None:
        delta.on_broker_changed(record.broker_id, self.brokers.get(record.broker_id))
        self.brokers[record.broker_id] = Broker.from_record(record)

    def _unregister_broker(self, record: UnregisterBrokerRecord, delta: MetadataDelta) -> None:
        before = self._known_broker(record.broker_id, record.broker_epoch, record)
        delta.on_broker_changed(record.broker_id, before)
        del self.brokers[record.broker_id]

    def _change_broker(self, record: BrokerRegistrationChangeRecord, delta: MetadataDelta) -> None:
        before = self._known_broker(record.broker_id, record.broker_epoch, record)
        delta.on_broker_changed(record.broker_id, before)
        self.brokers[record.broker_id] = before.changed_by(record)

    def _fence(self, record: FenceBrokerRecord, delta: MetadataDelta) -> None:
        before = self._known_broker(record.id, record.epoch, record)
        delta.on_broker_changed(record.id, before)
        self.brokers[record.id] = replace(before, fenced=True)

    def _unfence(self, record: UnfenceBrokerRecord, delta: MetadataDelta) -> None:
        before = self._known_broker(record.id, record.epoch, record)
        delta.on_broker_changed(record.id, before)
        self.brokers[record.id] = replace(before, fenced=False)

    def _known_broker(self, broker_id: int, epoch: int, record: Record) -> Broker:
        broker = self.brokers.get(broker_id)
        if broker is None:
            raise MetadataError(f"no broker {broker_id} is registered for {record!r}")
        if broker.epoch != epoch:
            raise MetadataError(f"broker {broker_id} has epoch {broker.epoch}, unlike {record!r}")
        return broker

    def _feature(self, record: FeatureLevelRecord, delta: MetadataDelta) -> None:
        if record.feature_level == 0:
            self.features.pop(record.name, None)
        else:
            self.features[record.name] = record.feature_level
        delta.features.add(record.name)

    def _producer_ids(self, record: ProducerIdsRecord, delta: MetadataDelta) -> None:
        self.next_producer_id = record.next_producer_id
        delta.producer_ids_changed = True

    def _quota(self, record: ClientQuotaRecord, delta: MetadataDelta) -> None:
        entity = frozenset((item.entity_type, item.entity_name) for item in record.entity)
        values = self.quotas.setdefault(entity, {})
        if record.remove:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value
        if not values:
            del self.quotas[entity]
        delta.quotas_changed = True

    def _add_acl(self, record: AccessControlEntryRecord, delta: MetadataDelta) -> None:
        self._forget_acl(record.id)
        self.acls[record.id] = record
        self.acl_ids[Acl.of(record)] = record.id
        delta.on_acl_changed(record.id)

    def _remove_acl(self, record: RemoveAccessControlEntryRecord, delta: MetadataDelta) -> None:
        if not self._forget_acl(record.id):
            raise MetadataError(f"no ACL has the id in {record!r}")
        delta.on_acl_changed(record.id)

    def _forget_acl(self, acl_id: UUID) -> bool:
        record = self.acls.pop(acl_id, None)
        if record is None:
            return False
        acl = Acl.of(record)
        if self.acl_ids.get(acl) == acl_id:
            del self.acl_ids[acl]
        return True

    def _add_scram(self, record: UserScramCredentialRecord, delta: MetadataDelta) -> None:
        self.scram[(record.mechanism, record.name)] = record
        delta.scram_changed = True

    def _remove_scram(self, record: RemoveUserScramCredentialRecord, delta: MetadataDelta) -> None:
        if self.scram.pop((record.mechanism, record.name), None) is None:
            raise MetadataError(f"no SCRAM credential matches {record!r}")
        delta.scram_changed = True

    def _add_token(self, record: DelegationTokenRecord, delta: MetadataDelta) -> None:
        self.tokens[record.token_id] = record
        delta.tokens_changed = True

    def _remove_token(self, record: RemoveDelegationTokenRecord, delta: MetadataDelta) -> None:
        self.tokens.pop(record.token_id, None)
        delta.tokens_changed = True

    def _register_controller(self, record: RegisterControllerRecord, delta: MetadataDelta) -> None:
        self.controllers[record.controller_id] = ControllerNode.from_record(record)
        delta.controllers_changed = True

    def _zk_migration(self, record: ZkMigrationStateRecord, delta: MetadataDelta) -> None:
        self.zk_migration_state = record.zk_migration_state


_HANDLERS: dict[type, Callable[[MetadataImage, Any, MetadataDelta], None]] = {
    AbortTransactionRecord: MetadataImage._end_unopened,
    AccessControlEntryRecord: MetadataImage._add_acl,
    BeginTransactionRecord: MetadataImage._begin,
    BrokerRegistrationChangeRecord: MetadataImage._change_broker,
    ClearElrRecord: MetadataImage._clear_elr,
    ClientQuotaRecord: MetadataImage._quota,
    ConfigRecord: MetadataImage._config,
    DelegationTokenRecord: MetadataImage._add_token,
    EndTransactionRecord: MetadataImage._end_unopened,
    FeatureLevelRecord: MetadataImage._feature,
    FenceBrokerRecord: MetadataImage._fence,
    NoOpRecord: MetadataImage._no_op,
    PartitionChangeRecord: MetadataImage._partition_change,
    PartitionRecord: MetadataImage._partition,
    ProducerIdsRecord: MetadataImage._producer_ids,
    RegisterBrokerRecord: MetadataImage._register_broker,
    RegisterControllerRecord: MetadataImage._register_controller,
    RemoveAccessControlEntryRecord: MetadataImage._remove_acl,
    RemoveDelegationTokenRecord: MetadataImage._remove_token,
    RemoveTopicRecord: MetadataImage._remove_topic,
    RemoveUserScramCredentialRecord: MetadataImage._remove_scram,
    TopicRecord: MetadataImage._topic,
    UnfenceBrokerRecord: MetadataImage._unfence,
    UnregisterBrokerRecord: MetadataImage._unregister_broker,
    UserScramCredentialRecord: MetadataImage._add_scram,
    ZkMigrationStateRecord: MetadataImage._zk_migration,
}
