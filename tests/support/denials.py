"""A request of every API, and the permissions that it needs: the table of two tests.

Requests are such that they change nothing, also where they are allowed: partitions, groups and
transactions that do not exist, or a check only. The topic is `t`, the group `g`, the transactional
id `x`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from moldau.wire import messages as m
from moldau.wire.acls import AclOperation as Op
from moldau.wire.acls import ResourceType
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.records import encode_batch

TOPIC, GROUP, TXN, CLUSTER = "t", "g", "x", "kafka-cluster"
NO_PARTITION = 99
NO_PRODUCER = 424_242
NAMES = {
    ResourceType.TOPIC: TOPIC,
    ResourceType.GROUP: GROUP,
    ResourceType.TRANSACTIONAL_ID: TXN,
    ResourceType.CLUSTER: CLUSTER,
}
HIDDEN = ErrorCode.NONE
BATCH = encode_batch([(None, b"value", 1_700_000_000_000, [])])


class Permission(NamedTuple):
    operation: Op
    resource_type: ResourceType

    def __str__(self) -> str:
        return f"{self.operation.name} on {self.resource_type.name}"


def topic(operation: Op) -> Permission:
    return Permission(operation, ResourceType.TOPIC)


def group(operation: Op) -> Permission:
    return Permission(operation, ResourceType.GROUP)


def cluster(operation: Op) -> Permission:
    return Permission(operation, ResourceType.CLUSTER)


def txn(operation: Op) -> Permission:
    return Permission(operation, ResourceType.TRANSACTIONAL_ID)


@dataclass(frozen=True)
class Row:
    """One request. `needs` are all permissions without which it fails, each with the error; HIDDEN
    if something is left out of the response instead. `free`: anybody may send it."""

    key: ApiKey
    make: Callable[[UUID], Message]
    """Takes the id of the topic."""
    version: int
    needs: tuple[tuple[Permission, ErrorCode], ...] = ()
    same: bool = True
    """Kafka's answer is the same, also where it is allowed."""

    def __str__(self) -> str:
        return f"{self.key.name} v{self.version}"


T29, G30, C31, X53 = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)


def row(
    key: ApiKey,
    version: int,
    request: Message | Callable[[UUID], Message],
    *needs: tuple[Permission, ErrorCode],
    same: bool = True,
) -> Row:
    make = request if callable(request) else lambda _: request
    return Row(key, make, version, needs, same)


def produce(topic_id: UUID | None, index: int = NO_PARTITION) -> m.ProduceRequest:
    part = m.ProduceRequest.PartitionProduceData(index=index, records=BATCH)
    named = m.ProduceRequest.TopicProduceData(partition_data=[part])
    if topic_id is None:
        named.name = TOPIC
    else:
        named.topic_id = topic_id
    return m.ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[named])


def fetch(topic_id: UUID | None, replica_id: int = -1) -> m.FetchRequest:
    part = m.FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    named = m.FetchRequest.FetchTopic(partitions=[part])
    if topic_id is None:
        named.topic = TOPIC
    else:
        named.topic_id = topic_id
    return m.FetchRequest(
        replica_id=replica_id, max_wait_ms=0, min_bytes=0, max_bytes=1000, topics=[named],
        session_epoch=-1,
    )  # fmt: skip


def _list_offsets() -> Message:
    part = m.ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)
    return m.ListOffsetsRequest(
        replica_id=-1, topics=[m.ListOffsetsRequest.ListOffsetsTopic(name=TOPIC, partitions=[part])]
    )


def _delete_records() -> Message:
    part = m.DeleteRecordsRequest.DeleteRecordsPartition(partition_index=NO_PARTITION, offset=0)
    named = m.DeleteRecordsRequest.DeleteRecordsTopic(name=TOPIC, partitions=[part])
    return m.DeleteRecordsRequest(topics=[named], timeout_ms=1000)


def _epoch() -> Message:
    part = m.OffsetForLeaderEpochRequest.OffsetForLeaderPartition(partition=0, leader_epoch=0)
    named = m.OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=TOPIC, partitions=[part])
    return m.OffsetForLeaderEpochRequest(topics=[named])


def _markers() -> Message:
    named = m.WriteTxnMarkersRequest.WritableTxnMarkerTopic(
        name=TOPIC, partition_indexes=[NO_PARTITION]
    )
    return m.WriteTxnMarkersRequest(
        markers=[m.WriteTxnMarkersRequest.WritableTxnMarker(producer_id=7, topics=[named])]
    )


DATA = (
    row(ApiKey.PRODUCE, 9, produce(None), (topic(Op.WRITE), T29)),
    row(ApiKey.PRODUCE, 9, produce(None, 0), (topic(Op.WRITE), T29), same=False),
    row(ApiKey.PRODUCE, 12, produce(None, 0), (topic(Op.WRITE), T29), same=False),
    row(ApiKey.PRODUCE, 13, produce, (topic(Op.WRITE), T29)),
    row(
        ApiKey.PRODUCE,
        13,
        lambda topic_id: produce(topic_id, 0),
        (topic(Op.WRITE), T29),
        same=False,
    ),
    row(ApiKey.FETCH, 12, fetch(None), (topic(Op.READ), T29)),
    row(ApiKey.FETCH, 17, fetch, (topic(Op.READ), T29)),
    row(ApiKey.LIST_OFFSETS, 6, _list_offsets(), (topic(Op.DESCRIBE), T29)),
    row(ApiKey.DELETE_RECORDS, 2, _delete_records(), (topic(Op.DELETE), T29)),
    row(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, _epoch(), (topic(Op.DESCRIBE), T29)),
    row(
        ApiKey.DESCRIBE_PRODUCERS,
        0,
        m.DescribeProducersRequest(
            topics=[m.DescribeProducersRequest.TopicRequest(name=TOPIC, partition_indexes=[0])]
        ),
        (topic(Op.READ), T29),
    ),
    row(ApiKey.WRITE_TXN_MARKERS, 1, _markers(), (cluster(Op.CLUSTER_ACTION), C31)),
)


def _add_partitions() -> Message:
    named = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])
    return m.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=TXN,
        v3_and_below_producer_id=NO_PRODUCER,
        v3_and_below_topics=[named],
    )


def _add_partitions_of_broker() -> Message:
    named = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])
    transaction = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
        transactional_id=TXN, producer_id=NO_PRODUCER, verify_only=True, topics=[named]
    )
    return m.AddPartitionsToTxnRequest(transactions=[transaction])


def _txn_offset_commit() -> Message:
    part = m.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
        partition_index=NO_PARTITION, committed_metadata=""
    )
    named = m.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[part])
    return m.TxnOffsetCommitRequest(
        transactional_id=TXN, group_id=GROUP, producer_id=NO_PRODUCER, topics=[named]
    )


_WRITE_TXN = (txn(Op.WRITE), X53)
TRANSACTIONS = (
    row(
        ApiKey.INIT_PRODUCER_ID,
        5,
        m.InitProducerIdRequest(transactional_id=TXN, transaction_timeout_ms=-5),
        _WRITE_TXN,
    ),
    row(ApiKey.INIT_PRODUCER_ID, 5, m.InitProducerIdRequest(transactional_id=None), same=False),
    row(ApiKey.ADD_PARTITIONS_TO_TXN, 3, _add_partitions(), _WRITE_TXN, (topic(Op.WRITE), T29)),
    row(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        5,
        _add_partitions_of_broker(),
        (cluster(Op.CLUSTER_ACTION), C31),
    ),
    row(
        ApiKey.ADD_OFFSETS_TO_TXN,
        4,
        m.AddOffsetsToTxnRequest(transactional_id=TXN, producer_id=NO_PRODUCER, group_id=GROUP),
        _WRITE_TXN,
        (group(Op.READ), G30),
    ),
    row(
        ApiKey.TXN_OFFSET_COMMIT,
        5,
        _txn_offset_commit(),
        _WRITE_TXN,
        (group(Op.READ), G30),
        (topic(Op.READ), T29),
    ),
    row(
        ApiKey.END_TXN,
        5,
        m.EndTxnRequest(transactional_id=TXN, producer_id=NO_PRODUCER),
        _WRITE_TXN,
    ),
    row(
        ApiKey.DESCRIBE_TRANSACTIONS,
        0,
        m.DescribeTransactionsRequest(transactional_ids=[TXN]),
        (txn(Op.DESCRIBE), X53),
    ),
    row(ApiKey.LIST_TRANSACTIONS, 1, m.ListTransactionsRequest(), (txn(Op.DESCRIBE), HIDDEN)),
)


def _offset_commit(topic_id: UUID | None) -> Message:
    part = m.OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=NO_PARTITION, committed_metadata=""
    )
    named = m.OffsetCommitRequest.OffsetCommitRequestTopic(partitions=[part])
    if topic_id is None:
        named.name = TOPIC
    else:
        named.topic_id = topic_id
    return m.OffsetCommitRequest(group_id=GROUP, topics=[named])


def _offset_fetch(*, all_topics: bool) -> Message:
    named = m.OffsetFetchRequest.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])
    return m.OffsetFetchRequest(
        groups=[
            m.OffsetFetchRequest.OffsetFetchRequestGroup(
                group_id=GROUP, topics=None if all_topics else [named]
            )
        ]
    )


def _offset_fetch_of_id(topic_id: UUID) -> Message:
    named = m.OffsetFetchRequest.OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0])
    return m.OffsetFetchRequest(
        groups=[m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id=GROUP, topics=[named])]
    )


def _offset_fetch_of_one() -> Message:
    named = m.OffsetFetchRequest.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])
    return m.OffsetFetchRequest(group_id=GROUP, topics=[named])


def _offset_delete() -> Message:
    part = m.OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=NO_PARTITION)
    named = m.OffsetDeleteRequest.OffsetDeleteRequestTopic(name=TOPIC, partitions=[part])
    return m.OffsetDeleteRequest(group_id=GROUP, topics=[named])


_READ_GROUP, _DESCRIBE_GROUP = (group(Op.READ), G30), (group(Op.DESCRIBE), G30)
_DESCRIBE_TOPIC = (topic(Op.DESCRIBE), T29)
NOBODY = "nobody"
GROUPS = (
    row(
        ApiKey.FIND_COORDINATOR,
        4,
        m.FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]),
        _DESCRIBE_GROUP,
    ),
    row(ApiKey.FIND_COORDINATOR, 3, m.FindCoordinatorRequest(key=GROUP), _DESCRIBE_GROUP),
    row(
        ApiKey.FIND_COORDINATOR,
        4,
        m.FindCoordinatorRequest(key_type=1, coordinator_keys=[TXN]),
        (txn(Op.DESCRIBE), X53),
    ),
    row(
        ApiKey.JOIN_GROUP,
        9,
        m.JoinGroupRequest(group_id=GROUP, session_timeout_ms=1, protocol_type="consumer"),
        _READ_GROUP,
    ),
    row(
        ApiKey.JOIN_GROUP,
        5,
        m.JoinGroupRequest(group_id=GROUP, session_timeout_ms=1, protocol_type="consumer"),
        _READ_GROUP,
    ),
    row(
        ApiKey.SYNC_GROUP,
        5,
        m.SyncGroupRequest(
            group_id=GROUP,
            member_id=NOBODY,
            generation_id=1,
            protocol_type="consumer",
            protocol_name="range",
        ),
        _READ_GROUP,
    ),
    row(
        ApiKey.SYNC_GROUP,
        5,
        m.SyncGroupRequest(group_id=GROUP, member_id=NOBODY, generation_id=1),
    ),
    row(
        ApiKey.HEARTBEAT,
        4,
        m.HeartbeatRequest(group_id=GROUP, member_id=NOBODY, generation_id=1),
        _READ_GROUP,
    ),
    row(
        ApiKey.LEAVE_GROUP,
        5,
        m.LeaveGroupRequest(
            group_id=GROUP, members=[m.LeaveGroupRequest.MemberIdentity(member_id=NOBODY)]
        ),
        _READ_GROUP,
    ),
    row(ApiKey.OFFSET_COMMIT, 9, _offset_commit(None), _READ_GROUP, (topic(Op.READ), T29)),
    row(ApiKey.OFFSET_COMMIT, 10, _offset_commit, _READ_GROUP, (topic(Op.READ), T29)),
    row(ApiKey.OFFSET_FETCH, 9, _offset_fetch(all_topics=False), _DESCRIBE_GROUP, _DESCRIBE_TOPIC),
    row(
        ApiKey.OFFSET_FETCH,
        9,
        _offset_fetch(all_topics=True),
        _DESCRIBE_GROUP,
        (topic(Op.DESCRIBE), HIDDEN),
    ),
    row(ApiKey.OFFSET_FETCH, 10, _offset_fetch_of_id, _DESCRIBE_GROUP, _DESCRIBE_TOPIC),
    row(ApiKey.OFFSET_FETCH, 7, _offset_fetch_of_one(), _DESCRIBE_GROUP, _DESCRIBE_TOPIC),
    row(ApiKey.OFFSET_FETCH, 1, _offset_fetch_of_one(), _DESCRIBE_GROUP, _DESCRIBE_TOPIC),
    row(
        ApiKey.OFFSET_DELETE,
        0,
        _offset_delete(),
        (group(Op.DELETE), G30),
        (topic(Op.READ), T29),
    ),
    row(ApiKey.LIST_GROUPS, 5, m.ListGroupsRequest(), (group(Op.DESCRIBE), HIDDEN)),
    row(
        ApiKey.DESCRIBE_GROUPS,
        6,
        m.DescribeGroupsRequest(groups=[GROUP], include_authorized_operations=True),
        _DESCRIBE_GROUP,
    ),
    row(
        ApiKey.DELETE_GROUPS,
        2,
        m.DeleteGroupsRequest(groups_names=[GROUP]),
        (group(Op.DELETE), G30),
    ),
    row(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        1,
        m.ConsumerGroupHeartbeatRequest(
            group_id=GROUP, member_id=NOBODY, member_epoch=5, subscribed_topic_names=[TOPIC]
        ),
        _READ_GROUP,
        _DESCRIBE_TOPIC,
    ),
    row(
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        1,
        m.ConsumerGroupDescribeRequest(group_ids=[GROUP], include_authorized_operations=True),
        _DESCRIBE_GROUP,
    ),
    row(
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        0,
        m.StreamsGroupHeartbeatRequest(group_id=GROUP, member_id=NOBODY, member_epoch=5),
        _READ_GROUP,
    ),
    row(
        ApiKey.STREAMS_GROUP_DESCRIBE,
        0,
        m.StreamsGroupDescribeRequest(group_ids=[GROUP], include_authorized_operations=True),
        _DESCRIBE_GROUP,
    ),
    row(
        ApiKey.SHARE_GROUP_HEARTBEAT,
        1,
        m.ShareGroupHeartbeatRequest(
            group_id=GROUP, member_id=NOBODY, member_epoch=5, subscribed_topic_names=[TOPIC]
        ),
        _READ_GROUP,
        _DESCRIBE_TOPIC,
    ),
    row(
        ApiKey.SHARE_GROUP_DESCRIBE,
        1,
        m.ShareGroupDescribeRequest(group_ids=[GROUP], include_authorized_operations=True),
        _DESCRIBE_GROUP,
    ),
)

MEMBER = "AAAAAAAAAAAAAAAAAAAAAA"


def _share_fetch(topic_id: UUID) -> Message:
    part = m.ShareFetchRequest.FetchPartition(partition_index=NO_PARTITION)
    return m.ShareFetchRequest(
        group_id=GROUP, member_id=MEMBER, share_session_epoch=0, max_wait_ms=0, min_bytes=0,
        max_bytes=1000, max_records=1, batch_size=1,
        topics=[m.ShareFetchRequest.FetchTopic(topic_id=topic_id, partitions=[part])],
    )  # fmt: skip


def _share_acknowledge(topic_id: UUID) -> Message:
    part = m.ShareAcknowledgeRequest.AcknowledgePartition(
        partition_index=NO_PARTITION,
        acknowledgement_batches=[
            m.ShareAcknowledgeRequest.AcknowledgementBatch(
                first_offset=0, last_offset=0, acknowledge_types=[1]
            )
        ],
    )
    return m.ShareAcknowledgeRequest(
        group_id=GROUP, member_id=MEMBER, share_session_epoch=1,
        topics=[m.ShareAcknowledgeRequest.AcknowledgeTopic(topic_id=topic_id, partitions=[part])],
    )  # fmt: skip


def _describe_share_offsets() -> Message:
    request = m.DescribeShareGroupOffsetsRequest
    named = request.DescribeShareGroupOffsetsRequestTopic(topic_name=TOPIC, partitions=[0])
    return request(
        groups=[request.DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=[named])]
    )


def _alter_share_offsets() -> Message:
    request = m.AlterShareGroupOffsetsRequest
    part = request.AlterShareGroupOffsetsRequestPartition(partition_index=NO_PARTITION)
    named = request.AlterShareGroupOffsetsRequestTopic(topic_name=TOPIC, partitions=[part])
    return request(group_id=GROUP, topics=[named])


def _delete_share_offsets() -> Message:
    request = m.DeleteShareGroupOffsetsRequest
    named = request.DeleteShareGroupOffsetsRequestTopic(topic_name=TOPIC)
    return request(group_id=GROUP, topics=[named])


def _state(request: Any, data: str) -> Callable[[UUID], Message]:
    def make(topic_id: UUID) -> Message:
        part = request.PartitionData(partition=0)
        made: Message = request(
            group_id=GROUP, topics=[getattr(request, data)(topic_id=topic_id, partitions=[part])]
        )
        return made

    return make


_ACTION = (cluster(Op.CLUSTER_ACTION), C31)
SHARE = (
    row(ApiKey.SHARE_FETCH, 1, _share_fetch, _READ_GROUP, (topic(Op.READ), T29), same=False),
    row(ApiKey.SHARE_ACKNOWLEDGE, 1, _share_acknowledge, _READ_GROUP, (topic(Op.READ), T29),
        same=False),
    row(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 0, _describe_share_offsets(), _DESCRIBE_GROUP,
        _DESCRIBE_TOPIC),
    row(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, _alter_share_offsets(), _READ_GROUP,
        (topic(Op.READ), T29), same=False),
    row(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, _delete_share_offsets(), (group(Op.DELETE), G30),
        (topic(Op.READ), T29)),
    row(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0,
        _state(m.InitializeShareGroupStateRequest, "InitializeStateData"), _ACTION, same=False),
    row(ApiKey.READ_SHARE_GROUP_STATE, 0,
        _state(m.ReadShareGroupStateRequest, "ReadStateData"), _ACTION, same=False),
    row(ApiKey.WRITE_SHARE_GROUP_STATE, 0,
        _state(m.WriteShareGroupStateRequest, "WriteStateData"), _ACTION, same=False),
    row(ApiKey.DELETE_SHARE_GROUP_STATE, 0,
        _state(m.DeleteShareGroupStateRequest, "DeleteStateData"), _ACTION, same=False),
    row(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 0,
        _state(m.ReadShareGroupStateSummaryRequest, "ReadStateSummaryData"), _ACTION, same=False),
)  # fmt: skip


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


def _configs(resource_type: int, name: str) -> m.DescribeConfigsRequest:
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
    row(ApiKey.METADATA, 9, _metadata(), _DESCRIBE_TOPIC),
    row(ApiKey.METADATA, 12, _metadata_by_id, _DESCRIBE_TOPIC),
    row(ApiKey.METADATA, 9, _metadata(None), (topic(Op.DESCRIBE), HIDDEN)),
    row(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        m.DescribeTopicPartitionsRequest(
            topics=[m.DescribeTopicPartitionsRequest.TopicRequest(name=TOPIC)]
        ),
        _DESCRIBE_TOPIC,
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
    row(ApiKey.DESCRIBE_CONFIGS, 4, _configs(2, TOPIC), (topic(Op.DESCRIBE_CONFIGS), T29)),
    row(ApiKey.DESCRIBE_CONFIGS, 4, _configs(32, GROUP), (group(Op.DESCRIBE_CONFIGS), G30)),
    row(
        ApiKey.DESCRIBE_CONFIGS,
        4,
        _configs(4, "1"),
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
    row(ApiKey.ENVELOPE, 0, m.EnvelopeRequest(), _ACTION),
    row(ApiKey.FETCH, 17, fetch, _ACTION),
    row(ApiKey.FETCH_SNAPSHOT, 1, m.FetchSnapshotRequest(), _ACTION),
    row(ApiKey.VOTE, 2, m.VoteRequest(), _ACTION),
    row(ApiKey.BEGIN_QUORUM_EPOCH, 1, m.BeginQuorumEpochRequest(), _ACTION),
    row(ApiKey.END_QUORUM_EPOCH, 1, m.EndQuorumEpochRequest(), _ACTION),
    row(ApiKey.UPDATE_RAFT_VOTER, 0, m.UpdateRaftVoterRequest(), _ACTION),
    row(ApiKey.BROKER_REGISTRATION, 4, m.BrokerRegistrationRequest(), _ACTION),
    row(ApiKey.BROKER_HEARTBEAT, 1, m.BrokerHeartbeatRequest(), _ACTION),
    row(ApiKey.CONTROLLER_REGISTRATION, 0, m.ControllerRegistrationRequest(), _ACTION),
    row(ApiKey.ALTER_PARTITION, 3, m.AlterPartitionRequest(), _ACTION),
    row(ApiKey.ALLOCATE_PRODUCER_IDS, 0, m.AllocateProducerIdsRequest(), _ACTION),
    row(ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, m.AssignReplicasToDirsRequest(), _ACTION),
    row(ApiKey.DESCRIBE_CLUSTER, 1, m.DescribeClusterRequest(), (cluster(Op.ALTER), C31)),
    row(ApiKey.DESCRIBE_CONFIGS, 4, _configs(2, TOPIC), (topic(Op.DESCRIBE_CONFIGS), T29)),
    row(ApiKey.DESCRIBE_ACLS, 3, m.DescribeAclsRequest(), (cluster(Op.DESCRIBE), C31)),
    *FORWARDED_SECURITY,
    *SECURITY,
)
