"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class AlterReplicaLogDirsRequest(Message):
    """request, versions 1-2."""

    KIND = "request"
    TYPE = 34
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 2
    FLEXIBLE_FROM = 2
    __slots__ = ("dirs",)
    FIELDS = (
        ('dirs', '[]AlterReplicaLogDir', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        dirs: list[AlterReplicaLogDirsRequest.AlterReplicaLogDir] = UNSET,
    ) -> None:
        self.dirs = [] if dirs is UNSET else dirs
        self.unknown_tagged_fields = None

    class AlterReplicaLogDir(Message):
        __slots__ = ("path", "topics",)
        FIELDS = (
            ('path', 'string', 0, 32767, None, None, '', False),
            ('topics', '[]AlterReplicaLogDirTopic', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            path: str = '',
            topics: list[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic] = UNSET,
        ) -> None:
            self.path = path
            self.topics = [] if topics is UNSET else topics
            self.unknown_tagged_fields = None

    class AlterReplicaLogDirTopic(Message):
        __slots__ = ("name", "partitions",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]int32', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            partitions: list[int] = UNSET,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None


class AlterReplicaLogDirsResponse(Message):
    """response, versions 1-2."""

    KIND = "response"
    TYPE = 34
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 2
    FLEXIBLE_FROM = 2
    __slots__ = ("throttle_time_ms", "results",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('results', '[]AlterReplicaLogDirTopicResult', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is UNSET else results
        self.unknown_tagged_fields = None

    class AlterReplicaLogDirTopicResult(Message):
        __slots__ = ("topic_name", "partitions",)
        FIELDS = (
            ('topic_name', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]AlterReplicaLogDirPartitionResult', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_name: str = '',
            partitions: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult] = UNSET,
        ) -> None:
            self.topic_name = topic_name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class AlterReplicaLogDirPartitionResult(Message):
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
