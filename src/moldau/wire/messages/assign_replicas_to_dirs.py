"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class AssignReplicasToDirsRequest(Message):
    """request, versions 0."""

    KIND = "request"
    TYPE = 73
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("broker_id", "broker_epoch", "directories",)
    FIELDS = (
        ('broker_id', 'int32', 0, 32767, None, None, 0, False),
        ('broker_epoch', 'int64', 0, 32767, None, None, -1, False),
        ('directories', '[]DirectoryData', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        directories: list[AssignReplicasToDirsRequest.DirectoryData] = UNSET,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.directories = [] if directories is UNSET else directories
        self.unknown_tagged_fields = None

    class DirectoryData(Message):
        __slots__ = ("id", "topics",)
        FIELDS = (
            ('id', 'uuid', 0, 32767, None, None, (), False),
            ('topics', '[]TopicData', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            id: UUID = ZERO_UUID,
            topics: list[AssignReplicasToDirsRequest.TopicData] = UNSET,
        ) -> None:
            self.id = id
            self.topics = [] if topics is UNSET else topics
            self.unknown_tagged_fields = None

    class TopicData(Message):
        __slots__ = ("topic_id", "partitions",)
        FIELDS = (
            ('topic_id', 'uuid', 0, 32767, None, None, (), False),
            ('partitions', '[]PartitionData', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_id: UUID = ZERO_UUID,
            partitions: list[AssignReplicasToDirsRequest.PartitionData] = UNSET,
        ) -> None:
            self.topic_id = topic_id
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


class AssignReplicasToDirsResponse(Message):
    """response, versions 0."""

    KIND = "response"
    TYPE = 73
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "directories",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('directories', '[]DirectoryData', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        directories: list[AssignReplicasToDirsResponse.DirectoryData] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.directories = [] if directories is UNSET else directories
        self.unknown_tagged_fields = None

    class DirectoryData(Message):
        __slots__ = ("id", "topics",)
        FIELDS = (
            ('id', 'uuid', 0, 32767, None, None, (), False),
            ('topics', '[]TopicData', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            id: UUID = ZERO_UUID,
            topics: list[AssignReplicasToDirsResponse.TopicData] = UNSET,
        ) -> None:
            self.id = id
            self.topics = [] if topics is UNSET else topics
            self.unknown_tagged_fields = None

    class TopicData(Message):
        __slots__ = ("topic_id", "partitions",)
        FIELDS = (
            ('topic_id', 'uuid', 0, 32767, None, None, (), False),
            ('partitions', '[]PartitionData', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_id: UUID = ZERO_UUID,
            partitions: list[AssignReplicasToDirsResponse.PartitionData] = UNSET,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class PartitionData(Message):
        __slots__ = ("partition_index", "error_code",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.unknown_tagged_fields = None
