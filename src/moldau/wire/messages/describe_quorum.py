"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class DescribeQuorumRequest(Message):
    """request, versions 0-2."""

    KIND = "request"
    TYPE = 55
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 2
    FLEXIBLE_FROM = 0
    __slots__ = ("topics",)
    FIELDS = (
        ('topics', '[]TopicData', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        topics: list[DescribeQuorumRequest.TopicData] = UNSET,
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.unknown_tagged_fields = None

    class TopicData(Message):
        __slots__ = ("topic_name", "partitions",)
        FIELDS = (
            ('topic_name', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]PartitionData', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_name: str = '',
            partitions: list[DescribeQuorumRequest.PartitionData] = UNSET,
        ) -> None:
            self.topic_name = topic_name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class PartitionData(Message):
        __slots__ = ("partition_index",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.unknown_tagged_fields = None


class DescribeQuorumResponse(Message):
    """response, versions 0-2."""

    KIND = "response"
    TYPE = 55
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 2
    FLEXIBLE_FROM = 0
    __slots__ = ("error_code", "error_message", "topics", "nodes",)
    FIELDS = (
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('error_message', 'string', 2, 32767, (2, 32767), None, '', True),
        ('topics', '[]TopicData', 0, 32767, None, None, (), False),
        ('nodes', '[]Node', 2, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = '',
        topics: list[DescribeQuorumResponse.TopicData] = UNSET,
        nodes: list[DescribeQuorumResponse.Node] = UNSET,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.topics = [] if topics is UNSET else topics
        self.nodes = [] if nodes is UNSET else nodes
        self.unknown_tagged_fields = None

    class TopicData(Message):
        __slots__ = ("topic_name", "partitions",)
        FIELDS = (
            ('topic_name', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]PartitionData', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_name: str = '',
            partitions: list[DescribeQuorumResponse.PartitionData] = UNSET,
        ) -> None:
            self.topic_name = topic_name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class PartitionData(Message):
        __slots__ = ("partition_index", "error_code", "error_message", "leader_id", "leader_epoch", "high_watermark", "current_voters", "observers",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('error_message', 'string', 2, 32767, (2, 32767), None, '', True),
            ('leader_id', 'int32', 0, 32767, None, None, 0, False),
            ('leader_epoch', 'int32', 0, 32767, None, None, 0, False),
            ('high_watermark', 'int64', 0, 32767, None, None, 0, False),
            ('current_voters', '[]ReplicaState', 0, 32767, None, None, (), False),
            ('observers', '[]ReplicaState', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = '',
            leader_id: int = 0,
            leader_epoch: int = 0,
            high_watermark: int = 0,
            current_voters: list[DescribeQuorumResponse.ReplicaState] = UNSET,
            observers: list[DescribeQuorumResponse.ReplicaState] = UNSET,
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.error_message = error_message
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.high_watermark = high_watermark
            self.current_voters = [] if current_voters is UNSET else current_voters
            self.observers = [] if observers is UNSET else observers
            self.unknown_tagged_fields = None

    class Node(Message):
        __slots__ = ("node_id", "listeners",)
        FIELDS = (
            ('node_id', 'int32', 2, 32767, None, None, 0, False),
            ('listeners', '[]Listener', 2, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            node_id: int = 0,
            listeners: list[DescribeQuorumResponse.Listener] = UNSET,
        ) -> None:
            self.node_id = node_id
            self.listeners = [] if listeners is UNSET else listeners
            self.unknown_tagged_fields = None

    class Listener(Message):
        __slots__ = ("name", "host", "port",)
        FIELDS = (
            ('name', 'string', 2, 32767, None, None, '', False),
            ('host', 'string', 2, 32767, None, None, '', False),
            ('port', 'uint16', 2, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            host: str = '',
            port: int = 0,
        ) -> None:
            self.name = name
            self.host = host
            self.port = port
            self.unknown_tagged_fields = None

    class ReplicaState(Message):
        __slots__ = ("replica_id", "replica_directory_id", "log_end_offset", "last_fetch_timestamp", "last_caught_up_timestamp",)
        FIELDS = (
            ('replica_id', 'int32', 0, 32767, None, None, 0, False),
            ('replica_directory_id', 'uuid', 2, 32767, None, None, (), False),
            ('log_end_offset', 'int64', 0, 32767, None, None, 0, False),
            ('last_fetch_timestamp', 'int64', 1, 32767, None, None, -1, True),
            ('last_caught_up_timestamp', 'int64', 1, 32767, None, None, -1, True),
        )

        def __init__(
            self,
            *,
            replica_id: int = 0,
            replica_directory_id: UUID = ZERO_UUID,
            log_end_offset: int = 0,
            last_fetch_timestamp: int = -1,
            last_caught_up_timestamp: int = -1,
        ) -> None:
            self.replica_id = replica_id
            self.replica_directory_id = replica_directory_id
            self.log_end_offset = log_end_offset
            self.last_fetch_timestamp = last_fetch_timestamp
            self.last_caught_up_timestamp = last_caught_up_timestamp
            self.unknown_tagged_fields = None
