"""API keys and record types. Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from enum import IntEnum


class ApiKey(IntEnum):
    """The APIs by the names of Kafka's own enumeration."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92


# number, name, first version, last version, first flexible version, listeners,
# latest version unstable, forwarded to the controller, needs ClusterAction.
APIS = (
    (0, 'Produce', 3, 13, 9, ('broker',), False, False, False),
    (1, 'Fetch', 4, 18, 12, ('broker', 'controller'), False, False, False),
    (2, 'ListOffsets', 1, 11, 6, ('broker',), False, False, False),
    (3, 'Metadata', 0, 13, 9, ('broker',), False, False, False),
    (8, 'OffsetCommit', 2, 10, 8, ('broker',), False, False, False),
    (9, 'OffsetFetch', 1, 10, 6, ('broker',), False, False, False),
    (10, 'FindCoordinator', 0, 6, 3, ('broker',), False, False, False),
    (11, 'JoinGroup', 0, 9, 6, ('broker',), False, False, False),
    (12, 'Heartbeat', 0, 4, 4, ('broker',), False, False, False),
    (13, 'LeaveGroup', 0, 5, 4, ('broker',), False, False, False),
    (14, 'SyncGroup', 0, 5, 4, ('broker',), False, False, False),
    (15, 'DescribeGroups', 0, 6, 5, ('broker',), False, False, False),
    (16, 'ListGroups', 0, 5, 3, ('broker',), False, False, False),
    (17, 'SaslHandshake', 0, 1, 32767, ('broker', 'controller'), False, False, False),
    (18, 'ApiVersions', 0, 4, 3, ('broker', 'controller'), False, False, False),
    (19, 'CreateTopics', 2, 7, 5, ('broker', 'controller'), False, True, False),
    (20, 'DeleteTopics', 1, 6, 4, ('broker', 'controller'), False, True, False),
    (21, 'DeleteRecords', 0, 2, 2, ('broker',), False, False, False),
    (22, 'InitProducerId', 0, 6, 2, ('broker',), True, False, False),
    (23, 'OffsetForLeaderEpoch', 2, 4, 4, ('broker',), False, False, False),
    (24, 'AddPartitionsToTxn', 0, 5, 3, ('broker',), False, False, False),
    (25, 'AddOffsetsToTxn', 0, 4, 3, ('broker',), False, False, False),
    (26, 'EndTxn', 0, 5, 3, ('broker',), False, False, False),
    (27, 'WriteTxnMarkers', 1, 2, 1, ('broker',), False, False, True),
    (28, 'TxnOffsetCommit', 0, 5, 3, ('broker',), False, False, False),
    (29, 'DescribeAcls', 1, 3, 2, ('broker', 'controller'), False, False, False),
    (30, 'CreateAcls', 1, 3, 2, ('broker', 'controller'), False, True, False),
    (31, 'DeleteAcls', 1, 3, 2, ('broker', 'controller'), False, True, False),
    (32, 'DescribeConfigs', 1, 4, 4, ('broker', 'controller'), False, False, False),
    (33, 'AlterConfigs', 0, 2, 2, ('broker', 'controller'), False, True, False),
    (34, 'AlterReplicaLogDirs', 1, 2, 2, ('broker',), False, False, False),
    (35, 'DescribeLogDirs', 1, 5, 2, ('broker',), False, False, False),
    (36, 'SaslAuthenticate', 0, 2, 2, ('broker', 'controller'), False, False, False),
    (37, 'CreatePartitions', 0, 3, 2, ('broker', 'controller'), False, True, False),
    (38, 'CreateDelegationToken', 1, 3, 2, ('broker', 'controller'), False, True, False),
    (39, 'RenewDelegationToken', 1, 2, 2, ('broker', 'controller'), False, True, False),
    (40, 'ExpireDelegationToken', 1, 2, 2, ('broker', 'controller'), False, True, False),
    (41, 'DescribeDelegationToken', 1, 3, 2, ('broker', 'controller'), False, False, False),
    (42, 'DeleteGroups', 0, 2, 2, ('broker',), False, False, False),
    (43, 'ElectLeaders', 0, 2, 2, ('broker', 'controller'), False, True, False),
    (44, 'IncrementalAlterConfigs', 0, 1, 1, ('broker', 'controller'), False, True, False),
    (45, 'AlterPartitionReassignments', 0, 1, 0, ('broker', 'controller'), False, True, False),
    (46, 'ListPartitionReassignments', 0, 0, 0, ('broker', 'controller'), False, True, False),
    (47, 'OffsetDelete', 0, 0, 32767, ('broker',), False, False, False),
    (48, 'DescribeClientQuotas', 0, 1, 1, ('broker',), False, False, False),
    (49, 'AlterClientQuotas', 0, 1, 1, ('broker', 'controller'), False, True, False),
    (50, 'DescribeUserScramCredentials', 0, 0, 0, ('broker', 'controller'), False, False, False),
    (51, 'AlterUserScramCredentials', 0, 0, 0, ('broker', 'controller'), False, True, False),
    (52, 'Vote', 0, 2, 0, ('controller',), False, False, True),
    (53, 'BeginQuorumEpoch', 0, 1, 1, ('controller',), False, False, True),
    (54, 'EndQuorumEpoch', 0, 1, 1, ('controller',), False, False, True),
    (55, 'DescribeQuorum', 0, 2, 0, ('broker', 'controller'), False, True, True),
    (56, 'AlterPartition', 2, 3, 0, ('controller',), False, False, True),
    (57, 'UpdateFeatures', 0, 2, 0, ('broker', 'controller'), False, True, True),
    (58, 'Envelope', 0, 0, 0, ('controller',), False, False, True),
    (59, 'FetchSnapshot', 0, 1, 0, ('controller',), False, False, False),
    (60, 'DescribeCluster', 0, 2, 0, ('broker', 'controller'), False, False, False),
    (61, 'DescribeProducers', 0, 0, 0, ('broker',), False, False, False),
    (62, 'BrokerRegistration', 0, 4, 0, ('controller',), False, False, True),
    (63, 'BrokerHeartbeat', 0, 2, 0, ('controller',), False, False, True),
    (64, 'UnregisterBroker', 0, 0, 0, ('broker', 'controller'), False, True, False),
    (65, 'DescribeTransactions', 0, 0, 0, ('broker',), False, False, False),
    (66, 'ListTransactions', 0, 2, 0, ('broker',), False, False, False),
    (67, 'AllocateProducerIds', 0, 0, 0, ('controller',), False, True, True),
    (68, 'ConsumerGroupHeartbeat', 0, 1, 0, ('broker',), False, False, False),
    (69, 'ConsumerGroupDescribe', 0, 1, 0, ('broker',), False, False, False),
    (70, 'ControllerRegistration', 0, 0, 0, ('controller',), False, False, False),
    (71, 'GetTelemetrySubscriptions', 0, 0, 0, ('broker',), False, False, False),
    (72, 'PushTelemetry', 0, 0, 0, ('broker',), False, False, False),
    (73, 'AssignReplicasToDirs', 0, 0, 0, ('controller',), False, False, False),
    (74, 'ListConfigResources', 0, 1, 0, ('broker',), False, False, False),
    (75, 'DescribeTopicPartitions', 0, 0, 0, ('broker',), False, False, False),
    (76, 'ShareGroupHeartbeat', 1, 1, 0, ('broker',), False, False, False),
    (77, 'ShareGroupDescribe', 1, 1, 0, ('broker',), False, False, False),
    (78, 'ShareFetch', 1, 2, 0, ('broker',), False, False, False),
    (79, 'ShareAcknowledge', 1, 2, 0, ('broker',), False, False, False),
    (80, 'AddRaftVoter', 0, 1, 0, ('controller', 'broker'), False, True, False),
    (81, 'RemoveRaftVoter', 0, 0, 0, ('controller', 'broker'), False, True, False),
    (82, 'UpdateRaftVoter', 0, 0, 0, ('controller',), False, False, False),
    (83, 'InitializeShareGroupState', 0, 0, 0, ('broker',), False, False, True),
    (84, 'ReadShareGroupState', 0, 0, 0, ('broker',), False, False, True),
    (85, 'WriteShareGroupState', 0, 1, 0, ('broker',), False, False, True),
    (86, 'DeleteShareGroupState', 0, 0, 0, ('broker',), False, False, True),
    (87, 'ReadShareGroupStateSummary', 0, 1, 0, ('broker',), False, False, True),
    (88, 'StreamsGroupHeartbeat', 0, 0, 0, ('broker',), False, False, False),
    (89, 'StreamsGroupDescribe', 0, 0, 0, ('broker',), False, False, False),
    (90, 'DescribeShareGroupOffsets', 0, 1, 0, ('broker',), False, False, False),
    (91, 'AlterShareGroupOffsets', 0, 0, 0, ('broker',), False, False, False),
    (92, 'DeleteShareGroupOffsets', 0, 0, 0, ('broker',), False, False, False),
)

# For each kind of record: type number to message name.
RECORD_TYPES: dict[str, dict[int, str]] = {
    "group-key": {
        0: "LegacyOffsetCommitKey",
        1: "OffsetCommitKey",
        2: "GroupMetadataKey",
        3: "ConsumerGroupMetadataKey",
        4: "ConsumerGroupPartitionMetadataKey",
        5: "ConsumerGroupMemberMetadataKey",
        6: "ConsumerGroupTargetAssignmentMetadataKey",
        7: "ConsumerGroupTargetAssignmentMemberKey",
        8: "ConsumerGroupCurrentMemberAssignmentKey",
        10: "ShareGroupMemberMetadataKey",
        11: "ShareGroupMetadataKey",
        12: "ShareGroupTargetAssignmentMetadataKey",
        13: "ShareGroupTargetAssignmentMemberKey",
        14: "ShareGroupCurrentMemberAssignmentKey",
        15: "ShareGroupStatePartitionMetadataKey",
        16: "ConsumerGroupRegularExpressionKey",
        17: "StreamsGroupMetadataKey",
        19: "StreamsGroupMemberMetadataKey",
        20: "StreamsGroupTargetAssignmentMetadataKey",
        21: "StreamsGroupTargetAssignmentMemberKey",
        22: "StreamsGroupCurrentMemberAssignmentKey",
        23: "StreamsGroupTopologyKey",
    },
    "group-value": {
        0: "LegacyOffsetCommitValue",
        1: "OffsetCommitValue",
        2: "GroupMetadataValue",
        3: "ConsumerGroupMetadataValue",
        4: "ConsumerGroupPartitionMetadataValue",
        5: "ConsumerGroupMemberMetadataValue",
        6: "ConsumerGroupTargetAssignmentMetadataValue",
        7: "ConsumerGroupTargetAssignmentMemberValue",
        8: "ConsumerGroupCurrentMemberAssignmentValue",
        10: "ShareGroupMemberMetadataValue",
        11: "ShareGroupMetadataValue",
        12: "ShareGroupTargetAssignmentMetadataValue",
        13: "ShareGroupTargetAssignmentMemberValue",
        14: "ShareGroupCurrentMemberAssignmentValue",
        15: "ShareGroupStatePartitionMetadataValue",
        16: "ConsumerGroupRegularExpressionValue",
        17: "StreamsGroupMetadataValue",
        19: "StreamsGroupMemberMetadataValue",
        20: "StreamsGroupTargetAssignmentMetadataValue",
        21: "StreamsGroupTargetAssignmentMemberValue",
        22: "StreamsGroupCurrentMemberAssignmentValue",
        23: "StreamsGroupTopologyValue",
    },
    "metadata": {
        0: "RegisterBrokerRecord",
        1: "UnregisterBrokerRecord",
        2: "TopicRecord",
        3: "PartitionRecord",
        4: "ConfigRecord",
        5: "PartitionChangeRecord",
        7: "FenceBrokerRecord",
        8: "UnfenceBrokerRecord",
        9: "RemoveTopicRecord",
        10: "DelegationTokenRecord",
        11: "UserScramCredentialRecord",
        12: "FeatureLevelRecord",
        14: "ClientQuotaRecord",
        15: "ProducerIdsRecord",
        17: "BrokerRegistrationChangeRecord",
        18: "AccessControlEntryRecord",
        19: "RemoveAccessControlEntryRecord",
        20: "NoOpRecord",
        21: "ZkMigrationStateRecord",
        22: "RemoveUserScramCredentialRecord",
        23: "BeginTransactionRecord",
        24: "EndTransactionRecord",
        25: "AbortTransactionRecord",
        26: "RemoveDelegationTokenRecord",
        27: "RegisterControllerRecord",
        28: "ClearElrRecord",
    },
    "remote-log": {
        0: "RemoteLogSegmentMetadataRecord",
        1: "RemoteLogSegmentMetadataUpdateRecord",
        2: "RemotePartitionDeleteMetadataRecord",
        3: "RemoteLogSegmentMetadataSnapshotRecord",
    },
    "share-key": {
        0: "ShareSnapshotKey",
        1: "ShareUpdateKey",
    },
    "share-value": {
        0: "ShareSnapshotValue",
        1: "ShareUpdateValue",
    },
    "transaction-key": {
        0: "TransactionLogKey",
    },
    "transaction-value": {
        0: "TransactionLogValue",
    },
}
