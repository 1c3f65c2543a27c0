"""The active controller: decides what records answer a request, and replays them.

Decisions read the controller's own image, which runs ahead of the committed one by what is appended
but not yet committed; so two decisions in a row see each other although neither is committed.
`replay` is the only mutator of replicated state; what is known from heartbeats alone lives in
`heartbeats` while the controller is active. Time, randomness and disk are not known here.

In a cluster the shell calls `lead(now_ms)` when this controller becomes the active one and
`resign()` when it no longer is. In between it sleeps until `due_at_ms()` and then runs what
`on_time(now_ms)` decides until that returns None; every heartbeat and registration may move
`due_at_ms`. A single node needs none of this: without `lead` nobody is ever fenced for silence.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any
from uuid import UUID

from moldau.broker.metadata.machine import (
    broker_lifecycle,
    brokers,
    configs,
    feature_updates,
    leadership,
    partitions,
    producer_ids,
    reassignments,
    topics,
)
from moldau.broker.metadata.machine.config_rules import ConfigRules
from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.elections import ElectionRules
from moldau.broker.metadata.machine.features import (
    CONTROLLER_REGISTRATION_METADATA_VERSION,
    ELR_VERSION,
    METADATA_VERSION,
    SHRINK_WITHOUT_EPOCH_METADATA_VERSION,
    SUPPORTED_FEATURES,
    TRANSACTIONS_METADATA_VERSION,
)
from moldau.broker.metadata.machine.heartbeats import BrokerHeartbeats
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.model import (
    Broker,
    ControllerNode,
    Endpoint,
    ResourceType,
    Topic,
    endpoints_from,
    features_from,
)
from moldau.broker.metadata.machine.partition_index import PartitionIndex
from moldau.broker.metadata.machine.periodic import PeriodicTasks, fence_expired
from moldau.broker.metadata.machine.placement import RandomSource
from moldau.broker.metadata.machine.topics import has_collision_chars, unify_collision_chars
from moldau.broker.metadata.machine.view import ControllerConfig
from moldau.broker.metadata.machine.writer import controller_record
from moldau.broker.raft.machine.record_versions import DIRECTORY_METADATA_VERSION
from moldau.invariant import invariant
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    AbortTransactionRecord,
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    BeginTransactionRecord,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    ConfigRecord,
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    EndTransactionRecord,
    FeatureLevelRecord,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    RegisterBrokerRecord,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)


class Controller:
    """Every method that decides returns a Decision or raises ApiError; none changes what is
    replicated."""

    def __init__(
        self,
        config: ControllerConfig,
        rules: ConfigRules,
        random: RandomSource,
        image: MetadataImage | None = None,
        *,
        next_offset: int = 0,
    ) -> None:
        self.config = config
        self.rules = rules
        self.random = random
        self.image = MetadataImage() if image is None else image
        self.next_offset = next_offset
        # The quorum's own feature level; it is not in the image but in control records.
        self.kraft_version = 0
        self.check_kraft_upgrade: Callable[[int], None] = _no_quorum_to_upgrade
        """Raises ApiError if the quorum cannot go to that level; given by who knows the quorum."""
        self.index = PartitionIndex(self.image.topics_by_id.values())
        self.heartbeats: BrokerHeartbeats | None = None
        self._periodic: PeriodicTasks | None = None
        # Where a registration was loaded from is not known, only that it is before this offset.
        self._loaded_offset = next_offset - 1
        self._registration_offsets: dict[int, int] = {}
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
        min_isr = self.config.min_insync_replicas if minimum is None else int(minimum)
        first = topic.partitions.get(0)
        version = self.image.metadata_version
        return ElectionRules(
            min_isr=min_isr if first is None else min(min_isr, len(first.replicas)),
            elr_enabled=self.elr_enabled,
            new_epoch_on_shrink=version < SHRINK_WITHOUT_EPOCH_METADATA_VERSION,
            directories_known=version >= DIRECTORY_METADATA_VERSION,
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
            if isinstance(record, RegisterBrokerRecord):
                self._registration_offsets[record.broker_id] = offset
            offset += 1
        self.next_offset = offset
        for changed in delta.topics.values():
            if changed.created:
                self._add_name(changed.topic.name)
            for index in changed.before:
                self.index.update(changed.topic.id, index, changed.topic.partitions[index])
        for topic in delta.deleted_topics.values():
            self._remove_name(topic.name)
            self.index.remove_topic(topic.id)
        for broker_id, before in delta.brokers.items():
            self._follow_registration(broker_id, before)

    def _follow_registration(self, broker_id: int, before: Broker | None) -> None:
        broker = self.image.brokers.get(broker_id)
        if broker is None:
            self._registration_offsets.pop(broker_id, None)
        if self.heartbeats is None:
            return
        if broker is None or (before is not None and before.epoch != broker.epoch):
            self.heartbeats.remove(broker_id)
        if broker is not None:
            self.heartbeats.register(broker_id, fenced=broker.fenced)

    def skip_to(self, next_offset: int) -> None:
        """Control records take offsets without being metadata."""
        invariant(next_offset >= self.next_offset, "metadata offsets never go back")
        self.next_offset = next_offset

    # Being the active one ---------------------------------------------------------------

    def lead(self, now_ms: int, *, departed: Collection[int] = ()) -> None:
        """Listen for heartbeats from now on.

        Everybody who is not fenced has a session to begin with, except brokers in `departed`,
        whose end is certain: the former life of the broker that shares this process.
        """
        heartbeats = BrokerHeartbeats(session_timeout_ms=self.config.broker_session_timeout_ms)
        for broker in self.image.brokers.values():
            heartbeats.register(broker.id, fenced=broker.fenced)
            if not broker.fenced and broker.id not in departed:
                heartbeats.contact(broker.id, broker.epoch, now_ms=now_ms)
        self.heartbeats = heartbeats
        self._periodic = PeriodicTasks(self.config, now_ms=now_ms)

    def resign(self) -> None:
        """Another controller is the active one."""
        self.heartbeats = self._periodic = None

    def due_at_ms(self) -> int | None:
        """When `on_time` has something to do next, None while this controller does not lead."""
        if self.heartbeats is None or self._periodic is None:
            return None
        due = (self.heartbeats.expires_at_ms(), self._periodic.due_at_ms())
        return min((each for each in due if each is not None), default=None)

    def on_time(self, now_ms: int) -> Decision[None] | None:
        """The next thing that time has made due, None if there is none now."""
        if self.heartbeats is None or self._periodic is None:
            return None
        fencing = fence_expired(self, self.heartbeats, now_ms)
        return self._periodic.on_time(self, now_ms) if fencing is None else fencing

    def was_away(self, now_ms: int) -> None:
        """This process did nothing for a while: what brokers said meanwhile is still to be heard,
        so nobody is fenced for it."""
        if self.heartbeats is not None:
            self.heartbeats.renew_all(now_ms=now_ms)

    def on_broker_disconnected(self, broker_id: int, broker_epoch: int) -> bool:
        """The connection over which the heartbeats of this incarnation came has closed; whether it
        still has a session."""
        return self.heartbeats is not None and self.heartbeats.disconnected(broker_id, broker_epoch)

    def is_silent(self, broker: Broker, now_ms: int) -> bool:
        """Whether a registered broker has neither a connection here nor made another one."""
        return self.heartbeats is None or self.heartbeats.is_silent(broker.id, now_ms=now_ms)

    def has_session(self, broker: Broker, now_ms: int) -> bool:
        """Whether a registered broker still sends heartbeats."""
        return self.heartbeats is not None and self.heartbeats.has_session(
            broker.id, broker.epoch, now_ms=now_ms
        )

    def registration_offset(self, broker_id: int) -> int:
        """A broker that has read the metadata up to here has seen itself registered."""
        return self._registration_offsets.get(broker_id, self._loaded_offset)

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
        return configs.list_config_resources(self.image, request, groups=groups)

    def register_broker(
        self, request: BrokerRegistrationRequest, *, now_ms: int = 0, api_version: int = 3
    ) -> Decision[BrokerRegistrationResponse]:
        return brokers.register_broker(self, request, now_ms=now_ms, api_version=api_version)

    def process_heartbeat(
        self, request: BrokerHeartbeatRequest, *, now_ms: int
    ) -> Decision[BrokerHeartbeatResponse]:
        return broker_lifecycle.process_heartbeat(self, request, now_ms=now_ms)

    def fence_dead(self, *, broker_id: int, broker_epoch: int) -> Decision[None]:
        return broker_lifecycle.fence_dead(self, broker_id=broker_id, broker_epoch=broker_epoch)

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

    def register_remote_controller(
        self, request: ControllerRegistrationRequest
    ) -> Decision[ControllerRegistrationResponse]:
        """Another controller of the quorum says so of itself."""
        if self.image.metadata_version < CONTROLLER_REGISTRATION_METADATA_VERSION:
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION,
                "The current MetadataVersion is too old to support controller registrations.",
            )
        node = ControllerNode(
            id=request.controller_id,
            incarnation_id=request.incarnation_id,
            endpoints=endpoints_from(request.listeners),
            features=features_from(request.features),
        )
        response = ControllerRegistrationResponse(error_message=None)
        return Decision((controller_record(node),), response)

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

    def elect_leaders(self, request: ElectLeadersRequest) -> Decision[ElectLeadersResponse]:
        return leadership.elect_leaders(self, request)

    def alter_partition_reassignments(
        self, request: AlterPartitionReassignmentsRequest
    ) -> Decision[AlterPartitionReassignmentsResponse]:
        return reassignments.alter_partition_reassignments(self, request)

    def list_partition_reassignments(
        self, request: ListPartitionReassignmentsRequest
    ) -> ListPartitionReassignmentsResponse:
        return reassignments.list_partition_reassignments(self, request)

    def update_features(
        self, request: UpdateFeaturesRequest, *, api_version: int = 2
    ) -> Decision[UpdateFeaturesResponse]:
        return feature_updates.update_features(self, request, api_version=api_version)


def _no_quorum_to_upgrade(level: int) -> None:
    raise ApiError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Invalid upgrade of kraft.version to {level}: this controller leads no quorum",
    )
