"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class AlterPartitionReassignmentsRequest(Message):
    """request, versions 0-1."""

    KIND = "request"
    TYPE = 45
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 0
    __slots__ = ("timeout_ms", "allow_replication_factor_change", "topics",)
    FIELDS = (
        ('timeout_ms', 'int32', 0, 32767, None, None, 60000, False),
        ('allow_replication_factor_change', 'bool', 1, 32767, None, None, True, False),
        ('topics', '[]ReassignableTopic', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        allow_replication_factor_change: bool = True,
        topics: list[AlterPartitionReassignmentsRequest.ReassignableTopic] = UNSET,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.topics = [] if topics is UNSET else topics
        self.unknown_tagged_fields = None

    class ReassignableTopic(Message):
        __slots__ = ("name", "partitions",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]ReassignablePartition', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            partitions: list[AlterPartitionReassignmentsRequest.ReassignablePartition] = UNSET,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class ReassignablePartition(Message):
        __slots__ = ("partition_index", "replicas",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('replicas', '[]int32', 0, 32767, (0, 32767), None, None, False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            replicas: list[int] | None = None,
        ) -> None:
            self.partition_index = partition_index
            self.replicas = replicas
            self.unknown_tagged_fields = None


class AlterPartitionReassignmentsResponse(Message):
    """response, versions 0-1."""

    KIND = "response"
    TYPE = 45
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "allow_replication_factor_change", "error_code", "error_message", "responses",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('allow_replication_factor_change', 'bool', 1, 32767, None, None, True, True),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('error_message', 'string', 0, 32767, (0, 32767), None, '', False),
        ('responses', '[]ReassignableTopicResponse', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        allow_replication_factor_change: bool = True,
        error_code: int = 0,
        error_message: str | None = '',
        responses: list[AlterPartitionReassignmentsResponse.ReassignableTopicResponse] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is UNSET else responses
        self.unknown_tagged_fields = None

    class ReassignableTopicResponse(Message):
        __slots__ = ("name", "partitions",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]ReassignablePartitionResponse', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            partitions: list[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse] = UNSET,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class ReassignablePartitionResponse(Message):
        __slots__ = ("partition_index", "error_code", "error_message",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('error_message', 'string', 0, 32767, (0, 32767), None, '', False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = '',
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.error_message = error_message
            self.unknown_tagged_fields = None
