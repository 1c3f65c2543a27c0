"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class ElectLeadersRequest(Message):
    """request, versions 0-2."""

    KIND = "request"
    TYPE = 43
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 2
    FLEXIBLE_FROM = 2
    __slots__ = ("election_type", "topic_partitions", "timeout_ms",)
    FIELDS = (
        ('election_type', 'int8', 1, 32767, None, None, 0, False),
        ('topic_partitions', '[]TopicPartitions', 0, 32767, (0, 32767), None, (), False),
        ('timeout_ms', 'int32', 0, 32767, None, None, 60000, False),
    )

    def __init__(
        self,
        *,
        election_type: int = 0,
        topic_partitions: list[ElectLeadersRequest.TopicPartitions] | None = UNSET,
        timeout_ms: int = 60000,
    ) -> None:
        self.election_type = election_type
        self.topic_partitions = [] if topic_partitions is UNSET else topic_partitions
        self.timeout_ms = timeout_ms
        self.unknown_tagged_fields = None

    class TopicPartitions(Message):
        __slots__ = ("topic", "partitions",)
        FIELDS = (
            ('topic', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]int32', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic: str = '',
            partitions: list[int] = UNSET,
        ) -> None:
            self.topic = topic
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None


class ElectLeadersResponse(Message):
    """response, versions 0-2."""

    KIND = "response"
    TYPE = 43
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 2
    FLEXIBLE_FROM = 2
    __slots__ = ("throttle_time_ms", "error_code", "replica_election_results",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('error_code', 'int16', 1, 32767, None, None, 0, False),
        ('replica_election_results', '[]ReplicaElectionResult', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        replica_election_results: list[ElectLeadersResponse.ReplicaElectionResult] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.replica_election_results = [] if replica_election_results is UNSET else replica_election_results
        self.unknown_tagged_fields = None

    class ReplicaElectionResult(Message):
        __slots__ = ("topic", "partition_result",)
        FIELDS = (
            ('topic', 'string', 0, 32767, None, None, '', False),
            ('partition_result', '[]PartitionResult', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic: str = '',
            partition_result: list[ElectLeadersResponse.PartitionResult] = UNSET,
        ) -> None:
            self.topic = topic
            self.partition_result = [] if partition_result is UNSET else partition_result
            self.unknown_tagged_fields = None

    class PartitionResult(Message):
        __slots__ = ("partition_id", "error_code", "error_message",)
        FIELDS = (
            ('partition_id', 'int32', 0, 32767, None, None, 0, False),
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('error_message', 'string', 0, 32767, (0, 32767), None, '', False),
        )

        def __init__(
            self,
            *,
            partition_id: int = 0,
            error_code: int = 0,
            error_message: str | None = '',
        ) -> None:
            self.partition_id = partition_id
            self.error_code = error_code
            self.error_message = error_message
            self.unknown_tagged_fields = None
