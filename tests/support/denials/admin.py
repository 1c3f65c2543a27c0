"""What the cluster knows: topics, configurations, users, and the cluster itself."""

from __future__ import annotations

from uuid import UUID

from moldau.wire import messages as m
from moldau.wire.acls import AclOperation as Op
from moldau.wire.apis import ApiKey
from moldau.wire.message import Message
from support.denials.rows import (
    C31,
    DESCRIBE_TOPIC,
    G30,
    GROUP,
    HIDDEN,
    NO_PARTITION,
    T29,
    TOPIC,
    cluster,
    group,
    row,
    topic,
)


def _metadata(name: str | None = TOPIC) -> Message:
    topics = None if name is None else [m.MetadataRequest.MetadataRequestTopic(name=name)]
    return m.MetadataRequest(
        topics=topics,
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )


def _metadata_by_id(topic_id: UUID) -> Message:
    named = m.MetadataRequest.MetadataRequestTopic(name=None, topic_id=topic_id)
    return m.MetadataRequest(topics=[named], include_topic_authorized_operations=True)


def configs(resource_type: int, name: str) -> m.DescribeConfigsRequest:
    resource = m.DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=resource_type, resource_name=name, configuration_keys=["cleanup.policy"]
    )
    return m.DescribeConfigsRequest(resources=[resource])


def _alter(resource_type: int, name: str, key: str, value: str) -> Message:
    request = m.IncrementalAlterConfigsRequest
    change = request.AlterableConfig(name=key, config_operation=0, value=value)
    resource = request.AlterConfigsResource(
        resource_type=resource_type, resource_name=name, configs=[change]
    )
    return request(resources=[resource], validate_only=True)


def _alter_old(resource_type: int, name: str, key: str, value: str) -> Message:
    request = m.AlterConfigsRequest
    change = request.AlterableConfig(name=key, value=value)
    resource = request.AlterConfigsResource(
        resource_type=resource_type, resource_name=name, configs=[change]
    )
    return request(resources=[resource], validate_only=True)


def _elect() -> Message:
    named = m.ElectLeadersRequest.TopicPartitions(topic=TOPIC, partitions=[NO_PARTITION])
    return m.ElectLeadersRequest(topic_partitions=[named], timeout_ms=1000)


def _reassign() -> Message:
    request = m.AlterPartitionReassignmentsRequest
    part = request.ReassignablePartition(partition_index=NO_PARTITION, replicas=[1])
    named = request.ReassignableTopic(name=TOPIC, partitions=[part])
    return request(topics=[named], timeout_ms=1000)


def _move_logs() -> Message:
    request = m.AlterReplicaLogDirsRequest
    named = request.AlterReplicaLogDirTopic(name=TOPIC, partitions=[NO_PARTITION])
    return request(dirs=[request.AlterReplicaLogDir(path="/nowhere", topics=[named])])


def _create_topics(name: str = TOPIC) -> Message:
    creatable = m.CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=1, replication_factor=1
    )
    return m.CreateTopicsRequest(topics=[creatable], timeout_ms=1000, validate_only=True)


_TOPIC_CONFIG = (2, TOPIC, "retention.ms", "5")
_GROUP_CONFIG = (32, GROUP, "consumer.session.timeout.ms", "45000")
_BROKER_CONFIG = (4, "", "log.retention.ms", "5")
ADMIN = (
    row(ApiKey.METADATA, 9, _metadata(), DESCRIBE_TOPIC),
    row(ApiKey.METADATA, 12, _metadata_by_id, DESCRIBE_TOPIC),
    row(ApiKey.METADATA, 9, _metadata(None), (topic(Op.DESCRIBE), HIDDEN)),
    row(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        m.DescribeTopicPartitionsRequest(
            topics=[m.DescribeTopicPartitionsRequest.TopicRequest(name=TOPIC)]
        ),
        DESCRIBE_TOPIC,
    ),
    row(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        m.DescribeTopicPartitionsRequest(),
        (topic(Op.DESCRIBE), HIDDEN),
    ),
    row(
        ApiKey.DESCRIBE_CLUSTER,
        1,
        m.DescribeClusterRequest(include_cluster_authorized_operations=True),
    ),
    row(ApiKey.DESCRIBE_CONFIGS, 4, configs(2, TOPIC), (topic(Op.DESCRIBE_CONFIGS), T29)),
    row(ApiKey.DESCRIBE_CONFIGS, 4, configs(32, GROUP), (group(Op.DESCRIBE_CONFIGS), G30)),
    row(
        ApiKey.DESCRIBE_CONFIGS,
        4,
        configs(4, "1"),
        (cluster(Op.DESCRIBE_CONFIGS), C31),
        same=False,
    ),
    row(
        ApiKey.LIST_CONFIG_RESOURCES,
        1,
        m.ListConfigResourcesRequest(resource_types=[16]),
        (cluster(Op.DESCRIBE_CONFIGS), C31),
    ),
    row(
        ApiKey.DESCRIBE_LOG_DIRS,
        4,
        m.DescribeLogDirsRequest(topics=[]),
        (cluster(Op.DESCRIBE), C31),
        same=False,
    ),
    row(ApiKey.ALTER_REPLICA_LOG_DIRS, 2, _move_logs(), (cluster(Op.ALTER), C31)),
    row(
        ApiKey.DESCRIBE_ACLS,
        3,
        m.DescribeAclsRequest(
            resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1,
            principal_filter="User:nobody", resource_name_filter=None, host_filter=None,
        ),
        (cluster(Op.DESCRIBE), C31),
    ),
    row(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, m.GetTelemetrySubscriptionsRequest(), same=False),
    row(ApiKey.PUSH_TELEMETRY, 0, m.PushTelemetryRequest(), same=False),
    row(ApiKey.API_VERSIONS, 3, m.ApiVersionsRequest(), same=False),
)  # fmt: skip

#: Users, their credentials, tokens and quotas.
SECURITY = (
    row(ApiKey.SASL_HANDSHAKE, 1, m.SaslHandshakeRequest(mechanism="PLAIN"), same=False),
    row(ApiKey.SASL_AUTHENTICATE, 2, m.SaslAuthenticateRequest(), same=False),
    row(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, m.DescribeClientQuotasRequest(),
        (cluster(Op.DESCRIBE_CONFIGS), C31)),
    row(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0,
        m.DescribeUserScramCredentialsRequest(users=None), (cluster(Op.DESCRIBE), C31)),
    row(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, m.DescribeDelegationTokenRequest(), same=False),
)  # fmt: skip

#: What brokers forward, or controllers answer.
FORWARDED = (
    row(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, _alter(*_TOPIC_CONFIG),
        (topic(Op.ALTER_CONFIGS), T29)),
    row(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, _alter(*_GROUP_CONFIG),
        (group(Op.ALTER_CONFIGS), G30)),
    row(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, _alter(*_BROKER_CONFIG),
        (cluster(Op.ALTER_CONFIGS), C31)),
    row(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, _alter(8, "1", "root", "INFO"),
        (cluster(Op.ALTER_CONFIGS), C31), same=False),
    row(ApiKey.ALTER_CONFIGS, 2, _alter_old(*_TOPIC_CONFIG), (topic(Op.ALTER_CONFIGS), T29)),
    row(ApiKey.ALTER_CONFIGS, 2, _alter_old(*_BROKER_CONFIG), (cluster(Op.ALTER_CONFIGS), C31)),
    row(ApiKey.CREATE_TOPICS, 7, _create_topics(), (topic(Op.CREATE), T29)),
    row(ApiKey.DELETE_TOPICS, 5, m.DeleteTopicsRequest(topic_names=["ghost"], timeout_ms=1000)),
    row(ApiKey.DELETE_TOPICS, 6, lambda _: m.DeleteTopicsRequest(
        topics=[m.DeleteTopicsRequest.DeleteTopicState(name=None, topic_id=UUID(int=99))],
        timeout_ms=1000)),
    row(
        ApiKey.CREATE_PARTITIONS, 3,
        m.CreatePartitionsRequest(
            topics=[m.CreatePartitionsRequest.CreatePartitionsTopic(name=TOPIC, count=9)],
            timeout_ms=1000, validate_only=True,
        ),
        (topic(Op.ALTER), T29),
    ),
    row(
        ApiKey.CREATE_ACLS, 3,
        m.CreateAclsRequest(
            creations=[
                m.CreateAclsRequest.AclCreation(
                    resource_type=2, resource_name="", resource_pattern_type=3,
                    principal="User:n", host="*", operation=3, permission_type=3,
                )
            ]
        ),
        (cluster(Op.ALTER), C31),
    ),
    row(
        ApiKey.DELETE_ACLS, 3,
        m.DeleteAclsRequest(
            filters=[
                m.DeleteAclsRequest.DeleteAclsFilter(
                    resource_type_filter=1, pattern_type_filter=1, principal_filter="User:n",
                    resource_name_filter=None, host_filter=None,
                    operation=1, permission_type=1,
                )
            ]
        ),
        (cluster(Op.ALTER), C31),
    ),
    row(ApiKey.ELECT_LEADERS, 2, _elect(), (cluster(Op.ALTER), C31)),
    row(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, _reassign(), (cluster(Op.ALTER), C31)),
    row(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0,
        m.ListPartitionReassignmentsRequest(topics=None, timeout_ms=1000),
        (cluster(Op.DESCRIBE), C31)),
    row(ApiKey.UPDATE_FEATURES, 1,
        m.UpdateFeaturesRequest(
            feature_updates=[
                m.UpdateFeaturesRequest.FeatureUpdateKey(
                    feature="nothing", max_version_level=1, upgrade_type=1
                )
            ],
            validate_only=True, timeout_ms=1000,
        ),
        (cluster(Op.ALTER), C31)),
    row(ApiKey.UNREGISTER_BROKER, 0, m.UnregisterBrokerRequest(broker_id=77),
        (cluster(Op.ALTER), C31)),
    row(ApiKey.DESCRIBE_QUORUM, 2, m.DescribeQuorumRequest(topics=[]),
        (cluster(Op.DESCRIBE), C31), same=False),
    row(ApiKey.ADD_RAFT_VOTER, 1, m.AddRaftVoterRequest(voter_id=77),
        (cluster(Op.ALTER), C31), same=False),
    row(ApiKey.REMOVE_RAFT_VOTER, 0, m.RemoveRaftVoterRequest(voter_id=77),
        (cluster(Op.ALTER), C31), same=False),
)  # fmt: skip

#: The same, about users.
FORWARDED_SECURITY = (
    row(ApiKey.ALTER_CLIENT_QUOTAS, 1,
        m.AlterClientQuotasRequest(
            entries=[
                m.AlterClientQuotasRequest.EntryData(
                    entity=[
                        m.AlterClientQuotasRequest.EntityData(entity_type="user", entity_name="u")
                    ],
                    ops=[m.AlterClientQuotasRequest.OpData(key="nothing", value=1.0)],
                )
            ],
            validate_only=True,
        ),
        (cluster(Op.ALTER_CONFIGS), C31)),
    row(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0,
        m.AlterUserScramCredentialsRequest(
            deletions=[
                m.AlterUserScramCredentialsRequest.ScramCredentialDeletion(name="u", mechanism=1)
            ]
        ),
        (cluster(Op.ALTER), C31)),
    row(ApiKey.CREATE_DELEGATION_TOKEN, 3, m.CreateDelegationTokenRequest(), same=False),
    row(ApiKey.RENEW_DELEGATION_TOKEN, 2, m.RenewDelegationTokenRequest(), same=False),
    row(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, m.ExpireDelegationTokenRequest(), same=False),
)  # fmt: skip
