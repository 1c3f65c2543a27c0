"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class VoteRequest(Message):
    """request, versions 0-2."""

    KIND = "request"
    TYPE = 52
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 2
    FLEXIBLE_FROM = 0
    __slots__ = ("cluster_id", "voter_id", "topics",)
    FIELDS = (
        ('cluster_id', 'string', 0, 32767, (0, 32767), None, None, False),
        ('voter_id', 'int32', 1, 32767, None, None, -1, True),
        ('topics', '[]TopicData', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        voter_id: int = -1,
        topics: list[VoteRequest.TopicData] = UNSET,
    ) -> None:
        self.cluster_id = cluster_id
        self.voter_id = voter_id
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
            partitions: list[VoteRequest.PartitionData] = UNSET,
        ) -> None:
            self.topic_name = topic_name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class PartitionData(Message):
        __slots__ = ("partition_index", "replica_epoch", "replica_id", "replica_directory_id", "voter_directory_id", "last_offset_epoch", "last_offset", "pre_vote",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('replica_epoch', 'int32', 0, 32767, None, None, 0, False),
            ('replica_id', 'int32', 0, 32767, None, None, 0, False),
            ('replica_directory_id', 'uuid', 1, 32767, None, None, (), True),
            ('voter_directory_id', 'uuid', 1, 32767, None, None, (), True),
            ('last_offset_epoch', 'int32', 0, 32767, None, None, 0, False),
            ('last_offset', 'int64', 0, 32767, None, None, 0, False),
            ('pre_vote', 'bool', 2, 32767, None, None, False, False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            replica_epoch: int = 0,
            replica_id: int = 0,
            replica_directory_id: UUID = ZERO_UUID,
            voter_directory_id: UUID = ZERO_UUID,
            last_offset_epoch: int = 0,
            last_offset: int = 0,
            pre_vote: bool = False,
        ) -> None:
            self.partition_index = partition_index
            self.replica_epoch = replica_epoch
            self.replica_id = replica_id
            self.replica_directory_id = replica_directory_id
            self.voter_directory_id = voter_directory_id
            self.last_offset_epoch = last_offset_epoch
            self.last_offset = last_offset
            self.pre_vote = pre_vote
            self.unknown_tagged_fields = None


class VoteResponse(Message):
    """response, versions 0-2."""

    KIND = "response"
    TYPE = 52
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 2
    FLEXIBLE_FROM = 0
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
        topics: list[VoteResponse.TopicData] = UNSET,
        node_endpoints: list[VoteResponse.NodeEndpoint] = UNSET,
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
            partitions: list[VoteResponse.PartitionData] = UNSET,
        ) -> None:
            self.topic_name = topic_name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class PartitionData(Message):
        __slots__ = ("partition_index", "error_code", "leader_id", "leader_epoch", "vote_granted",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('leader_id', 'int32', 0, 32767, None, None, 0, False),
            ('leader_epoch', 'int32', 0, 32767, None, None, 0, False),
            ('vote_granted', 'bool', 0, 32767, None, None, False, False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            leader_id: int = 0,
            leader_epoch: int = 0,
            vote_granted: bool = False,
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.vote_granted = vote_granted
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
