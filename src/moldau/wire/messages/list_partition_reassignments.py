"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class ListPartitionReassignmentsRequest(Message):
    """request, versions 0."""

    KIND = "request"
    TYPE = 46
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("timeout_ms", "topics",)
    FIELDS = (
        ('timeout_ms', 'int32', 0, 32767, None, None, 60000, False),
        ('topics', '[]ListPartitionReassignmentsTopics', 0, 32767, (0, 32767), None, None, False),
    )

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        topics: list[ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics] | None = None,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.topics = topics
        self.unknown_tagged_fields = None

    class ListPartitionReassignmentsTopics(Message):
        __slots__ = ("name", "partition_indexes",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('partition_indexes', '[]int32', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            partition_indexes: list[int] = UNSET,
        ) -> None:
            self.name = name
            self.partition_indexes = [] if partition_indexes is UNSET else partition_indexes
            self.unknown_tagged_fields = None


class ListPartitionReassignmentsResponse(Message):
    """response, versions 0."""

    KIND = "response"
    TYPE = 46
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "topics",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('error_message', 'string', 0, 32767, (0, 32767), None, '', False),
        ('topics', '[]OngoingTopicReassignment', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = '',
        topics: list[ListPartitionReassignmentsResponse.OngoingTopicReassignment] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.topics = [] if topics is UNSET else topics
        self.unknown_tagged_fields = None

    class OngoingTopicReassignment(Message):
        __slots__ = ("name", "partitions",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]OngoingPartitionReassignment', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            partitions: list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment] = UNSET,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class OngoingPartitionReassignment(Message):
        __slots__ = ("partition_index", "replicas", "adding_replicas", "removing_replicas",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('replicas', '[]int32', 0, 32767, None, None, (), False),
            ('adding_replicas', '[]int32', 0, 32767, None, None, (), False),
            ('removing_replicas', '[]int32', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            replicas: list[int] = UNSET,
            adding_replicas: list[int] = UNSET,
            removing_replicas: list[int] = UNSET,
        ) -> None:
            self.partition_index = partition_index
            self.replicas = [] if replicas is UNSET else replicas
            self.adding_replicas = [] if adding_replicas is UNSET else adding_replicas
            self.removing_replicas = [] if removing_replicas is UNSET else removing_replicas
            self.unknown_tagged_fields = None
