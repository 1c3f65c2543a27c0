"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class FetchRequest(Message):
    """request, versions 4-18."""

    KIND = "request"
    TYPE = 1
    LOWEST_VERSION = 4
    HIGHEST_VERSION = 18
    FLEXIBLE_FROM = 12
    __slots__ = ("cluster_id", "replica_id", "replica_state", "max_wait_ms", "min_bytes", "max_bytes", "isolation_level", "session_id", "session_epoch", "topics", "forgotten_topics_data", "rack_id",)
    FIELDS = (
        ('cluster_id', 'string', 12, 32767, (12, 32767), (0, 12, 32767), None, True),
        ('replica_id', 'int32', 0, 14, None, None, -1, False),
        ('replica_state', 'ReplicaState', 15, 32767, None, (1, 15, 32767), (), False),
        ('max_wait_ms', 'int32', 0, 32767, None, None, 0, False),
        ('min_bytes', 'int32', 0, 32767, None, None, 0, False),
        ('max_bytes', 'int32', 3, 32767, None, None, 2147483647, True),
        ('isolation_level', 'int8', 4, 32767, None, None, 0, True),
        ('session_id', 'int32', 7, 32767, None, None, 0, True),
        ('session_epoch', 'int32', 7, 32767, None, None, -1, True),
        ('topics', '[]FetchTopic', 0, 32767, None, None, (), False),
        ('forgotten_topics_data', '[]ForgottenTopic', 7, 32767, None, None, (), False),
        ('rack_id', 'string', 11, 32767, None, None, '', True),
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        replica_id: int = -1,
        replica_state: FetchRequest.ReplicaState = UNSET,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        isolation_level: int = 0,
        session_id: int = 0,
        session_epoch: int = -1,
        topics: list[FetchRequest.FetchTopic] = UNSET,
        forgotten_topics_data: list[FetchRequest.ForgottenTopic] = UNSET,
        rack_id: str = '',
    ) -> None:
        self.cluster_id = cluster_id
        self.replica_id = replica_id
        self.replica_state = FetchRequest.ReplicaState() if replica_state is UNSET else replica_state
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation_level = isolation_level
        self.session_id = session_id
        self.session_epoch = session_epoch
        self.topics = [] if topics is UNSET else topics
        self.forgotten_topics_data = [] if forgotten_topics_data is UNSET else forgotten_topics_data
        self.rack_id = rack_id
        self.unknown_tagged_fields = None

    class ReplicaState(Message):
        __slots__ = ("replica_id", "replica_epoch",)
        FIELDS = (
            ('replica_id', 'int32', 15, 32767, None, None, -1, False),
            ('replica_epoch', 'int64', 15, 32767, None, None, -1, False),
        )

        def __init__(
            self,
            *,
            replica_id: int = -1,
            replica_epoch: int = -1,
        ) -> None:
            self.replica_id = replica_id
            self.replica_epoch = replica_epoch
            self.unknown_tagged_fields = None

    class FetchTopic(Message):
        __slots__ = ("topic", "topic_id", "partitions",)
        FIELDS = (
            ('topic', 'string', 0, 12, None, None, '', True),
            ('topic_id', 'uuid', 13, 32767, None, None, (), True),
            ('partitions', '[]FetchPartition', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic: str = '',
            topic_id: UUID = ZERO_UUID,
            partitions: list[FetchRequest.FetchPartition] = UNSET,
        ) -> None:
            self.topic = topic
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class FetchPartition(Message):
        __slots__ = ("partition", "current_leader_epoch", "fetch_offset", "last_fetched_epoch", "log_start_offset", "partition_max_bytes", "replica_directory_id", "high_watermark",)
        FIELDS = (
            ('partition', 'int32', 0, 32767, None, None, 0, False),
            ('current_leader_epoch', 'int32', 9, 32767, None, None, -1, True),
            ('fetch_offset', 'int64', 0, 32767, None, None, 0, False),
            ('last_fetched_epoch', 'int32', 12, 32767, None, None, -1, False),
            ('log_start_offset', 'int64', 5, 32767, None, None, -1, True),
            ('partition_max_bytes', 'int32', 0, 32767, None, None, 0, False),
            ('replica_directory_id', 'uuid', 17, 32767, None, (0, 17, 32767), (), True),
            ('high_watermark', 'int64', 18, 32767, None, (1, 18, 32767), 9223372036854775807, True),
        )

        def __init__(
            self,
            *,
            partition: int = 0,
            current_leader_epoch: int = -1,
            fetch_offset: int = 0,
            last_fetched_epoch: int = -1,
            log_start_offset: int = -1,
            partition_max_bytes: int = 0,
            replica_directory_id: UUID = ZERO_UUID,
            high_watermark: int = 9223372036854775807,
        ) -> None:
            self.partition = partition
            self.current_leader_epoch = current_leader_epoch
            self.fetch_offset = fetch_offset
            self.last_fetched_epoch = last_fetched_epoch
            self.log_start_offset = log_start_offset
            self.partition_max_bytes = partition_max_bytes
            self.replica_directory_id = replica_directory_id
            self.high_watermark = high_watermark
            self.unknown_tagged_fields = None

    class ForgottenTopic(Message):
        __slots__ = ("topic", "topic_id", "partitions",)
        FIELDS = (
            ('topic', 'string', 7, 12, None, None, '', True),
            ('topic_id', 'uuid', 13, 32767, None, None, (), True),
            ('partitions', '[]int32', 7, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic: str = '',
            topic_id: UUID = ZERO_UUID,
            partitions: list[int] = UNSET,
        ) -> None:
            self.topic = topic
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None


class FetchResponse(Message):
    """response, versions 4-18."""

    KIND = "response"
    TYPE = 1
    LOWEST_VERSION = 4
    HIGHEST_VERSION = 18
    FLEXIBLE_FROM = 12
    __slots__ = ("throttle_time_ms", "error_code", "session_id", "responses", "node_endpoints",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 1, 32767, None, None, 0, True),
        ('error_code', 'int16', 7, 32767, None, None, 0, True),
        ('session_id', 'int32', 7, 32767, None, None, 0, False),
        ('responses', '[]FetchableTopicResponse', 0, 32767, None, None, (), False),
        ('node_endpoints', '[]NodeEndpoint', 16, 32767, None, (0, 16, 32767), (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        session_id: int = 0,
        responses: list[FetchResponse.FetchableTopicResponse] = UNSET,
        node_endpoints: list[FetchResponse.NodeEndpoint] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.session_id = session_id
        self.responses = [] if responses is UNSET else responses
        self.node_endpoints = [] if node_endpoints is UNSET else node_endpoints
        self.unknown_tagged_fields = None

    class FetchableTopicResponse(Message):
        __slots__ = ("topic", "topic_id", "partitions",)
        FIELDS = (
            ('topic', 'string', 0, 12, None, None, '', True),
            ('topic_id', 'uuid', 13, 32767, None, None, (), True),
            ('partitions', '[]PartitionData', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic: str = '',
            topic_id: UUID = ZERO_UUID,
            partitions: list[FetchResponse.PartitionData] = UNSET,
        ) -> None:
            self.topic = topic
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class PartitionData(Message):
        __slots__ = ("partition_index", "error_code", "high_watermark", "last_stable_offset", "log_start_offset", "diverging_epoch", "current_leader", "snapshot_id", "aborted_transactions", "preferred_read_replica", "records",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('high_watermark', 'int64', 0, 32767, None, None, 0, False),
            ('last_stable_offset', 'int64', 4, 32767, None, None, -1, True),
            ('log_start_offset', 'int64', 5, 32767, None, None, -1, True),
            ('diverging_epoch', 'EpochEndOffset', 12, 32767, None, (0, 12, 32767), (), False),
            ('current_leader', 'LeaderIdAndEpoch', 12, 32767, None, (1, 12, 32767), (), False),
            ('snapshot_id', 'SnapshotId', 12, 32767, None, (2, 12, 32767), (), False),
            ('aborted_transactions', '[]AbortedTransaction', 4, 32767, (4, 32767), None, (), True),
            ('preferred_read_replica', 'int32', 11, 32767, None, None, -1, False),
            ('records', 'records', 0, 32767, (0, 32767), None, None, False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            high_watermark: int = 0,
            last_stable_offset: int = -1,
            log_start_offset: int = -1,
            diverging_epoch: FetchResponse.EpochEndOffset = UNSET,
            current_leader: FetchResponse.LeaderIdAndEpoch = UNSET,
            snapshot_id: FetchResponse.SnapshotId = UNSET,
            aborted_transactions: list[FetchResponse.AbortedTransaction] | None = UNSET,
            preferred_read_replica: int = -1,
            records: bytes | None = None,
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.high_watermark = high_watermark
            self.last_stable_offset = last_stable_offset
            self.log_start_offset = log_start_offset
            self.diverging_epoch = FetchResponse.EpochEndOffset() if diverging_epoch is UNSET else diverging_epoch
            self.current_leader = FetchResponse.LeaderIdAndEpoch() if current_leader is UNSET else current_leader
            self.snapshot_id = FetchResponse.SnapshotId() if snapshot_id is UNSET else snapshot_id
            self.aborted_transactions = [] if aborted_transactions is UNSET else aborted_transactions
            self.preferred_read_replica = preferred_read_replica
            self.records = records
            self.unknown_tagged_fields = None

    class EpochEndOffset(Message):
        __slots__ = ("epoch", "end_offset",)
        FIELDS = (
            ('epoch', 'int32', 12, 32767, None, None, -1, False),
            ('end_offset', 'int64', 12, 32767, None, None, -1, False),
        )

        def __init__(
            self,
            *,
            epoch: int = -1,
            end_offset: int = -1,
        ) -> None:
            self.epoch = epoch
            self.end_offset = end_offset
            self.unknown_tagged_fields = None

    class LeaderIdAndEpoch(Message):
        __slots__ = ("leader_id", "leader_epoch",)
        FIELDS = (
            ('leader_id', 'int32', 12, 32767, None, None, -1, False),
            ('leader_epoch', 'int32', 12, 32767, None, None, -1, False),
        )

        def __init__(
            self,
            *,
            leader_id: int = -1,
            leader_epoch: int = -1,
        ) -> None:
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.unknown_tagged_fields = None

    class SnapshotId(Message):
        __slots__ = ("end_offset", "epoch",)
        FIELDS = (
            ('end_offset', 'int64', 0, 32767, None, None, -1, False),
            ('epoch', 'int32', 0, 32767, None, None, -1, False),
        )

        def __init__(
            self,
            *,
            end_offset: int = -1,
            epoch: int = -1,
        ) -> None:
            self.end_offset = end_offset
            self.epoch = epoch
            self.unknown_tagged_fields = None

    class AbortedTransaction(Message):
        __slots__ = ("producer_id", "first_offset",)
        FIELDS = (
            ('producer_id', 'int64', 4, 32767, None, None, 0, False),
            ('first_offset', 'int64', 4, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            producer_id: int = 0,
            first_offset: int = 0,
        ) -> None:
            self.producer_id = producer_id
            self.first_offset = first_offset
            self.unknown_tagged_fields = None

    class NodeEndpoint(Message):
        __slots__ = ("node_id", "host", "port", "rack",)
        FIELDS = (
            ('node_id', 'int32', 16, 32767, None, None, 0, False),
            ('host', 'string', 16, 32767, None, None, '', False),
            ('port', 'int32', 16, 32767, None, None, 0, False),
            ('rack', 'string', 16, 32767, (16, 32767), None, None, False),
        )

        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = '',
            port: int = 0,
            rack: str | None = None,
        ) -> None:
            self.node_id = node_id
            self.host = host
            self.port = port
            self.rack = rack
            self.unknown_tagged_fields = None
