"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class ProduceRequest(Message):
    """request, versions 3-13."""

    KIND = "request"
    TYPE = 0
    LOWEST_VERSION = 3
    HIGHEST_VERSION = 13
    FLEXIBLE_FROM = 9
    __slots__ = ("transactional_id", "acks", "timeout_ms", "topic_data",)
    FIELDS = (
        ('transactional_id', 'string', 3, 32767, (3, 32767), None, None, False),
        ('acks', 'int16', 0, 32767, None, None, 0, False),
        ('timeout_ms', 'int32', 0, 32767, None, None, 0, False),
        ('topic_data', '[]TopicProduceData', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        transactional_id: str | None = None,
        acks: int = 0,
        timeout_ms: int = 0,
        topic_data: list[ProduceRequest.TopicProduceData] = UNSET,
    ) -> None:
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topic_data = [] if topic_data is UNSET else topic_data
        self.unknown_tagged_fields = None

    class TopicProduceData(Message):
        __slots__ = ("name", "topic_id", "partition_data",)
        FIELDS = (
            ('name', 'string', 0, 12, None, None, '', True),
            ('topic_id', 'uuid', 13, 32767, None, None, (), True),
            ('partition_data', '[]PartitionProduceData', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            topic_id: UUID = ZERO_UUID,
            partition_data: list[ProduceRequest.PartitionProduceData] = UNSET,
        ) -> None:
            self.name = name
            self.topic_id = topic_id
            self.partition_data = [] if partition_data is UNSET else partition_data
            self.unknown_tagged_fields = None

    class PartitionProduceData(Message):
        __slots__ = ("index", "records",)
        FIELDS = (
            ('index', 'int32', 0, 32767, None, None, 0, False),
            ('records', 'records', 0, 32767, (0, 32767), None, None, False),
        )

        def __init__(
            self,
            *,
            index: int = 0,
            records: bytes | None = None,
        ) -> None:
            self.index = index
            self.records = records
            self.unknown_tagged_fields = None


class ProduceResponse(Message):
    """response, versions 3-13."""

    KIND = "response"
    TYPE = 0
    LOWEST_VERSION = 3
    HIGHEST_VERSION = 13
    FLEXIBLE_FROM = 9
    __slots__ = ("responses", "throttle_time_ms", "node_endpoints",)
    FIELDS = (
        ('responses', '[]TopicProduceResponse', 0, 32767, None, None, (), False),
        ('throttle_time_ms', 'int32', 1, 32767, None, None, 0, True),
        ('node_endpoints', '[]NodeEndpoint', 10, 32767, None, (0, 10, 32767), (), False),
    )

    def __init__(
        self,
        *,
        responses: list[ProduceResponse.TopicProduceResponse] = UNSET,
        throttle_time_ms: int = 0,
        node_endpoints: list[ProduceResponse.NodeEndpoint] = UNSET,
    ) -> None:
        self.responses = [] if responses is UNSET else responses
        self.throttle_time_ms = throttle_time_ms
        self.node_endpoints = [] if node_endpoints is UNSET else node_endpoints
        self.unknown_tagged_fields = None

    class TopicProduceResponse(Message):
        __slots__ = ("name", "topic_id", "partition_responses",)
        FIELDS = (
            ('name', 'string', 0, 12, None, None, '', True),
            ('topic_id', 'uuid', 13, 32767, None, None, (), True),
            ('partition_responses', '[]PartitionProduceResponse', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            topic_id: UUID = ZERO_UUID,
            partition_responses: list[ProduceResponse.PartitionProduceResponse] = UNSET,
        ) -> None:
            self.name = name
            self.topic_id = topic_id
            self.partition_responses = [] if partition_responses is UNSET else partition_responses
            self.unknown_tagged_fields = None

    class PartitionProduceResponse(Message):
        __slots__ = ("index", "error_code", "base_offset", "log_append_time_ms", "log_start_offset", "record_errors", "error_message", "current_leader",)
        FIELDS = (
            ('index', 'int32', 0, 32767, None, None, 0, False),
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('base_offset', 'int64', 0, 32767, None, None, 0, False),
            ('log_append_time_ms', 'int64', 2, 32767, None, None, -1, True),
            ('log_start_offset', 'int64', 5, 32767, None, None, -1, True),
            ('record_errors', '[]BatchIndexAndErrorMessage', 8, 32767, None, None, (), True),
            ('error_message', 'string', 8, 32767, (8, 32767), None, None, True),
            ('current_leader', 'LeaderIdAndEpoch', 10, 32767, None, (0, 10, 32767), (), False),
        )

        def __init__(
            self,
            *,
            index: int = 0,
            error_code: int = 0,
            base_offset: int = 0,
            log_append_time_ms: int = -1,
            log_start_offset: int = -1,
            record_errors: list[ProduceResponse.BatchIndexAndErrorMessage] = UNSET,
            error_message: str | None = None,
            current_leader: ProduceResponse.LeaderIdAndEpoch = UNSET,
        ) -> None:
            self.index = index
            self.error_code = error_code
            self.base_offset = base_offset
            self.log_append_time_ms = log_append_time_ms
            self.log_start_offset = log_start_offset
            self.record_errors = [] if record_errors is UNSET else record_errors
            self.error_message = error_message
            self.current_leader = ProduceResponse.LeaderIdAndEpoch() if current_leader is UNSET else current_leader
            self.unknown_tagged_fields = None

    class BatchIndexAndErrorMessage(Message):
        __slots__ = ("batch_index", "batch_index_error_message",)
        FIELDS = (
            ('batch_index', 'int32', 8, 32767, None, None, 0, False),
            ('batch_index_error_message', 'string', 8, 32767, (8, 32767), None, None, False),
        )

        def __init__(
            self,
            *,
            batch_index: int = 0,
            batch_index_error_message: str | None = None,
        ) -> None:
            self.batch_index = batch_index
            self.batch_index_error_message = batch_index_error_message
            self.unknown_tagged_fields = None

    class LeaderIdAndEpoch(Message):
        __slots__ = ("leader_id", "leader_epoch",)
        FIELDS = (
            ('leader_id', 'int32', 10, 32767, None, None, -1, False),
            ('leader_epoch', 'int32', 10, 32767, None, None, -1, False),
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

    class NodeEndpoint(Message):
        __slots__ = ("node_id", "host", "port", "rack",)
        FIELDS = (
            ('node_id', 'int32', 10, 32767, None, None, 0, False),
            ('host', 'string', 10, 32767, None, None, '', False),
            ('port', 'int32', 10, 32767, None, None, 0, False),
            ('rack', 'string', 10, 32767, (10, 32767), None, None, False),
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
