"""The records that rebuild an image: what a snapshot holds.

Replaying them into an empty image gives an equal image. Features come first, because
metadata.version decides how the rest is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from moldau.broker.metadata.machine.features import METADATA_VERSION
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.model import Broker, ControllerNode, Partition, Topic
from moldau.broker.raft.machine.record_versions import record_version
from moldau.invariant import invariant
from moldau.wire.constants import NO_PRODUCER_ID
from moldau.wire.messages import (
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
    ZkMigrationStateRecord,
)


def image_to_records(image: MetadataImage) -> Iterator[Any]:
    invariant(not image.in_transaction, "a snapshot inside a metadata transaction")
    version = image.metadata_version
    yield from _features(image)
    for broker in image.brokers.values():
        yield broker_record(broker, version)
    for controller in image.controllers.values():
        yield controller_record(controller)
    for topic in image.topics_by_id.values():
        yield from _topic(topic, version)
    for (resource_type, resource_name), values in image.configs.items():
        for name, value in values.items():
            yield ConfigRecord(
                resource_type=resource_type, resource_name=resource_name, name=name, value=value
            )
    yield from _quotas(image)
    if image.next_producer_id != NO_PRODUCER_ID:
        yield ProducerIdsRecord(
            broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id
        )
    yield from image.acls.values()
    yield from image.scram.values()
    yield from image.tokens.values()
    if image.zk_migration_state:
        yield ZkMigrationStateRecord(zk_migration_state=image.zk_migration_state)


def _features(image: MetadataImage) -> Iterator[Any]:
    if METADATA_VERSION in image.features:
        yield FeatureLevelRecord(
            name=METADATA_VERSION, feature_level=image.features[METADATA_VERSION]
        )
    for name, level in image.features.items():
        if name != METADATA_VERSION:
            yield FeatureLevelRecord(name=name, feature_level=level)


def broker_record(broker: Broker, metadata_version: int) -> RegisterBrokerRecord:
    record = RegisterBrokerRecord(
        broker_id=broker.id,
        is_migrating_zk_broker=broker.is_migrating_zk_broker,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[
            RegisterBrokerRecord.BrokerEndpoint(
                name=item.name,
                host=item.host,
                port=item.port,
                security_protocol=item.security_protocol,
            )
            for item in broker.endpoints
        ],
        features=[
            RegisterBrokerRecord.BrokerFeature(
                name=name,
                min_supported_version=levels.min_version,
                max_supported_version=levels.max_version,
            )
            for name, levels in broker.features.items()
        ],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
    )
    version = record_version(record, metadata_version)
    if version >= 3:
        record.log_dirs = list(broker.log_dirs)
    if version >= 4:
        record.cordoned_log_dirs = list(broker.cordoned_log_dirs)
    return record


def controller_record(controller: ControllerNode) -> RegisterControllerRecord:
    return RegisterControllerRecord(
        controller_id=controller.id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=controller.zk_migration_ready,
        end_points=[
            RegisterControllerRecord.ControllerEndpoint(
                name=item.name,
                host=item.host,
                port=item.port,
                security_protocol=item.security_protocol,
            )
            for item in controller.endpoints
        ],
        features=[
            RegisterControllerRecord.ControllerFeature(
                name=name,
                min_supported_version=levels.min_version,
                max_supported_version=levels.max_version,
            )
            for name, levels in controller.features.items()
        ],
    )


def _topic(topic: Topic, metadata_version: int) -> Iterator[Any]:
    yield TopicRecord(name=topic.name, topic_id=topic.id)
    for index, partition in topic.partitions.items():
        yield partition_record(topic.id, index, partition, metadata_version)


def partition_record(
    topic_id: UUID, index: int, partition: Partition, metadata_version: int
) -> PartitionRecord:
    record = PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing_replicas),
        adding_replicas=list(partition.adding_replicas),
        leader=partition.leader,
        leader_recovery_state=int(partition.leader_recovery_state),
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
    )
    version = record_version(record, metadata_version)
    if version >= 1:
        record.directories = list(partition.directories)
    if version >= 2:
        # An absent list and an empty one mean the same; absent takes fewer bytes.
        record.eligible_leader_replicas = list(partition.elr) or None
        record.last_known_elr = list(partition.last_known_elr) or None
    return record


def _quotas(image: MetadataImage) -> Iterator[Any]:
    for entity, values in image.quotas.items():
        # The entity is a set; a fixed order makes equal images give equal snapshots.
        parts = sorted(entity, key=lambda part: part[0])
        for key, value in values.items():
            yield ClientQuotaRecord(
                entity=[
                    ClientQuotaRecord.EntityData(entity_type=entity_type, entity_name=name)
                    for entity_type, name in parts
                ],
                key=key,
                value=value,
                remove=False,
            )
