"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class ShareAcknowledgeRequest(Message):
    """request, versions 1-2."""

    KIND = "request"
    TYPE = 79
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 2
    FLEXIBLE_FROM = 0
    __slots__ = ("group_id", "member_id", "share_session_epoch", "is_renew_ack", "topics",)
    FIELDS = (
        ('group_id', 'string', 0, 32767, (0, 32767), None, None, False),
        ('member_id', 'string', 0, 32767, (0, 32767), None, '', False),
        ('share_session_epoch', 'int32', 0, 32767, None, None, 0, False),
        ('is_renew_ack', 'bool', 2, 32767, None, None, False, False),
        ('topics', '[]AcknowledgeTopic', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        group_id: str | None = None,
        member_id: str | None = '',
        share_session_epoch: int = 0,
        is_renew_ack: bool = False,
        topics: list[ShareAcknowledgeRequest.AcknowledgeTopic] = UNSET,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.share_session_epoch = share_session_epoch
        self.is_renew_ack = is_renew_ack
        self.topics = [] if topics is UNSET else topics
        self.unknown_tagged_fields = None

    class AcknowledgeTopic(Message):
        __slots__ = ("topic_id", "partitions",)
        FIELDS = (
            ('topic_id', 'uuid', 0, 32767, None, None, (), False),
            ('partitions', '[]AcknowledgePartition', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_id: UUID = ZERO_UUID,
            partitions: list[ShareAcknowledgeRequest.AcknowledgePartition] = UNSET,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class AcknowledgePartition(Message):
        __slots__ = ("partition_index", "acknowledgement_batches",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('acknowledgement_batches', '[]AcknowledgementBatch', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            acknowledgement_batches: list[ShareAcknowledgeRequest.AcknowledgementBatch] = UNSET,
        ) -> None:
            self.partition_index = partition_index
            self.acknowledgement_batches = [] if acknowledgement_batches is UNSET else acknowledgement_batches
            self.unknown_tagged_fields = None

    class AcknowledgementBatch(Message):
        __slots__ = ("first_offset", "last_offset", "acknowledge_types",)
        FIELDS = (
            ('first_offset', 'int64', 0, 32767, None, None, 0, False),
            ('last_offset', 'int64', 0, 32767, None, None, 0, False),
            ('acknowledge_types', '[]int8', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            first_offset: int = 0,
            last_offset: int = 0,
            acknowledge_types: list[int] = UNSET,
        ) -> None:
            self.first_offset = first_offset
            self.last_offset = last_offset
            self.acknowledge_types = [] if acknowledge_types is UNSET else acknowledge_types
            self.unknown_tagged_fields = None


class ShareAcknowledgeResponse(Message):
    """response, versions 1-2."""

    KIND = "response"
    TYPE = 79
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 2
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "acquisition_lock_timeout_ms", "responses", "node_endpoints",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('error_message', 'string', 0, 32767, (0, 32767), None, None, False),
        ('acquisition_lock_timeout_ms', 'int32', 2, 32767, None, None, 0, True),
        ('responses', '[]ShareAcknowledgeTopicResponse', 0, 32767, None, None, (), False),
        ('node_endpoints', '[]NodeEndpoint', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: list[ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse] = UNSET,
        node_endpoints: list[ShareAcknowledgeResponse.NodeEndpoint] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.acquisition_lock_timeout_ms = acquisition_lock_timeout_ms
        self.responses = [] if responses is UNSET else responses
        self.node_endpoints = [] if node_endpoints is UNSET else node_endpoints
        self.unknown_tagged_fields = None

    class ShareAcknowledgeTopicResponse(Message):
        __slots__ = ("topic_id", "partitions",)
        FIELDS = (
            ('topic_id', 'uuid', 0, 32767, None, None, (), False),
            ('partitions', '[]PartitionData', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_id: UUID = ZERO_UUID,
            partitions: list[ShareAcknowledgeResponse.PartitionData] = UNSET,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class PartitionData(Message):
        __slots__ = ("partition_index", "error_code", "error_message", "current_leader",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('error_message', 'string', 0, 32767, (0, 32767), None, None, False),
            ('current_leader', 'LeaderIdAndEpoch', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            current_leader: ShareAcknowledgeResponse.LeaderIdAndEpoch = UNSET,
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.error_message = error_message
            self.current_leader = ShareAcknowledgeResponse.LeaderIdAndEpoch() if current_leader is UNSET else current_leader
            self.unknown_tagged_fields = None

    class LeaderIdAndEpoch(Message):
        __slots__ = ("leader_id", "leader_epoch",)
        FIELDS = (
            ('leader_id', 'int32', 0, 32767, None, None, 0, False),
            ('leader_epoch', 'int32', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            leader_id: int = 0,
            leader_epoch: int = 0,
        ) -> None:
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.unknown_tagged_fields = None

    class NodeEndpoint(Message):
        __slots__ = ("node_id", "host", "port", "rack",)
        FIELDS = (
            ('node_id', 'int32', 0, 32767, None, None, 0, False),
            ('host', 'string', 0, 32767, None, None, '', False),
            ('port', 'int32', 0, 32767, None, None, 0, False),
            ('rack', 'string', 0, 32767, (0, 32767), None, None, False),
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
