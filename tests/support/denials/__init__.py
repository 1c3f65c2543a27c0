"""A request of every API, and the permissions that it needs: the table of two tests.

Requests are such that they change nothing, also where they are allowed: partitions, groups and
transactions that do not exist, or a check only. The topic is `t`, the group `g`, the transactional
id `x`.
"""

from __future__ import annotations

from moldau.wire import messages as m
from moldau.wire.acls import AclOperation as Op
from moldau.wire.apis import ApiKey
from support.denials.admin import ADMIN, FORWARDED, FORWARDED_SECURITY, SECURITY, configs
from support.denials.data import DATA, TRANSACTIONS, fetch
from support.denials.groups import GROUPS
from support.denials.rows import (
    C31,
    CLUSTER_ACTION,
    GROUP,
    HIDDEN,
    NAMES,
    T29,
    TOPIC,
    TXN,
    Permission,
    Row,
    cluster,
    row,
    topic,
)
from support.denials.share import SHARE

__all__ = [
    "BROKER_ROWS",
    "CONTROLLER_ROWS",
    "FORWARDED",
    "FORWARDED_SECURITY",
    "GROUP",
    "HIDDEN",
    "NAMES",
    "TOPIC",
    "TXN",
    "Permission",
    "Row",
]

BROKER_ROWS = (
    *DATA,
    *TRANSACTIONS,
    *GROUPS,
    *SHARE,
    *ADMIN,
    *SECURITY,
    *FORWARDED,
    *FORWARDED_SECURITY,
)

#: What only nodes send, and what a controller answers in its own way.
CONTROLLER_ROWS = (
    row(ApiKey.API_VERSIONS, 3, m.ApiVersionsRequest()),
    row(ApiKey.ENVELOPE, 0, m.EnvelopeRequest(), CLUSTER_ACTION),
    row(ApiKey.FETCH, 17, fetch, CLUSTER_ACTION),
    row(ApiKey.FETCH_SNAPSHOT, 1, m.FetchSnapshotRequest(), CLUSTER_ACTION),
    row(ApiKey.VOTE, 2, m.VoteRequest(), CLUSTER_ACTION),
    row(ApiKey.BEGIN_QUORUM_EPOCH, 1, m.BeginQuorumEpochRequest(), CLUSTER_ACTION),
    row(ApiKey.END_QUORUM_EPOCH, 1, m.EndQuorumEpochRequest(), CLUSTER_ACTION),
    row(ApiKey.UPDATE_RAFT_VOTER, 0, m.UpdateRaftVoterRequest(), CLUSTER_ACTION),
    row(ApiKey.BROKER_REGISTRATION, 4, m.BrokerRegistrationRequest(), CLUSTER_ACTION),
    row(ApiKey.BROKER_HEARTBEAT, 1, m.BrokerHeartbeatRequest(), CLUSTER_ACTION),
    row(ApiKey.CONTROLLER_REGISTRATION, 0, m.ControllerRegistrationRequest(), CLUSTER_ACTION),
    row(ApiKey.ALTER_PARTITION, 3, m.AlterPartitionRequest(), CLUSTER_ACTION),
    row(ApiKey.ALLOCATE_PRODUCER_IDS, 0, m.AllocateProducerIdsRequest(), CLUSTER_ACTION),
    row(ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, m.AssignReplicasToDirsRequest(), CLUSTER_ACTION),
    row(ApiKey.DESCRIBE_CLUSTER, 1, m.DescribeClusterRequest(), (cluster(Op.ALTER), C31)),
    row(ApiKey.DESCRIBE_CONFIGS, 4, configs(2, TOPIC), (topic(Op.DESCRIBE_CONFIGS), T29)),
    row(ApiKey.DESCRIBE_ACLS, 3, m.DescribeAclsRequest(), (cluster(Op.DESCRIBE), C31)),
    *FORWARDED_SECURITY,
    *SECURITY,
)
