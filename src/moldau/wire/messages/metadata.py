"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class MetadataRequest(Message):
    """request, versions 0-13."""

    KIND = "request"
    TYPE = 3
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 13
    FLEXIBLE_FROM = 9
    __slots__ = ("topics", "allow_auto_topic_creation", "include_cluster_authorized_operations", "include_topic_authorized_operations",)
    FIELDS = (
        ('topics', '[]MetadataRequestTopic', 0, 32767, (1, 32767), None, (), False),
        ('allow_auto_topic_creation', 'bool', 4, 32767, None, None, True, False),
        ('include_cluster_authorized_operations', 'bool', 8, 10, None, None, False, False),
        ('include_topic_authorized_operations', 'bool', 8, 32767, None, None, False, False),
    )

    def __init__(
        self,
        *,
        topics: list[MetadataRequest.MetadataRequestTopic] | None = UNSET,
        allow_auto_topic_creation: bool = True,
        include_cluster_authorized_operations: bool = False,
        include_topic_authorized_operations: bool = False,
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.allow_auto_topic_creation = allow_auto_topic_creation
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.include_topic_authorized_operations = include_topic_authorized_operations
        self.unknown_tagged_fields = None

    class MetadataRequestTopic(Message):
        __slots__ = ("topic_id", "name",)
        FIELDS = (
            ('topic_id', 'uuid', 10, 32767, None, None, (), True),
            ('name', 'string', 0, 32767, (10, 32767), None, '', False),
        )

        def __init__(
            self,
            *,
            topic_id: UUID = ZERO_UUID,
            name: str | None = '',
        ) -> None:
            self.topic_id = topic_id
            self.name = name
            self.unknown_tagged_fields = None


class MetadataResponse(Message):
    """response, versions 0-13."""

    KIND = "response"
    TYPE = 3
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 13
    FLEXIBLE_FROM = 9
    __slots__ = ("throttle_time_ms", "brokers", "cluster_id", "controller_id", "topics", "cluster_authorized_operations", "error_code",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 3, 32767, None, None, 0, True),
        ('brokers', '[]MetadataResponseBroker', 0, 32767, None, None, (), False),
        ('cluster_id', 'string', 2, 32767, (2, 32767), None, None, True),
        ('controller_id', 'int32', 1, 32767, None, None, -1, True),
        ('topics', '[]MetadataResponseTopic', 0, 32767, None, None, (), False),
        ('cluster_authorized_operations', 'int32', 8, 10, None, None, -2147483648, False),
        ('error_code', 'int16', 13, 32767, None, None, 0, True),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        brokers: list[MetadataResponse.MetadataResponseBroker] = UNSET,
        cluster_id: str | None = None,
        controller_id: int = -1,
        topics: list[MetadataResponse.MetadataResponseTopic] = UNSET,
        cluster_authorized_operations: int = -2147483648,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.brokers = [] if brokers is UNSET else brokers
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.topics = [] if topics is UNSET else topics
        self.cluster_authorized_operations = cluster_authorized_operations
        self.error_code = error_code
        self.unknown_tagged_fields = None

    class MetadataResponseBroker(Message):
        __slots__ = ("node_id", "host", "port", "rack",)
        FIELDS = (
            ('node_id', 'int32', 0, 32767, None, None, 0, False),
            ('host', 'string', 0, 32767, None, None, '', False),
            ('port', 'int32', 0, 32767, None, None, 0, False),
            ('rack', 'string', 1, 32767, (1, 32767), None, None, True),
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

    class MetadataResponseTopic(Message):
        __slots__ = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations",)
        FIELDS = (
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('name', 'string', 0, 32767, (12, 32767), None, '', False),
            ('topic_id', 'uuid', 10, 32767, None, None, (), True),
            ('is_internal', 'bool', 1, 32767, None, None, False, True),
            ('partitions', '[]MetadataResponsePartition', 0, 32767, None, None, (), False),
            ('topic_authorized_operations', 'int32', 8, 32767, None, None, -2147483648, False),
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            name: str | None = '',
            topic_id: UUID = ZERO_UUID,
            is_internal: bool = False,
            partitions: list[MetadataResponse.MetadataResponsePartition] = UNSET,
            topic_authorized_operations: int = -2147483648,
        ) -> None:
            self.error_code = error_code
            self.name = name
            self.topic_id = topic_id
            self.is_internal = is_internal
            self.partitions = [] if partitions is UNSET else partitions
            self.topic_authorized_operations = topic_authorized_operations
            self.unknown_tagged_fields = None

    class MetadataResponsePartition(Message):
        __slots__ = ("error_code", "partition_index", "leader_id", "leader_epoch", "replica_nodes", "isr_nodes", "offline_replicas",)
        FIELDS = (
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('leader_id', 'int32', 0, 32767, None, None, 0, False),
            ('leader_epoch', 'int32', 7, 32767, None, None, -1, True),
            ('replica_nodes', '[]int32', 0, 32767, None, None, (), False),
            ('isr_nodes', '[]int32', 0, 32767, None, None, (), False),
            ('offline_replicas', '[]int32', 5, 32767, None, None, (), True),
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            partition_index: int = 0,
            leader_id: int = 0,
            leader_epoch: int = -1,
            replica_nodes: list[int] = UNSET,
            isr_nodes: list[int] = UNSET,
            offline_replicas: list[int] = UNSET,
        ) -> None:
            self.error_code = error_code
            self.partition_index = partition_index
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.replica_nodes = [] if replica_nodes is UNSET else replica_nodes
            self.isr_nodes = [] if isr_nodes is UNSET else isr_nodes
            self.offline_replicas = [] if offline_replicas is UNSET else offline_replicas
            self.unknown_tagged_fields = None
