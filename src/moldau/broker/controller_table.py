"""Which handler answers which API on a controller's listener.

Brokers, other controllers and tools that use the controllers directly (KIP-919) connect here;
requests of clients arrive in envelopes. ApiVersions answers from the same table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from moldau.broker.config import BrokerConfig, DynamicBrokerConfig
from moldau.broker.handlers import alter_configs, incremental_alter_configs
from moldau.broker.handlers.add_raft_voter import AddRaftVoterHandler
from moldau.broker.handlers.allocate_producer_ids import AllocateProducerIdsHandler
from moldau.broker.handlers.alter_client_quotas import AlterClientQuotasHandler
from moldau.broker.handlers.alter_configs import AlterConfigsHandler
from moldau.broker.handlers.alter_partition import AlterPartitionHandler
from moldau.broker.handlers.alter_partition_reassignments import (
    AlterPartitionReassignmentsHandler,
)
from moldau.broker.handlers.alter_user_scram_credentials import AlterUserScramCredentialsHandler
from moldau.broker.handlers.api_versions import ApiVersionsHandler, FeatureLevels
from moldau.broker.handlers.assign_replicas_to_dirs import AssignReplicasToDirsHandler
from moldau.broker.handlers.begin_quorum_epoch import BeginQuorumEpochHandler
from moldau.broker.handlers.broker_heartbeat import BrokerHeartbeatHandler
from moldau.broker.handlers.broker_registration import BrokerRegistrationHandler
from moldau.broker.handlers.controller_registration import ControllerRegistrationHandler
from moldau.broker.handlers.create_acls import CreateAclsHandler
from moldau.broker.handlers.create_delegation_token import CreateDelegationTokenHandler
from moldau.broker.handlers.create_partitions import CreatePartitionsHandler
from moldau.broker.handlers.create_topics import CreateTopicsHandler
from moldau.broker.handlers.delete_acls import DeleteAclsHandler
from moldau.broker.handlers.delete_topics import DeleteTopicsHandler
from moldau.broker.handlers.describe_acls import DescribeAclsHandler
from moldau.broker.handlers.describe_cluster import DescribeControllersHandler
from moldau.broker.handlers.describe_configs import DescribeConfigsHandler
from moldau.broker.handlers.describe_quorum import DescribeQuorumHandler
from moldau.broker.handlers.elect_leaders import ElectLeadersHandler
from moldau.broker.handlers.end_quorum_epoch import EndQuorumEpochHandler
from moldau.broker.handlers.expire_delegation_token import ExpireDelegationTokenHandler
from moldau.broker.handlers.fetch_snapshot import FetchSnapshotHandler
from moldau.broker.handlers.incremental_alter_configs import IncrementalAlterConfigsHandler
from moldau.broker.handlers.list_partition_reassignments import ListPartitionReassignmentsHandler
from moldau.broker.handlers.metadata_fetch import MetadataFetchHandler
from moldau.broker.handlers.remove_raft_voter import RemoveRaftVoterHandler
from moldau.broker.handlers.renew_delegation_token import RenewDelegationTokenHandler
from moldau.broker.handlers.sasl_authenticate import SaslAuthenticateHandler
from moldau.broker.handlers.sasl_handshake import SaslHandshakeHandler
from moldau.broker.handlers.unregister_broker import UnregisterBrokerHandler
from moldau.broker.handlers.update_features import UpdateFeaturesHandler
from moldau.broker.handlers.update_raft_voter import UpdateRaftVoterHandler
from moldau.broker.handlers.vote import VoteHandler
from moldau.broker.loggers import BrokerLoggers
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import ConnectionInfo
from moldau.broker.network.routes import Route
from moldau.broker.security.quotas.shell import ClientQuotas
from moldau.times import ElapsedMs
from moldau.wire.apis import ApiKey

Routes = dict[ApiKey, Route]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerParts:
    """What a controller's handlers are made of."""

    cluster_id: str
    node_id: int
    config: Callable[[], BrokerConfig]
    configs: DynamicBrokerConfig
    metadata: MetadataShell
    on_heartbeat: Callable[[int, int, ConnectionInfo], None]
    loggers: BrokerLoggers
    feature_levels: Callable[[], FeatureLevels]
    elapsed_ms: Callable[[], ElapsedMs]
    uses_acls: bool
    """The node's authorizer uses the ACLs in the metadata log."""
    now_ms: Callable[[], int]
    random_bytes: Callable[[int], bytes]
    quotas: ClientQuotas

    def image(self) -> MetadataImage:
        return self.metadata.image


def controller_routes(parts: ControllerParts) -> Routes:
    """Everything but Envelope, which needs the dispatcher of these routes."""
    routes = _quorum_routes(parts) | _cluster_routes(parts) | _admin_routes(parts)
    routes |= _security_routes(parts)
    versions = ApiVersionsHandler(routes, parts.feature_levels, broker_listener=False)
    routes[ApiKey.API_VERSIONS] = Route(versions.handle)
    return routes


def _quorum_routes(parts: ControllerParts) -> Routes:
    raft = parts.metadata.service
    return {
        ApiKey.VOTE: Route(VoteHandler(raft).handle),
        ApiKey.BEGIN_QUORUM_EPOCH: Route(BeginQuorumEpochHandler(raft).handle),
        ApiKey.END_QUORUM_EPOCH: Route(EndQuorumEpochHandler(raft).handle),
        ApiKey.FETCH: Route(MetadataFetchHandler(raft).handle),
        ApiKey.FETCH_SNAPSHOT: Route(FetchSnapshotHandler(raft).handle),
        ApiKey.DESCRIBE_QUORUM: Route(DescribeQuorumHandler(raft).handle),
        ApiKey.ADD_RAFT_VOTER: Route(AddRaftVoterHandler(raft).handle),
        ApiKey.REMOVE_RAFT_VOTER: Route(RemoveRaftVoterHandler(raft).handle),
        ApiKey.UPDATE_RAFT_VOTER: Route(UpdateRaftVoterHandler(raft).handle),
    }


def _cluster_routes(parts: ControllerParts) -> Routes:
    """Requests of brokers and controllers to the active controller."""
    metadata, elapsed_ms = parts.metadata, parts.elapsed_ms
    return {
        ApiKey.BROKER_REGISTRATION: Route(
            BrokerRegistrationHandler(metadata, elapsed_ms=elapsed_ms).handle
        ),
        ApiKey.BROKER_HEARTBEAT: Route(
            BrokerHeartbeatHandler(
                metadata, elapsed_ms=elapsed_ms, on_heartbeat=parts.on_heartbeat
            ).handle
        ),
        ApiKey.UNREGISTER_BROKER: Route(UnregisterBrokerHandler(metadata).handle),
        ApiKey.CONTROLLER_REGISTRATION: Route(ControllerRegistrationHandler(metadata).handle),
        ApiKey.ALTER_PARTITION: Route(AlterPartitionHandler(metadata).handle),
        ApiKey.ALLOCATE_PRODUCER_IDS: Route(AllocateProducerIdsHandler(metadata).handle),
        ApiKey.ASSIGN_REPLICAS_TO_DIRS: Route(AssignReplicasToDirsHandler(metadata).handle),
    }


def _admin_routes(parts: ControllerParts) -> Routes:
    metadata, acls = parts.metadata, parts.uses_acls
    cluster = DescribeControllersHandler(
        parts.image, cluster_id=parts.cluster_id, controller_id=lambda: metadata.leader_id
    )
    describe = DescribeConfigsHandler(
        parts.image, parts.configs, parts.loggers, node_id=parts.node_id
    )
    alter = AlterConfigsHandler(
        alter_configs.deciding_controller(metadata), node_id=parts.node_id, is_controller=True
    )
    alter_incrementally = IncrementalAlterConfigsHandler(
        incremental_alter_configs.deciding_controller(metadata),
        parts.loggers,
        node_id=parts.node_id,
        is_controller=True,
    )
    return {
        ApiKey.CREATE_TOPICS: Route(CreateTopicsHandler(metadata, parts.quotas).handle),
        ApiKey.DELETE_TOPICS: Route(DeleteTopicsHandler(metadata, parts.quotas).handle),
        ApiKey.CREATE_PARTITIONS: Route(CreatePartitionsHandler(metadata, parts.quotas).handle),
        ApiKey.DESCRIBE_ACLS: Route(DescribeAclsHandler(parts.image, enabled=acls).handle),
        ApiKey.CREATE_ACLS: Route(CreateAclsHandler(metadata, enabled=acls).handle),
        ApiKey.DELETE_ACLS: Route(DeleteAclsHandler(metadata, enabled=acls).handle),
        ApiKey.ALTER_CONFIGS: Route(alter.handle),
        ApiKey.INCREMENTAL_ALTER_CONFIGS: Route(alter_incrementally.handle),
        ApiKey.ALTER_CLIENT_QUOTAS: Route(AlterClientQuotasHandler(metadata).handle),
        ApiKey.DESCRIBE_CONFIGS: Route(describe.handle),
        ApiKey.DESCRIBE_CLUSTER: Route(cluster.handle),
        ApiKey.ELECT_LEADERS: Route(ElectLeadersHandler(metadata).handle),
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: Route(
            AlterPartitionReassignmentsHandler(metadata).handle
        ),
        ApiKey.LIST_PARTITION_REASSIGNMENTS: Route(
            ListPartitionReassignmentsHandler(metadata).handle
        ),
        ApiKey.UPDATE_FEATURES: Route(UpdateFeaturesHandler(metadata).handle),
    }


def _security_routes(parts: ControllerParts) -> Routes:
    metadata, config, now_ms = parts.metadata, parts.config, parts.now_ms
    scram = AlterUserScramCredentialsHandler(metadata)
    create = CreateDelegationTokenHandler(
        metadata, config, now_ms=now_ms, random_bytes=parts.random_bytes
    )
    renew = RenewDelegationTokenHandler(metadata, config, now_ms=now_ms)
    expire = ExpireDelegationTokenHandler(metadata, config, now_ms=now_ms)
    return {
        ApiKey.SASL_HANDSHAKE: Route(SaslHandshakeHandler().handle),
        ApiKey.SASL_AUTHENTICATE: Route(SaslAuthenticateHandler().handle),
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Route(scram.handle),
        ApiKey.CREATE_DELEGATION_TOKEN: Route(create.handle),
        ApiKey.RENEW_DELEGATION_TOKEN: Route(renew.handle),
        ApiKey.EXPIRE_DELEGATION_TOKEN: Route(expire.handle),
    }
