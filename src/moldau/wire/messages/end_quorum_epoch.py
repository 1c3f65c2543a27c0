"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class EndQuorumEpochRequest(Message):
    """request, versions 0-1."""

    KIND = "request"
    TYPE = 54
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 1
    __slots__ = ("cluster_id", "topics", "leader_endpoints",)
    FIELDS = (
        ('cluster_id', 'string', 0, 32767, (0, 32767), None, None, False),
        ('topics', '[]TopicData', 0, 32767, None, None, (), False),
        ('leader_endpoints', '[]LeaderEndpoint', 1, 32767, None, None, (), True),
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        topics: list[EndQuorumEpochRequest.TopicData] = UNSET,
        leader_endpoints: list[EndQuorumEpochRequest.LeaderEndpoint] = UNSET,
    ) -> None:
        self.cluster_id = cluster_id
        self.topics = [] if topics is UNSET else topics
        self.leader_endpoints = [] if leader_endpoints is UNSET else leader_endpoints
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
            partitions: list[EndQuorumEpochRequest.PartitionData] = UNSET,
        ) -> None:
            self.topic_name = topic_name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class PartitionData(Message):
        __slots__ = ("partition_index", "leader_id", "leader_epoch", "preferred_successors", "preferred_candidates",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('leader_id', 'int32', 0, 32767, None, None, 0, False),
            ('leader_epoch', 'int32', 0, 32767, None, None, 0, False),
            ('preferred_successors', '[]int32', 0, 0, None, None, (), True),
            ('preferred_candidates', '[]ReplicaInfo', 1, 32767, None, None, (), True),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            leader_id: int = 0,
            leader_epoch: int = 0,
            preferred_successors: list[int] = UNSET,
            preferred_candidates: list[EndQuorumEpochRequest.ReplicaInfo] = UNSET,
        ) -> None:
            self.partition_index = partition_index
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.preferred_successors = [] if preferred_successors is UNSET else preferred_successors
            self.preferred_candidates = [] if preferred_candidates is UNSET else preferred_candidates
            self.unknown_tagged_fields = None

    class ReplicaInfo(Message):
        __slots__ = ("candidate_id", "candidate_directory_id",)
        FIELDS = (
            ('candidate_id', 'int32', 1, 32767, None, None, 0, False),
            ('candidate_directory_id', 'uuid', 1, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            candidate_id: int = 0,
            candidate_directory_id: UUID = ZERO_UUID,
        ) -> None:
            self.candidate_id = candidate_id
            self.candidate_directory_id = candidate_directory_id
            self.unknown_tagged_fields = None

    class LeaderEndpoint(Message):
        __slots__ = ("name", "host", "port",)
        FIELDS = (
            ('name', 'string', 1, 32767, None, None, '', False),
            ('host', 'string', 1, 32767, None, None, '', False),
            ('port', 'uint16', 1, 32767, None, None, 0, False),
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


class EndQuorumEpochResponse(Message):
    """response, versions 0-1."""

    KIND = "response"
    TYPE = 54
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 1
    __slots__ = ("error_code", "topics", "node_endpoints",)
    FIELDS = (
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('topics', '[]TopicData', 0, 32767, None, None, (), False),
        ('node_endpoints', '[]NodeEndpoint', 1, 32767, None, (0, 1, 32767), (), False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        topics: list[EndQuorumEpochResponse.TopicData] = UNSET,
        node_endpoints: list[EndQuorumEpochResponse.NodeEndpoint] = UNSET,
    ) -> None:
        self.error_code = error_code
        self.topics = [] if topics is UNSET else topics
        self.node_endpoints = [] if node_endpoints is UNSET else node_endpoints
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
            partitions: list[EndQuorumEpochResponse.PartitionData] = UNSET,
        ) -> None:
            self.topic_name = topic_name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class PartitionData(Message):
        __slots__ = ("partition_index", "error_code", "leader_id", "leader_epoch",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('leader_id', 'int32', 0, 32767, None, None, 0, False),
            ('leader_epoch', 'int32', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            leader_id: int = 0,
            leader_epoch: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.unknown_tagged_fields = None

    class NodeEndpoint(Message):
        __slots__ = ("node_id", "host", "port",)
        FIELDS = (
            ('node_id', 'int32', 1, 32767, None, None, 0, False),
            ('host', 'string', 1, 32767, None, None, '', False),
            ('port', 'uint16', 1, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = '',
            port: int = 0,
        ) -> None:
            self.node_id = node_id
            self.host = host
            self.port = port
            self.unknown_tagged_fields = None
