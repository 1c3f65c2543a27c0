"""Which permission each API needs: all of them in one place.

None means that nothing is asked here: the API needs no permission, its handler asks (Produce and
Fetch know their topics only from the frame), or the controller asks with the client's principal
after the request was forwarded.
"""

from __future__ import annotations

from typing import Final

from moldau.broker.security.authorization.apis import (
    cluster,
    configs,
    data,
    group_offsets,
    groups,
    share,
    tokens,
    topics,
    transactions,
)
from moldau.broker.security.authorization.apis.cluster import on_cluster
from moldau.broker.security.authorization.apis.groups import on_group
from moldau.broker.security.authorization.permissions import Rule
from moldau.wire.acls import AclOperation
from moldau.wire.apis import ApiKey

ANYBODY: Final = None
IN_HANDLER: Final = None
BY_CONTROLLER: Final = None

BROKER_RULES: Final[dict[ApiKey, Rule | None]] = {
    ApiKey.API_VERSIONS: ANYBODY,
    ApiKey.SASL_HANDSHAKE: ANYBODY,
    ApiKey.SASL_AUTHENTICATE: ANYBODY,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: ANYBODY,
    ApiKey.PUSH_TELEMETRY: ANYBODY,
    # Records.
    ApiKey.PRODUCE: IN_HANDLER,
    ApiKey.FETCH: IN_HANDLER,
    ApiKey.LIST_OFFSETS: data.list_offsets,
    ApiKey.DELETE_RECORDS: data.delete_records,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: data.offset_for_leader_epoch,
    ApiKey.DESCRIBE_PRODUCERS: data.describe_producers,
    ApiKey.WRITE_TXN_MARKERS: data.write_txn_markers,
    # Transactions.
    ApiKey.INIT_PRODUCER_ID: transactions.init_producer_id,
    ApiKey.ADD_PARTITIONS_TO_TXN: transactions.add_partitions_to_txn,
    ApiKey.ADD_OFFSETS_TO_TXN: transactions.add_offsets_to_txn,
    ApiKey.TXN_OFFSET_COMMIT: transactions.txn_offset_commit,
    ApiKey.END_TXN: transactions.end_txn,
    ApiKey.DESCRIBE_TRANSACTIONS: transactions.describe_transactions,
    ApiKey.LIST_TRANSACTIONS: transactions.list_transactions,
    # Groups.
    ApiKey.FIND_COORDINATOR: group_offsets.find_coordinator,
    ApiKey.JOIN_GROUP: groups.join_group,
    ApiKey.SYNC_GROUP: groups.sync_group,
    ApiKey.HEARTBEAT: on_group(AclOperation.READ),
    ApiKey.LEAVE_GROUP: on_group(AclOperation.READ),
    ApiKey.OFFSET_COMMIT: group_offsets.offset_commit,
    ApiKey.OFFSET_FETCH: group_offsets.offset_fetch,
    ApiKey.OFFSET_DELETE: group_offsets.offset_delete,
    ApiKey.LIST_GROUPS: groups.list_groups,
    ApiKey.DESCRIBE_GROUPS: groups.describe_groups,
    ApiKey.DELETE_GROUPS: groups.delete_groups,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: groups.heartbeat_with_topics,
    ApiKey.CONSUMER_GROUP_DESCRIBE: groups.consumer_group_describe,
    ApiKey.STREAMS_GROUP_HEARTBEAT: groups.streams_group_heartbeat,
    ApiKey.STREAMS_GROUP_DESCRIBE: groups.streams_group_describe,
    # Share groups.
    ApiKey.SHARE_GROUP_HEARTBEAT: groups.heartbeat_with_topics,
    ApiKey.SHARE_GROUP_DESCRIBE: groups.share_group_describe,
    ApiKey.SHARE_FETCH: share.share_fetch,
    ApiKey.SHARE_ACKNOWLEDGE: share.share_acknowledge,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: share.describe_share_group_offsets,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: share.alter_share_group_offsets,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: share.delete_share_group_offsets,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: share.initialize_share_group_state,
    ApiKey.READ_SHARE_GROUP_STATE: share.read_share_group_state,
    ApiKey.WRITE_SHARE_GROUP_STATE: share.write_share_group_state,
    ApiKey.DELETE_SHARE_GROUP_STATE: share.delete_share_group_state,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: share.read_share_group_state_summary,
    # Topics, configurations and the cluster.
    ApiKey.METADATA: topics.metadata,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: topics.describe_topic_partitions,
    ApiKey.DESCRIBE_CLUSTER: cluster.describe_cluster,
    ApiKey.DESCRIBE_CONFIGS: configs.describe_configs,
    ApiKey.LIST_CONFIG_RESOURCES: on_cluster(AclOperation.DESCRIBE_CONFIGS),
    ApiKey.DESCRIBE_LOG_DIRS: cluster.describe_log_dirs,
    ApiKey.ALTER_REPLICA_LOG_DIRS: cluster.alter_replica_log_dirs,
    ApiKey.DESCRIBE_ACLS: on_cluster(AclOperation.DESCRIBE),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: cluster.describe_client_quotas,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: on_cluster(AclOperation.DESCRIBE),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: tokens.describe_delegation_token,
    # Forwarded.
    ApiKey.INCREMENTAL_ALTER_CONFIGS: configs.incremental_alter_configs_of_broker,
    ApiKey.ALTER_CONFIGS: BY_CONTROLLER,
    ApiKey.CREATE_TOPICS: BY_CONTROLLER,
    ApiKey.DELETE_TOPICS: BY_CONTROLLER,
    ApiKey.CREATE_PARTITIONS: BY_CONTROLLER,
    ApiKey.CREATE_ACLS: BY_CONTROLLER,
    ApiKey.DELETE_ACLS: BY_CONTROLLER,
    ApiKey.ELECT_LEADERS: BY_CONTROLLER,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: BY_CONTROLLER,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: BY_CONTROLLER,
    ApiKey.ALTER_CLIENT_QUOTAS: BY_CONTROLLER,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: BY_CONTROLLER,
    ApiKey.CREATE_DELEGATION_TOKEN: BY_CONTROLLER,
    ApiKey.RENEW_DELEGATION_TOKEN: BY_CONTROLLER,
    ApiKey.EXPIRE_DELEGATION_TOKEN: BY_CONTROLLER,
    ApiKey.UPDATE_FEATURES: BY_CONTROLLER,
    ApiKey.UNREGISTER_BROKER: BY_CONTROLLER,
    ApiKey.DESCRIBE_QUORUM: BY_CONTROLLER,
    ApiKey.ADD_RAFT_VOTER: BY_CONTROLLER,
    ApiKey.REMOVE_RAFT_VOTER: BY_CONTROLLER,
}

CONTROLLER_RULES: Final[dict[ApiKey, Rule | None]] = {
    ApiKey.API_VERSIONS: ANYBODY,
    ApiKey.SASL_HANDSHAKE: ANYBODY,
    ApiKey.SASL_AUTHENTICATE: ANYBODY,
    # Between nodes.
    ApiKey.ENVELOPE: cluster.envelope,
    ApiKey.FETCH: on_cluster(AclOperation.CLUSTER_ACTION),
    ApiKey.FETCH_SNAPSHOT: on_cluster(AclOperation.CLUSTER_ACTION),
    ApiKey.VOTE: on_cluster(AclOperation.CLUSTER_ACTION),
    ApiKey.BEGIN_QUORUM_EPOCH: on_cluster(AclOperation.CLUSTER_ACTION),
    ApiKey.END_QUORUM_EPOCH: on_cluster(AclOperation.CLUSTER_ACTION),
    ApiKey.UPDATE_RAFT_VOTER: on_cluster(AclOperation.CLUSTER_ACTION),
    ApiKey.BROKER_REGISTRATION: on_cluster(AclOperation.CLUSTER_ACTION),
    ApiKey.BROKER_HEARTBEAT: on_cluster(AclOperation.CLUSTER_ACTION),
    ApiKey.CONTROLLER_REGISTRATION: on_cluster(AclOperation.CLUSTER_ACTION),
    ApiKey.ALTER_PARTITION: on_cluster(AclOperation.CLUSTER_ACTION),
    ApiKey.ALLOCATE_PRODUCER_IDS: on_cluster(AclOperation.CLUSTER_ACTION),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: on_cluster(AclOperation.CLUSTER_ACTION),
    # The quorum.
    ApiKey.DESCRIBE_QUORUM: on_cluster(AclOperation.DESCRIBE),
    ApiKey.ADD_RAFT_VOTER: on_cluster(AclOperation.ALTER),
    ApiKey.REMOVE_RAFT_VOTER: on_cluster(AclOperation.ALTER),
    # Topics.
    ApiKey.CREATE_TOPICS: topics.create_topics,
    ApiKey.DELETE_TOPICS: topics.delete_topics,
    ApiKey.CREATE_PARTITIONS: topics.create_partitions,
    ApiKey.ELECT_LEADERS: on_cluster(AclOperation.ALTER),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: cluster.alter_partition_reassignments,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: on_cluster(AclOperation.DESCRIBE),
    # Configurations and the cluster.
    ApiKey.DESCRIBE_CONFIGS: configs.describe_configs,
    ApiKey.ALTER_CONFIGS: configs.alter_configs,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: configs.incremental_alter_configs,
    # Unlike a broker's, a controller's description of the cluster is for its operators.
    ApiKey.DESCRIBE_CLUSTER: on_cluster(AclOperation.ALTER),
    ApiKey.UPDATE_FEATURES: on_cluster(AclOperation.ALTER),
    ApiKey.UNREGISTER_BROKER: on_cluster(AclOperation.ALTER),
    # Security.
    ApiKey.DESCRIBE_ACLS: on_cluster(AclOperation.DESCRIBE),
    ApiKey.CREATE_ACLS: on_cluster(AclOperation.ALTER),
    ApiKey.DELETE_ACLS: on_cluster(AclOperation.ALTER),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: cluster.describe_client_quotas,
    ApiKey.ALTER_CLIENT_QUOTAS: on_cluster(AclOperation.ALTER_CONFIGS),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: on_cluster(AclOperation.DESCRIBE),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: on_cluster(AclOperation.ALTER),
    ApiKey.CREATE_DELEGATION_TOKEN: tokens.create_delegation_token,
    ApiKey.RENEW_DELEGATION_TOKEN: ANYBODY,
    ApiKey.EXPIRE_DELEGATION_TOKEN: ANYBODY,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: tokens.describe_delegation_token,
}
