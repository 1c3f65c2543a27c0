"""Builds the broker's coordinators, and passes them the partitions of their topics that it leads.

Invariants: a coordinator gets its partitions in the order of the metadata log, and only those that
this broker can serve.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from moldau.broker.calls.brokers import BrokerChannels, PartitionLeaders
from moldau.broker.calls.leader_calls import Brokers
from moldau.broker.calls.retries import pauses_of
from moldau.broker.config import BrokerConfig
from moldau.broker.coordinator.group.coordinator import GroupCoordinator
from moldau.broker.coordinator.group.machine.config import GroupConfig
from moldau.broker.coordinator.group.machine.settings import LayeredGroupSettings
from moldau.broker.coordinator.group.machine.share.events import InitializeShareState
from moldau.broker.coordinator.group.machine.streams.events import CreateInternalTopics
from moldau.broker.coordinator.group.share.service import ShareGroupService
from moldau.broker.coordinator.group.streams.creation import InternalTopicCreation
from moldau.broker.coordinator.latest_offsets import LatestOffsets
from moldau.broker.coordinator.machine.decision import Action
from moldau.broker.coordinator.machine.log import CoordinatorLog
from moldau.broker.coordinator.machine.topics import ImageClusterTopics, ImageTopics
from moldau.broker.coordinator.partition_log import PartitionLog
from moldau.broker.coordinator.producer_ids import (
    ControllerBlocks,
    ControllerCalls,
    ProducerIds,
)
from moldau.broker.coordinator.share.coordinator import ShareCoordinator
from moldau.broker.coordinator.share.machine.config import ShareCoordinatorConfig
from moldau.broker.coordinator.transaction.coordinator import TransactionCoordinator
from moldau.broker.coordinator.transaction.interface import MarkerWriter
from moldau.broker.coordinator.transaction.machine.config import TransactionConfig
from moldau.broker.coordinator.transaction.machine.values import Marker, MarkerResult
from moldau.broker.environment import Environment
from moldau.broker.faults import contained
from moldau.broker.machine.topics import (
    GROUP_OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.model import ResourceType, Topic
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.replication.deletion import delete_records
from moldau.broker.replication.manager import ReplicaManager
from moldau.broker.replication.partition import Partition
from moldau.broker.share.cluster_persister import ClusterShareCoordinator
from moldau.broker.share.persister import RetryingPersister
from moldau.broker.topic_creation import TopicCreation
from moldau.broker.transactions.cluster_markers import ClusterMarkers
from moldau.broker.transactions.cluster_partitions import ClusterTransactionPartitions
from moldau.broker.transactions.lost import lost_transactions
from moldau.broker.transactions.markers import LocalMarkers
from moldau.broker.transactions.verification import TransactionVerifier
from moldau.invariant import invariant
from moldau.peers.channel import Transport
from moldau.wire.compression import Compression
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.uuids import random_uuid

logger = logging.getLogger(__name__)

_COMPRESSION_KEYS = {
    GROUP_OFFSETS_TOPIC: "offsets.topic.compression.codec",
    SHARE_STATE_TOPIC: "share.coordinator.state.topic.compression.codec",
}


class Coordinator(Protocol):
    def on_elected(self, partition: int, leader_epoch: int, log: CoordinatorLog) -> None: ...

    def on_resigned(self, partition: int, leader_epoch: int | None = None) -> None: ...

    async def loaded(self) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the coordinators are built on."""

    node_id: int
    config: Callable[[], BrokerConfig]
    environment: Environment
    metadata: MetadataShell
    replicas: ReplicaManager
    creation: TopicCreation
    report_bug: Callable[[Exception], None]
    spawn: Callable[[Coroutine[Any, Any, object]], None]
    """Runs a background task until it is done or the broker stops."""
    controller: ControllerCalls
    broker_epoch: Callable[[], int]
    transport: Transport
    inter_broker_listener: str
    unclean: bool = False
    """The last stop was not a clean one, which syncs everything."""


class _LateMarkers:
    """Markers that wait until transactions that a power failure left open have been ended."""

    def __init__(self, markers: MarkerWriter, ready: asyncio.Event) -> None:
        self._markers = markers
        self._ready = ready

    async def write(self, markers: Sequence[Marker]) -> list[MarkerResult]:
        if not self._ready.is_set():
            await self._ready.wait()
        return await self._markers.write(markers)


class Coordinators:
    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._leaders = PartitionLeaders(
            lambda: around.metadata.image, around.inter_broker_listener
        )
        self._brokers: list[Brokers] = []
        self._known_topics: dict[str, Topic] = {}
        self.topics = ImageClusterTopics()
        self.settings = LayeredGroupSettings(self._group_configs, around.config)
        self.producer_ids = ProducerIds(
            ControllerBlocks(
                around.controller,
                around.environment.clock,
                node_id=around.node_id,
                broker_epoch=around.broker_epoch,
            )
        )
        self.share_states = self._share_coordinator()
        share_coordinators = ClusterShareCoordinator(self.share_states, self._new_brokers())
        self.persister = RetryingPersister(
            share_coordinators,
            lambda: around.creation.ensure_internal_topic(SHARE_STATE_TOPIC),
            pauses_of(around.environment.clock),
        )
        self._latest_offsets = LatestOffsets(
            around.replicas, self._new_brokers(), around.environment.clock
        )
        self.groups = self._group_coordinator()
        self.share_groups = self._share_group_service()
        self._internal_topics = InternalTopicCreation(
            around.creation.create_topics, self._report_internal_topics
        )
        self.markers = LocalMarkers(
            around.replicas,
            self.groups,
            loop=asyncio.get_running_loop(),
            clock=around.environment.clock,
            timeout_ms=self._request_timeout_ms,
        )
        self._cluster_markers = ClusterMarkers(self.markers, self._new_brokers())
        self._lost_transactions_ended = asyncio.Event()
        self.transactions = self._transaction_coordinator()
        self._transaction_partitions = ClusterTransactionPartitions(
            self.transactions, self._new_brokers()
        )
        self.verifier = self._transaction_verifier()
        self._by_topic: Mapping[str, Coordinator] = {
            GROUP_OFFSETS_TOPIC: self.groups,
            TRANSACTION_STATE_TOPIC: self.transactions,
            SHARE_STATE_TOPIC: self.share_states,
        }

    # Building.

    def _new_brokers(self) -> Brokers:
        """The brokers, with channels for one purpose."""
        brokers = Brokers(
            node_id=self._around.node_id,
            leaders=self._leaders,
            channels=BrokerChannels(self._around.transport, self._leaders),
            timeout_ms=self._request_timeout_ms,
        )
        self._brokers.append(brokers)
        return brokers

    def _request_timeout_ms(self) -> int:
        return int(self._around.config()["request.timeout.ms"])

    def _group_coordinator(self) -> GroupCoordinator:
        environment = self._around.environment
        return GroupCoordinator(
            GroupConfig.of(self._around.config()),
            topics=self.topics,
            settings=self.settings,
            partition_count=lambda: self._partition_count(GROUP_OFFSETS_TOPIC, "offsets.topic"),
            report_bug=self._around.report_bug,
            perform=self._perform_for_groups,
            clock=environment.clock,
            new_uuid=lambda: random_uuid(environment.random_bytes(16)),
        )

    def _share_group_service(self) -> ShareGroupService:
        metadata = self._around.metadata
        return ShareGroupService(
            self.groups.runtime,
            self.persister,
            self.topics,
            partition_for=self.groups.partition_for,
            section=lambda shard: shard.share,
            latest_offset=self._latest_offsets.latest_offset,
            enabled=lambda: metadata.image.features.get("share.version", 0) >= 1,
        )

    def _perform_for_groups(self, action: Action) -> None:
        match action:
            case InitializeShareState():
                self.share_groups.perform(action)
            case CreateInternalTopics():
                self._internal_topics.start(action)
            case _:
                invariant(False, f"{action!r} is not an action of groups")

    def _report_internal_topics(self, group_id: str, errors: Mapping[str, str]) -> None:
        now_ms = self._around.environment.clock.now_ms()
        self.groups.report_internal_topics(group_id, errors, now_ms)

    def _transaction_coordinator(self) -> TransactionCoordinator:
        metadata = self._around.metadata
        return TransactionCoordinator(
            TransactionConfig.of(self._around.config()),
            partition_count=lambda: self._partition_count(
                TRANSACTION_STATE_TOPIC, "transaction.state.log"
            ),
            producer_ids=self.producer_ids,
            markers=_LateMarkers(self._cluster_markers, self._lost_transactions_ended),
            topics=ImageTopics(lambda: metadata.image),
            transaction_version=lambda: metadata.image.features.get("transaction.version", 0),
            report_bug=self._around.report_bug,
            clock=self._around.environment.clock,
            seen_epochs=self._seen_epochs,
        )

    def _seen_epochs(self, producer_ids: Set[int]) -> dict[int, int]:
        newest: dict[int, int] = {}
        if self._transaction_log_is_replicated():
            # A new leader has everything that was committed, so no partition has seen newer epochs.
            return newest
        for partition in self._around.replicas.partitions():
            entries = partition.log.producers.entries
            for producer_id in producer_ids & entries.keys():
                epoch = entries[producer_id].epoch
                newest[producer_id] = max(newest.get(producer_id, epoch), epoch)
        return newest

    def _transaction_verifier(self) -> TransactionVerifier:
        config = self._around.config()
        return TransactionVerifier(
            self._transaction_partitions,
            enabled=lambda: bool(
                self._around.config()["transaction.partition.verification.enable"]
            ),
            retry_backoff_ms=config["add.partitions.to.txn.retry.backoff.ms"],
            retry_time_ms=min(
                config["add.partitions.to.txn.retry.backoff.max.ms"], config["request.timeout.ms"]
            ),
            clock=self._around.environment.clock,
        )

    def _share_coordinator(self) -> ShareCoordinator:
        return ShareCoordinator(
            ShareCoordinatorConfig.of(self._around.config()),
            partition_count=lambda: self._partition_count(
                SHARE_STATE_TOPIC, "share.coordinator.state.topic"
            ),
            topics=self.topics,
            delete_records=self._delete_share_states,
            report_bug=self._around.report_bug,
            clock=self._around.environment.clock,
        )

    def _partition_count(self, internal_topic: str, keys: str) -> int:
        """How many partitions the topic has, or will have when it is created."""
        topic = self._around.metadata.image.topic(internal_topic)
        if topic is None:
            return int(self._around.config()[f"{keys}.num.partitions"])
        return len(topic.partitions)

    def _group_configs(self, group_id: str) -> Mapping[str, str]:
        return self._around.metadata.image.configs.get((ResourceType.GROUP, group_id), {})

    def _delete_share_states(self, index: int, offset: int) -> None:
        partition = self._around.replicas.find(SHARE_STATE_TOPIC, index)
        if partition is None:
            raise ApiError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"{SHARE_STATE_TOPIC}-{index} is not on this broker",
            )
        delete_records(partition, offset)

    # Changes of the metadata.

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self.topics.apply(delta, image)
        for brokers in self._brokers:
            brokers.channels.apply(delta, image)
        for name, coordinator in self._by_topic.items():
            topic, former = image.topic(name), self._known_topics.get(name)
            if former is not None and (topic is None or topic.id != former.id):
                # First, as the leader epochs of a recreated topic start from 0 again.
                for index in former.partitions:
                    contained(f"the end of {name}-{index}", coordinator.on_resigned, index)
                del self._known_topics[name]
            if topic is None:
                continue
            self._known_topics[name] = topic
            if delta.from_snapshot:
                self._pass_on(coordinator, topic, list(topic.partitions))
            elif changed := delta.topics.get(topic.id):
                self._pass_on(coordinator, topic, list(changed.before))
        if delta.deleted_topics:
            self._forget(delta.deleted_topics)

    def _pass_on(self, coordinator: Coordinator, topic: Topic, indexes: list[int]) -> None:
        for index in indexes:
            state = topic.partitions[index]
            partition = self._around.replicas.find(topic.name, index)
            leads = state.leader == self._around.node_id
            # Its log may be on a disk that has failed, until another leader is elected.
            what = f"a change of the leader of {topic.name}-{index}"
            if leads and partition is not None and partition.error is None:
                log = self._log_of(partition)
                contained(what, coordinator.on_elected, index, state.leader_epoch, log)
            else:
                contained(what, coordinator.on_resigned, index, state.leader_epoch)

    def _log_of(self, partition: Partition) -> CoordinatorLog:
        codec = _COMPRESSION_KEYS.get(partition.topic)
        return PartitionLog(
            partition,
            compression=Compression.NONE
            if codec is None
            else Compression(self._around.config()[codec]),
            acks_all=partition.topic == TRANSACTION_STATE_TOPIC,
        )

    def _forget(self, deleted: Mapping[UUID, Topic]) -> None:
        """Delete the offsets of deleted topics, which a later topic of the name must not have."""
        names = {topic.name: topic_id for topic_id, topic in deleted.items()}
        ids = set(deleted)
        self._around.spawn(self.groups.on_topics_deleted(names))
        self._around.spawn(self.share_groups.on_topics_deleted(ids))
        self._around.spawn(self.share_states.on_topics_deleted(ids))

    def _transaction_log_is_replicated(self) -> bool:
        topic = self._around.metadata.image.topic(TRANSACTION_STATE_TOPIC)
        return topic is not None and any(
            len(state.replicas) > 1 for state in topic.partitions.values()
        )

    # Start and stop.

    async def loaded(self) -> None:
        """Wait until everything led here is served."""
        await asyncio.gather(*(each.loaded() for each in self._by_topic.values()))
        await self._end_lost_transactions()
        self._lost_transactions_ended.set()

    async def _end_lost_transactions(self) -> None:
        """End transactions that a power failure left open and that no coordinator knows."""
        around = self._around
        topic = around.metadata.image.topic(TRANSACTION_STATE_TOPIC)
        leaders = set() if topic is None else {each.leader for each in topic.partitions.values()}
        if not around.unclean or leaders - {around.node_id}:
            # What another broker coordinates cannot be decided here.
            return
        if self._transaction_log_is_replicated():
            # A new leader knows all transactions, and ends them.
            return
        known = self.transactions.transactions()
        if known is None:
            return
        for marker in list(lost_transactions(around.replicas.partitions(), known)):
            (result,) = await self.markers.write([marker])
            logger.warning(
                "the coordinator lost a transaction of producer %d, epoch %d, in a power failure: "
                "%s in %s",
                marker.producer_id,
                marker.producer_epoch,
                "committed" if marker.committed else "aborted",
                {f"{name}-{index}": error.name for (name, index), error in result.items()},
            )

    def close(self) -> None:
        """Fail requests of members that wait for others, so that they find the new coordinator."""
        self.share_groups.close()
        self.producer_ids.close()
        for coordinator in self._by_topic.values():
            coordinator.close()
        for brokers in self._brokers:
            brokers.channels.close()
