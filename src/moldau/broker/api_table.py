"""Which handler answers which API: the broker's table of contents.

ApiVersions answers from the same table, so an API that is not here is not advertised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from moldau.broker.config import BrokerConfig
from moldau.broker.coordinator.machine.topics import ImageTopics
from moldau.broker.coordinators import Coordinators
from moldau.broker.handlers.add_offsets_to_txn import AddOffsetsToTxnHandler
from moldau.broker.handlers.add_partitions_to_txn import AddPartitionsToTxnHandler
from moldau.broker.handlers.alter_configs import AlterConfigsHandler
from moldau.broker.handlers.alter_replica_log_dirs import AlterReplicaLogDirsHandler
from moldau.broker.handlers.alter_share_group_offsets import AlterShareGroupOffsetsHandler
from moldau.broker.handlers.api_versions import ApiVersionsHandler
from moldau.broker.handlers.consumer_group_describe import ConsumerGroupDescribeHandler
from moldau.broker.handlers.consumer_group_heartbeat import ConsumerGroupHeartbeatHandler
from moldau.broker.handlers.create_acls import ForwardedCreateAclsHandler
from moldau.broker.handlers.create_delegation_token import ForwardedCreateDelegationTokenHandler
from moldau.broker.handlers.create_partitions import ForwardedCreatePartitionsHandler
from moldau.broker.handlers.create_topics import ForwardedCreateTopicsHandler
from moldau.broker.handlers.delete_acls import ForwardedDeleteAclsHandler
from moldau.broker.handlers.delete_groups import DeleteGroupsHandler
from moldau.broker.handlers.delete_records import DeleteRecordsHandler
from moldau.broker.handlers.delete_share_group_offsets import DeleteShareGroupOffsetsHandler
from moldau.broker.handlers.delete_share_group_state import DeleteShareGroupStateHandler
from moldau.broker.handlers.describe_acls import DescribeAclsHandler
from moldau.broker.handlers.describe_client_quotas import DescribeClientQuotasHandler
from moldau.broker.handlers.describe_cluster import DescribeClusterHandler
from moldau.broker.handlers.describe_configs import DescribeConfigsHandler
from moldau.broker.handlers.describe_delegation_token import DescribeDelegationTokenHandler
from moldau.broker.handlers.describe_groups import DescribeGroupsHandler
from moldau.broker.handlers.describe_log_dirs import DescribeLogDirsHandler
from moldau.broker.handlers.describe_producers import DescribeProducersHandler
from moldau.broker.handlers.describe_share_group_offsets import DescribeShareGroupOffsetsHandler
from moldau.broker.handlers.describe_topic_partitions import DescribeTopicPartitionsHandler
from moldau.broker.handlers.describe_transactions import DescribeTransactionsHandler
from moldau.broker.handlers.describe_user_scram_credentials import (
    DescribeUserScramCredentialsHandler,
)
from moldau.broker.handlers.end_txn import EndTxnHandler
from moldau.broker.handlers.expire_delegation_token import ForwardedExpireDelegationTokenHandler
from moldau.broker.handlers.fetch import FetchHandler
from moldau.broker.handlers.find_coordinator import FindCoordinatorHandler
from moldau.broker.handlers.get_telemetry_subscriptions import GetTelemetrySubscriptionsHandler
from moldau.broker.handlers.heartbeat import HeartbeatHandler
from moldau.broker.handlers.incremental_alter_configs import IncrementalAlterConfigsHandler
from moldau.broker.handlers.init_producer_id import InitProducerIdHandler
from moldau.broker.handlers.initialize_share_group_state import InitializeShareGroupStateHandler
from moldau.broker.handlers.join_group import JoinGroupHandler
from moldau.broker.handlers.leave_group import LeaveGroupHandler
from moldau.broker.handlers.list_config_resources import ListConfigResourcesHandler
from moldau.broker.handlers.list_groups import ListGroupsHandler
from moldau.broker.handlers.list_offsets import ListOffsetsHandler
from moldau.broker.handlers.list_transactions import ListTransactionsHandler
from moldau.broker.handlers.metadata import MetadataHandler
from moldau.broker.handlers.offset_commit import OffsetCommitHandler
from moldau.broker.handlers.offset_delete import OffsetDeleteHandler
from moldau.broker.handlers.offset_fetch import OffsetFetchHandler
from moldau.broker.handlers.offset_for_leader_epoch import OffsetForLeaderEpochHandler
from moldau.broker.handlers.produce import ProduceHandler
from moldau.broker.handlers.push_telemetry import PushTelemetryHandler
from moldau.broker.handlers.read_share_group_state import ReadShareGroupStateHandler
from moldau.broker.handlers.read_share_group_state_summary import ReadShareGroupStateSummaryHandler
from moldau.broker.handlers.renew_delegation_token import ForwardedRenewDelegationTokenHandler
from moldau.broker.handlers.sasl_authenticate import SaslAuthenticateHandler
from moldau.broker.handlers.sasl_handshake import SaslHandshakeHandler
from moldau.broker.handlers.share_acknowledge import ShareAcknowledgeHandler
from moldau.broker.handlers.share_fetch import ShareFetchHandler
from moldau.broker.handlers.share_group_describe import ShareGroupDescribeHandler
from moldau.broker.handlers.share_group_heartbeat import ShareGroupHeartbeatHandler
from moldau.broker.handlers.streams_group_describe import StreamsGroupDescribeHandler
from moldau.broker.handlers.streams_group_heartbeat import StreamsGroupHeartbeatHandler
from moldau.broker.handlers.support.forwarded import Forward, Settled
from moldau.broker.handlers.sync_group import SyncGroupHandler
from moldau.broker.handlers.txn_offset_commit import TxnOffsetCommitHandler
from moldau.broker.handlers.write_share_group_state import WriteShareGroupStateHandler
from moldau.broker.handlers.write_txn_markers import WriteTxnMarkersHandler
from moldau.broker.log_moves import LogMoves
from moldau.broker.machine.supported import RACK_AWARE_SELECTOR
from moldau.broker.machine.telemetry import ClientTelemetry, Payload
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metrics.waiting import add_waiting_gauges
from moldau.broker.network.routes import Route
from moldau.broker.replication.manager import ReplicaManager
from moldau.broker.replication.service import ReplicationService
from moldau.broker.schemas.gate import SchemaGate
from moldau.broker.security.authorization.permissions import TopicNames
from moldau.broker.security.authorization.topic_guard import TopicGuard
from moldau.broker.share.manager import SharePartitionManager
from moldau.broker.shared import Shared
from moldau.broker.topic_creation import TopicCreation
from moldau.clock import Clock
from moldau.wire.apis import ApiKey

Routes = dict[ApiKey, Route]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a broker's handlers are made of."""

    shared: Shared
    forward: Forward
    """Has the active controller answer."""
    settled: Settled
    """Waits until this broker has, and serves, what the controller decided."""
    replicas: ReplicaManager
    replication: ReplicationService
    moves: LogMoves
    coordinators: Coordinators
    share_partitions: SharePartitionManager
    creation: TopicCreation
    telemetry: ClientTelemetry
    receive_telemetry: Callable[[Payload], None] | None
    """Gets what clients push; None: it is dropped."""
    topic_names: TopicNames

    @property
    def cluster_id(self) -> str:
        return self.shared.cluster_id

    @property
    def node_id(self) -> int:
        return self.shared.node_id

    @property
    def random_bytes(self) -> Callable[[int], bytes]:
        return self.shared.environment.random_bytes

    @property
    def clock(self) -> Clock:
        return self.shared.environment.clock

    def config(self) -> BrokerConfig:
        return self.shared.config

    def image(self) -> MetadataImage:
        return self.shared.metadata.image

    def controller_id(self) -> int:
        """The broker to send requests for the controller to: any forwards them; the active
        controller's own, if there is one, need not."""
        brokers, leader_id = self.image().brokers, self.shared.metadata.leader_id
        alive = sorted(broker.id for broker in brokers.values() if not broker.fenced)
        if leader_id in alive or not alive:
            return leader_id
        return alive[0]

    def serves_groups(self, protocol: str, feature: str) -> bool:
        """Whether groups of this protocol are enabled, and the cluster has the feature."""
        wanted = self.config()["group.coordinator.rebalance.protocols"]
        return protocol in wanted and self.shared.metadata.image.features.get(feature, 0) >= 1


TELEMETRY_APIS: Final = frozenset({ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY})


def broker_routes(parts: Parts) -> Routes:
    """The APIs of a broker's listener, for clients and other brokers."""
    routes = _data_routes(parts) | _transaction_routes(parts)
    routes |= _group_routes(parts) | _newer_group_routes(parts) | _share_routes(parts)
    routes |= _admin_routes(parts) | _controller_routes(parts) | _security_routes(parts)
    versions = ApiVersionsHandler(
        routes,
        parts.shared.feature_levels,
        # librdkafka logs a change of its instance id if these are listed without need.
        unadvertised=lambda: frozenset() if parts.telemetry.is_wanted else TELEMETRY_APIS,
    )
    routes[ApiKey.API_VERSIONS] = Route(versions.handle)
    return routes


def _data_routes(parts: Parts) -> Routes:
    loop = asyncio.get_running_loop()
    config, replicas, quotas = parts.config(), parts.replicas, parts.shared.quotas
    verifier, guard = parts.coordinators.verifier, None
    if parts.shared.authorization is not None:
        guard = TopicGuard(parts.shared.authorization, parts.topic_names)
    produce = ProduceHandler(
        replicas,
        loop=loop,
        clock=parts.clock,
        verifier=verifier,
        guard=guard,
        quotas=quotas,
        schemas=SchemaGate.of(config, replicas, parts.clock),
    )
    fetch = FetchHandler(
        replicas,
        loop=loop,
        clock=parts.clock,
        random_id=lambda: int.from_bytes(parts.random_bytes(4), "big") >> 1 or 1,
        session_slots_max=config["max.incremental.fetch.session.cache.slots"],
        fetch_max_bytes=config["fetch.max.bytes"],
        lag_ms_max=parts.replication.lag_ms_max,
        throttle=parts.replication.leader_throttle,
        rack_aware=_selects_by_rack(config),
        guard=guard,
        quotas=quotas,
    )
    if parts.shared.metrics is not None:
        add_waiting_gauges(
            parts.shared.metrics.registry,
            produce=produce.purgatory,
            fetch=fetch.purgatory,
            share_fetch=parts.share_partitions.purgatory,
            sessions=fetch.sessions,
        )
    return {
        ApiKey.PRODUCE: Route(produce.handle, raw=True, pipelined=True),
        ApiKey.FETCH: Route(fetch.handle, raw=True),
        ApiKey.LIST_OFFSETS: Route(ListOffsetsHandler(replicas).handle),
        ApiKey.DELETE_RECORDS: Route(DeleteRecordsHandler(replicas).handle),
        ApiKey.OFFSET_FOR_LEADER_EPOCH: Route(OffsetForLeaderEpochHandler(replicas).handle),
        ApiKey.DESCRIBE_PRODUCERS: Route(DescribeProducersHandler(replicas).handle),
        ApiKey.WRITE_TXN_MARKERS: Route(WriteTxnMarkersHandler(parts.coordinators.markers).handle),
    }


def _transaction_routes(parts: Parts) -> Routes:
    coordinators, topics = parts.coordinators, ImageTopics(parts.image)
    groups, transactions = coordinators.groups, coordinators.transactions
    init = InitProducerIdHandler(coordinators.producer_ids, transactions)
    add_partitions = AddPartitionsToTxnHandler(transactions, topics)
    add_offsets = AddOffsetsToTxnHandler(transactions, groups.partition_for)
    commit = TxnOffsetCommitHandler(groups, topics, parts.replicas, coordinators.verifier)
    return {
        ApiKey.INIT_PRODUCER_ID: Route(init.handle),
        ApiKey.ADD_PARTITIONS_TO_TXN: Route(add_partitions.handle, prompt=True),
        ApiKey.ADD_OFFSETS_TO_TXN: Route(add_offsets.handle, prompt=True),
        ApiKey.TXN_OFFSET_COMMIT: Route(commit.handle, prompt=True),
        ApiKey.END_TXN: Route(EndTxnHandler(transactions).handle, prompt=True),
        ApiKey.DESCRIBE_TRANSACTIONS: Route(DescribeTransactionsHandler(transactions).handle),
        ApiKey.LIST_TRANSACTIONS: Route(ListTransactionsHandler(transactions).handle),
    }


def _group_routes(parts: Parts) -> Routes:
    groups, topics = parts.coordinators.groups, ImageTopics(parts.image)
    find = FindCoordinatorHandler(topics, parts.creation.ensure_internal_topic)
    delete = DeleteGroupsHandler(groups, parts.coordinators.share_groups)
    return {
        ApiKey.FIND_COORDINATOR: Route(find.handle),
        ApiKey.JOIN_GROUP: Route(JoinGroupHandler(groups).handle),
        ApiKey.SYNC_GROUP: Route(SyncGroupHandler(groups).handle),
        ApiKey.HEARTBEAT: Route(HeartbeatHandler(groups).handle, prompt=True),
        ApiKey.LEAVE_GROUP: Route(LeaveGroupHandler(groups).handle),
        ApiKey.OFFSET_COMMIT: Route(OffsetCommitHandler(groups, topics).handle, prompt=True),
        ApiKey.OFFSET_FETCH: Route(OffsetFetchHandler(groups, topics).handle, prompt=True),
        ApiKey.OFFSET_DELETE: Route(OffsetDeleteHandler(groups, topics).handle),
        ApiKey.LIST_GROUPS: Route(ListGroupsHandler(groups).handle),
        ApiKey.DESCRIBE_GROUPS: Route(DescribeGroupsHandler(groups).handle),
        ApiKey.DELETE_GROUPS: Route(delete.handle),
    }


def _newer_group_routes(parts: Parts) -> Routes:
    groups, share = parts.coordinators.groups, parts.coordinators.share_groups
    consumer = parts.serves_groups("consumer", "group.version")
    streams = parts.serves_groups("streams", "streams.version")
    consume = ConsumerGroupHeartbeatHandler(
        groups, enabled=consumer, authorization=parts.shared.authorization
    )
    stream = StreamsGroupHeartbeatHandler(
        groups, enabled=streams, authorization=parts.shared.authorization
    )
    describe_streams = StreamsGroupDescribeHandler(groups, enabled=streams)
    share_heartbeat = ShareGroupHeartbeatHandler(share)
    return {
        ApiKey.CONSUMER_GROUP_HEARTBEAT: Route(consume.handle, prompt=True),
        ApiKey.CONSUMER_GROUP_DESCRIBE: Route(
            ConsumerGroupDescribeHandler(groups, enabled=consumer).handle
        ),
        ApiKey.STREAMS_GROUP_HEARTBEAT: Route(stream.handle, prompt=True),
        ApiKey.STREAMS_GROUP_DESCRIBE: Route(describe_streams.handle),
        ApiKey.SHARE_GROUP_HEARTBEAT: Route(share_heartbeat.handle, prompt=True),
        ApiKey.SHARE_GROUP_DESCRIBE: Route(ShareGroupDescribeHandler(share).handle),
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: Route(DescribeShareGroupOffsetsHandler(share).handle),
        ApiKey.ALTER_SHARE_GROUP_OFFSETS: Route(AlterShareGroupOffsetsHandler(share).handle),
        ApiKey.DELETE_SHARE_GROUP_OFFSETS: Route(DeleteShareGroupOffsetsHandler(share).handle),
    }


def _share_routes(parts: Parts) -> Routes:
    states, partitions = parts.coordinators.share_states, parts.share_partitions
    topics = ImageTopics(parts.image)
    acknowledge = ShareAcknowledgeHandler(partitions, topics)
    fetch = ShareFetchHandler(partitions, topics, fetch_max_bytes=parts.config()["fetch.max.bytes"])
    return {
        ApiKey.SHARE_FETCH: Route(fetch.handle, prompt=True),
        ApiKey.SHARE_ACKNOWLEDGE: Route(acknowledge.handle, prompt=True),
        ApiKey.INITIALIZE_SHARE_GROUP_STATE: Route(InitializeShareGroupStateHandler(states).handle),
        ApiKey.READ_SHARE_GROUP_STATE: Route(ReadShareGroupStateHandler(states).handle),
        ApiKey.WRITE_SHARE_GROUP_STATE: Route(WriteShareGroupStateHandler(states).handle),
        ApiKey.DELETE_SHARE_GROUP_STATE: Route(DeleteShareGroupStateHandler(states).handle),
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: Route(
            ReadShareGroupStateSummaryHandler(states).handle
        ),
    }


def _admin_routes(parts: Parts) -> Routes:
    """What this broker answers itself, from its metadata image."""
    image, cluster_id, shared = parts.image, parts.cluster_id, parts.shared
    metadata = MetadataHandler(
        image,
        node_id=parts.node_id,
        cluster_id=cluster_id,
        controller_id=parts.controller_id,
        auto_create=lambda: bool(parts.config().topics.auto_create_topics_enable),
        start_creation=parts.creation.start,
    )
    partitions_max = parts.config().topics.max_request_partition_size_limit
    partitions = DescribeTopicPartitionsHandler(image, partitions_max=partitions_max)
    cluster = DescribeClusterHandler(
        image, cluster_id=cluster_id, controller_id=parts.controller_id
    )
    describe = DescribeConfigsHandler(image, shared.configs, shared.loggers, node_id=parts.node_id)
    resources = ListConfigResourcesHandler(image)
    acls = DescribeAclsHandler(image, enabled=shared.uses_acls)
    subscriptions = GetTelemetrySubscriptionsHandler(
        parts.telemetry, elapsed_ms=parts.clock.elapsed_ms, random_bytes=parts.random_bytes
    )
    push = PushTelemetryHandler(
        parts.telemetry, elapsed_ms=parts.clock.elapsed_ms, receive=parts.receive_telemetry
    )
    return {
        ApiKey.METADATA: Route(metadata.handle),
        ApiKey.DESCRIBE_CLUSTER: Route(cluster.handle),
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: Route(partitions.handle),
        ApiKey.DESCRIBE_CONFIGS: Route(describe.handle),
        ApiKey.LIST_CONFIG_RESOURCES: Route(resources.handle),
        ApiKey.DESCRIBE_ACLS: Route(acls.handle),
        ApiKey.DESCRIBE_CLIENT_QUOTAS: Route(DescribeClientQuotasHandler(image).handle),
        ApiKey.DESCRIBE_LOG_DIRS: Route(DescribeLogDirsHandler(shared.logs, parts.config).handle),
        ApiKey.ALTER_REPLICA_LOG_DIRS: Route(AlterReplicaLogDirsHandler(parts.moves).handle),
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: Route(subscriptions.handle),
        ApiKey.PUSH_TELEMETRY: Route(push.handle),
    }


def _security_routes(parts: Parts) -> Routes:
    """Credentials and tokens; some of it the active controller decides."""
    forward, image, config = parts.forward, parts.image, parts.config
    return {
        ApiKey.SASL_HANDSHAKE: Route(SaslHandshakeHandler().handle),
        ApiKey.SASL_AUTHENTICATE: Route(SaslAuthenticateHandler().handle),
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Route(
            DescribeUserScramCredentialsHandler(image).handle
        ),
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Route(forward),
        ApiKey.CREATE_DELEGATION_TOKEN: Route(
            ForwardedCreateDelegationTokenHandler(forward).handle
        ),
        ApiKey.RENEW_DELEGATION_TOKEN: Route(ForwardedRenewDelegationTokenHandler(forward).handle),
        ApiKey.EXPIRE_DELEGATION_TOKEN: Route(
            ForwardedExpireDelegationTokenHandler(forward).handle
        ),
        ApiKey.DESCRIBE_DELEGATION_TOKEN: Route(
            DescribeDelegationTokenHandler(image, config).handle
        ),
    }


def _controller_routes(parts: Parts) -> Routes:
    """What the active controller decides."""
    forward = parts.forward
    create_topics = ForwardedCreateTopicsHandler(forward, parts.settled)
    create_partitions = ForwardedCreatePartitionsHandler(forward, parts.settled)
    create_acls = ForwardedCreateAclsHandler(forward, parts.settled)
    delete_acls = ForwardedDeleteAclsHandler(forward, parts.settled)
    alter_configs = AlterConfigsHandler(forward, node_id=parts.node_id)
    incremental_alter_configs = IncrementalAlterConfigsHandler(
        forward,
        parts.shared.loggers,
        node_id=parts.node_id,
        check_own=parts.shared.check_own_configs,
    )
    return {
        ApiKey.CREATE_TOPICS: Route(create_topics.handle),
        ApiKey.DELETE_TOPICS: Route(forward),
        ApiKey.CREATE_PARTITIONS: Route(create_partitions.handle),
        ApiKey.CREATE_ACLS: Route(create_acls.handle),
        ApiKey.DELETE_ACLS: Route(delete_acls.handle),
        ApiKey.ALTER_CONFIGS: Route(alter_configs.handle),
        ApiKey.INCREMENTAL_ALTER_CONFIGS: Route(incremental_alter_configs.handle),
        ApiKey.ALTER_CLIENT_QUOTAS: Route(forward),
        ApiKey.ELECT_LEADERS: Route(forward),
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: Route(forward),
        ApiKey.LIST_PARTITION_REASSIGNMENTS: Route(forward),
        ApiKey.UPDATE_FEATURES: Route(forward),
        ApiKey.UNREGISTER_BROKER: Route(forward),
        ApiKey.DESCRIBE_QUORUM: Route(forward),
        ApiKey.ADD_RAFT_VOTER: Route(forward),
        ApiKey.REMOVE_RAFT_VOTER: Route(forward),
    }


def _selects_by_rack(config: BrokerConfig) -> bool:
    selector = config["replica.selector.class"]
    return selector is not None and selector.endswith(RACK_AWARE_SELECTOR)
