"""The active controller: decides what records answer a request, and replays them.

Decisions read the controller's own image, which runs ahead of the committed one by what is appended
but not yet committed; so two decisions in a row see each other although neither is committed.
`replay` is the only mutator. Time, randomness and disk are not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from moldau.broker.metadata import (
    brokers,
    configs,
    feature_updates,
    partitions,
    producer_ids,
    topics,
)
from moldau.broker.metadata.config_rules import ConfigRules
from moldau.broker.metadata.decision import Decision
from moldau.broker.metadata.delta import MetadataDelta
from moldau.broker.metadata.elections import ElectionRules
from moldau.broker.metadata.features import (
    CONTROLLER_REGISTRATION_METADATA_VERSION,
    ELR_VERSION,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
    TRANSACTIONS_METADATA_VERSION,
)
from moldau.broker.metadata.image import MetadataImage
from moldau.broker.metadata.model import Broker, ControllerNode, Endpoint, ResourceType, Topic
from moldau.broker.metadata.placement import RandomSource
from moldau.broker.metadata.topics import has_collision_chars, unify_collision_chars
from moldau.broker.metadata.writer import controller_record
from moldau.invariant import invariant
from moldau.wire.messages import (
    AbortTransactionRecord,
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    BeginTransactionRecord,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    ConfigRecord,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    EndTransactionRecord,
    FeatureLevelRecord,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig:
    """What the controller takes from the node's configuration."""

    node_id: int
    cluster_id: str
    num_partitions: int = 1
    default_replication_factor: int = 1
    delete_topic_enable: bool = True
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False


class Controller:
    """Every method that decides returns a Decision or raises ApiError; none changes anything."""

    def __init__(
        self,
        config: ControllerConfig,
        rules: ConfigRules,
        random: RandomSource,
        image: MetadataImage | None = None,
        *,
        next_offset: int = 0,
        has_session: Callable[[Broker], bool] = lambda broker: False,
    ) -> None:
        """`has_session` says whether a registered broker still sends heartbeats."""
        self.config = config
        self.rules = rules
        self.random = random
        self.image = MetadataImage() if image is None else image
        self.next_offset = next_offset
        self.has_session = has_session
        self._colliding: dict[str, set[str]] = {}
        for name in self.image.topics_by_name:
            self._add_name(name)

    @property
    def node_id(self) -> int:
        return self.config.node_id

    @property
    def cluster_id(self) -> str:
        return self.config.cluster_id

    @property
    def num_partitions(self) -> int:
        return self.config.num_partitions

    @property
    def default_replication_factor(self) -> int:
        return self.config.default_replication_factor

    @property
    def delete_topic_enable(self) -> bool:
        return self.config.delete_topic_enable

    @property
    def elr_enabled(self) -> bool:
        return self.image.features.get(ELR_VERSION, 0) >= 1

    def election_rules(self, topic: Topic) -> ElectionRules:
        minimum = self._topic_config(topic.name, configs.MIN_INSYNC_REPLICAS)
        unclean = self._topic_config(topic.name, "unclean.leader.election.enable")
        return ElectionRules(
            min_isr=self.config.min_insync_replicas if minimum is None else int(minimum),
            elr_enabled=self.elr_enabled,
            unclean_enabled=(
                self.config.unclean_leader_election_enable
                if unclean is None
                else unclean.strip().lower() == "true"
            ),
        )

    def _topic_config(self, name: str, key: str) -> str | None:
        """The dynamic value in force, None when only static configuration decides."""
        image = self.image
        for resource in (
            (ResourceType.TOPIC, name),
            (ResourceType.BROKER, str(self.node_id)),
            (ResourceType.BROKER, ""),
        ):
            value = image.configs.get(resource, {}).get(key)
            if value is not None:
                return value
        return None

    def colliding_topic(self, name: str) -> str | None:
        """An existing topic that differs from `name` only in '.' and '_'."""
        if not has_collision_chars(name):
            return None
        return next(iter(self._colliding.get(unify_collision_chars(name), ())), None)

    def replay(self, records: Iterable[Any], *, base_offset: int) -> None:
        """Apply a batch's records; `base_offset` is the offset of the first."""
        invariant(base_offset >= self.next_offset, "metadata records are replayed in order")
        delta = MetadataDelta()
        offset = base_offset
        for record in records:
            self.image.replay(record, delta)
            offset += 1
        self.next_offset = offset
        for changed in delta.topics.values():
            if changed.created:
                self._add_name(changed.topic.name)
        for topic in delta.deleted_topics.values():
            self._remove_name(topic.name)

    def skip_to(self, next_offset: int) -> None:
        """Control records take offsets without being metadata."""
        invariant(next_offset >= self.next_offset, "metadata offsets never go back")
        self.next_offset = next_offset

    def _add_name(self, name: str) -> None:
        if has_collision_chars(name):
            self._colliding.setdefault(unify_collision_chars(name), set()).add(name)

    def _remove_name(self, name: str) -> None:
        if has_collision_chars(name):
            unified = unify_collision_chars(name)
            names = self._colliding[unified]
            names.discard(name)
            if not names:
                del self._colliding[unified]

    def activate(self, bootstrap: Sequence[Any]) -> Decision[None]:
        """What a new active controller writes first.

        Into an empty log the bootstrap records, as one metadata transaction where the version
        knows those; a transaction that a predecessor left open is aborted.
        """
        records: list[Any] = []
        if self.image.in_transaction:
            records.append(AbortTransactionRecord(reason="Controller failover"))
        if METADATA_VERSION not in self.image.features:
            records += self._bootstrap_records(bootstrap)
        return Decision(tuple(records), None)

    def _bootstrap_records(self, bootstrap: Sequence[Any]) -> list[Any]:
        levels = {
            record.name: record.feature_level
            for record in bootstrap
            if isinstance(record, FeatureLevelRecord)
        }
        records = list(bootstrap)
        if levels.get(ELR_VERSION, 0) >= 1:
            # With ELR the minimum decides who is eligible, so it must be one for all (KIP-966).
            records.append(
                ConfigRecord(
                    resource_type=ResourceType.BROKER,
                    resource_name="",
                    name=configs.MIN_INSYNC_REPLICAS,
                    value=str(self.config.min_insync_replicas),
                )
            )
        if levels.get(METADATA_VERSION, 0) < TRANSACTIONS_METADATA_VERSION:
            return records
        begin = BeginTransactionRecord(name="Bootstrap records")
        return [begin, *records, EndTransactionRecord()]

    def create_topics(
        self,
        request: CreateTopicsRequest,
        *,
        describable: Callable[[str], bool] = lambda name: True,
    ) -> Decision[CreateTopicsResponse]:
        return topics.create_topics(self, request, describable=describable)

    def delete_topics(
        self, request: DeleteTopicsRequest, *, api_version: int = 6
    ) -> Decision[DeleteTopicsResponse]:
        return topics.delete_topics(self, request, api_version=api_version)

    def create_partitions(
        self, request: CreatePartitionsRequest
    ) -> Decision[CreatePartitionsResponse]:
        return topics.create_partitions(self, request)

    def alter_configs(
        self, request: AlterConfigsRequest, *, receiver_id: int | None = None
    ) -> Decision[AlterConfigsResponse]:
        return configs.alter_configs(self, request, receiver_id=receiver_id)

    def incremental_alter_configs(
        self, request: IncrementalAlterConfigsRequest, *, receiver_id: int | None = None
    ) -> Decision[IncrementalAlterConfigsResponse]:
        return configs.incremental_alter_configs(self, request, receiver_id=receiver_id)

    def list_config_resources(
        self, request: ListConfigResourcesRequest, *, groups: Iterable[str] = ()
    ) -> ListConfigResourcesResponse:
        return configs.list_config_resources(self, request, groups=groups)

    def register_broker(
        self, request: BrokerRegistrationRequest
    ) -> Decision[BrokerRegistrationResponse]:
        return brokers.register_broker(self, request)

    def unfence_broker(self, *, broker_id: int, broker_epoch: int) -> Decision[None]:
        return brokers.unfence_broker(self, broker_id=broker_id, broker_epoch=broker_epoch)

    def fence_broker(self, *, broker_id: int, broker_epoch: int) -> Decision[None]:
        return brokers.fence_broker(self, broker_id=broker_id, broker_epoch=broker_epoch)

    def begin_controlled_shutdown(self, *, broker_id: int, broker_epoch: int) -> Decision[None]:
        return brokers.begin_controlled_shutdown(
            self, broker_id=broker_id, broker_epoch=broker_epoch
        )

    def take_log_dirs_offline(
        self, *, broker_id: int, broker_epoch: int, directories: Collection[UUID]
    ) -> Decision[None]:
        return brokers.take_log_dirs_offline(
            self, broker_id=broker_id, broker_epoch=broker_epoch, directories=directories
        )

    def cordon_log_dirs(
        self, *, broker_id: int, broker_epoch: int, directories: Collection[UUID]
    ) -> Decision[None]:
        return brokers.cordon_log_dirs(
            self, broker_id=broker_id, broker_epoch=broker_epoch, directories=directories
        )

    def unregister_broker(self, *, broker_id: int) -> Decision[None]:
        return brokers.unregister_broker(self, broker_id=broker_id)

    def register_controller(
        self, *, incarnation_id: UUID, endpoints: tuple[Endpoint, ...]
    ) -> Decision[None]:
        """Tell the cluster where this controller listens and what it supports (KIP-919)."""
        if self.image.metadata_version < CONTROLLER_REGISTRATION_METADATA_VERSION:
            return Decision((), None)
        node = ControllerNode(
            id=self.node_id,
            incarnation_id=incarnation_id,
            endpoints=endpoints,
            features=SUPPORTED_FEATURES,
        )
        return Decision((controller_record(node),), None)

    def allocate_producer_ids(
        self, request: AllocateProducerIdsRequest
    ) -> Decision[AllocateProducerIdsResponse]:
        brokers.check_broker_epoch(self, request.broker_id, request.broker_epoch)
        return producer_ids.allocate_producer_ids(
            self.image, broker_id=request.broker_id, broker_epoch=request.broker_epoch
        )

    def assign_replicas_to_dirs(
        self, request: AssignReplicasToDirsRequest
    ) -> Decision[AssignReplicasToDirsResponse]:
        return partitions.assign_replicas_to_dirs(self, request)

    def alter_partition(self, request: AlterPartitionRequest) -> Decision[AlterPartitionResponse]:
        return partitions.alter_partition(self, request)

    def update_features(
        self, request: UpdateFeaturesRequest, *, api_version: int = 2
    ) -> Decision[UpdateFeaturesResponse]:
        return feature_updates.update_features(self, request, api_version=api_version)
