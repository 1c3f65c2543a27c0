"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class CreateTopicsRequest(Message):
    """request, versions 2-7."""

    KIND = "request"
    TYPE = 19
    LOWEST_VERSION = 2
    HIGHEST_VERSION = 7
    FLEXIBLE_FROM = 5
    __slots__ = ("topics", "timeout_ms", "validate_only",)
    FIELDS = (
        ('topics', '[]CreatableTopic', 0, 32767, None, None, (), False),
        ('timeout_ms', 'int32', 0, 32767, None, None, 60000, False),
        ('validate_only', 'bool', 1, 32767, None, None, False, False),
    )

    def __init__(
        self,
        *,
        topics: list[CreateTopicsRequest.CreatableTopic] = UNSET,
        timeout_ms: int = 60000,
        validate_only: bool = False,
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only
        self.unknown_tagged_fields = None

    class CreatableTopic(Message):
        __slots__ = ("name", "num_partitions", "replication_factor", "assignments", "configs",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('num_partitions', 'int32', 0, 32767, None, None, 0, False),
            ('replication_factor', 'int16', 0, 32767, None, None, 0, False),
            ('assignments', '[]CreatableReplicaAssignment', 0, 32767, None, None, (), False),
            ('configs', '[]CreatableTopicConfig', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            num_partitions: int = 0,
            replication_factor: int = 0,
            assignments: list[CreateTopicsRequest.CreatableReplicaAssignment] = UNSET,
            configs: list[CreateTopicsRequest.CreatableTopicConfig] = UNSET,
        ) -> None:
            self.name = name
            self.num_partitions = num_partitions
            self.replication_factor = replication_factor
            self.assignments = [] if assignments is UNSET else assignments
            self.configs = [] if configs is UNSET else configs
            self.unknown_tagged_fields = None

    class CreatableReplicaAssignment(Message):
        __slots__ = ("partition_index", "broker_ids",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('broker_ids', '[]int32', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            broker_ids: list[int] = UNSET,
        ) -> None:
            self.partition_index = partition_index
            self.broker_ids = [] if broker_ids is UNSET else broker_ids
            self.unknown_tagged_fields = None

    class CreatableTopicConfig(Message):
        __slots__ = ("name", "value",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('value', 'string', 0, 32767, (0, 32767), None, '', False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            value: str | None = '',
        ) -> None:
            self.name = name
            self.value = value
            self.unknown_tagged_fields = None


class CreateTopicsResponse(Message):
    """response, versions 2-7."""

    KIND = "response"
    TYPE = 19
    LOWEST_VERSION = 2
    HIGHEST_VERSION = 7
    FLEXIBLE_FROM = 5
    __slots__ = ("throttle_time_ms", "topics",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 2, 32767, None, None, 0, True),
        ('topics', '[]CreatableTopicResult', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[CreateTopicsResponse.CreatableTopicResult] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is UNSET else topics
        self.unknown_tagged_fields = None

    class CreatableTopicResult(Message):
        __slots__ = ("name", "topic_id", "error_code", "error_message", "topic_config_error_code", "num_partitions", "replication_factor", "configs",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('topic_id', 'uuid', 7, 32767, None, None, (), True),
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('error_message', 'string', 1, 32767, (0, 32767), None, '', True),
            ('topic_config_error_code', 'int16', 5, 32767, None, (0, 5, 32767), 0, True),
            ('num_partitions', 'int32', 5, 32767, None, None, -1, True),
            ('replication_factor', 'int16', 5, 32767, None, None, -1, True),
            ('configs', '[]CreatableTopicConfigs', 5, 32767, (5, 32767), None, (), True),
        )

        def __init__(
            self,
            *,
            name: str = '',
            topic_id: UUID = ZERO_UUID,
            error_code: int = 0,
            error_message: str | None = '',
            topic_config_error_code: int = 0,
            num_partitions: int = -1,
            replication_factor: int = -1,
            configs: list[CreateTopicsResponse.CreatableTopicConfigs] | None = UNSET,
        ) -> None:
            self.name = name
            self.topic_id = topic_id
            self.error_code = error_code
            self.error_message = error_message
            self.topic_config_error_code = topic_config_error_code
            self.num_partitions = num_partitions
            self.replication_factor = replication_factor
            self.configs = [] if configs is UNSET else configs
            self.unknown_tagged_fields = None

    class CreatableTopicConfigs(Message):
        __slots__ = ("name", "value", "read_only", "config_source", "is_sensitive",)
        FIELDS = (
            ('name', 'string', 5, 32767, None, None, '', False),
            ('value', 'string', 5, 32767, (5, 32767), None, '', False),
            ('read_only', 'bool', 5, 32767, None, None, False, False),
            ('config_source', 'int8', 5, 32767, None, None, -1, True),
            ('is_sensitive', 'bool', 5, 32767, None, None, False, False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            value: str | None = '',
            read_only: bool = False,
            config_source: int = -1,
            is_sensitive: bool = False,
        ) -> None:
            self.name = name
            self.value = value
            self.read_only = read_only
            self.config_source = config_source
            self.is_sensitive = is_sensitive
            self.unknown_tagged_fields = None
