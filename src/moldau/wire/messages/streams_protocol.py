"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class SubscriptionInfoData(Message):
    """data, versions 1-11."""

    KIND = "data"
    TYPE = None
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 11
    FLEXIBLE_FROM = 32767
    __slots__ = ("version", "latest_supported_version", "process_id", "prev_tasks", "standby_tasks", "user_end_point", "task_offset_sums", "unique_field", "error_code", "client_tags",)
    FIELDS = (
        ('version', 'int32', 1, 32767, None, None, 0, False),
        ('latest_supported_version', 'int32', 3, 32767, None, None, -1, False),
        ('process_id', 'uuid', 1, 32767, None, None, (), False),
        ('prev_tasks', '[]TaskId', 1, 6, None, None, (), False),
        ('standby_tasks', '[]TaskId', 1, 6, None, None, (), False),
        ('user_end_point', 'bytes', 2, 32767, None, None, b'', False),
        ('task_offset_sums', '[]TaskOffsetSum', 7, 32767, None, None, (), False),
        ('unique_field', 'int8', 8, 32767, None, None, 0, False),
        ('error_code', 'int32', 9, 32767, None, None, 0, False),
        ('client_tags', '[]ClientTag', 11, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        version: int = 0,
        latest_supported_version: int = -1,
        process_id: UUID = ZERO_UUID,
        prev_tasks: list[SubscriptionInfoData.TaskId] = UNSET,
        standby_tasks: list[SubscriptionInfoData.TaskId] = UNSET,
        user_end_point: bytes = b'',
        task_offset_sums: list[SubscriptionInfoData.TaskOffsetSum] = UNSET,
        unique_field: int = 0,
        error_code: int = 0,
        client_tags: list[SubscriptionInfoData.ClientTag] = UNSET,
    ) -> None:
        self.version = version
        self.latest_supported_version = latest_supported_version
        self.process_id = process_id
        self.prev_tasks = [] if prev_tasks is UNSET else prev_tasks
        self.standby_tasks = [] if standby_tasks is UNSET else standby_tasks
        self.user_end_point = user_end_point
        self.task_offset_sums = [] if task_offset_sums is UNSET else task_offset_sums
        self.unique_field = unique_field
        self.error_code = error_code
        self.client_tags = [] if client_tags is UNSET else client_tags
        self.unknown_tagged_fields = None

    class TaskId(Message):
        __slots__ = ("topic_group_id", "partition",)
        FIELDS = (
            ('topic_group_id', 'int32', 1, 6, None, None, 0, False),
            ('partition', 'int32', 1, 6, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            topic_group_id: int = 0,
            partition: int = 0,
        ) -> None:
            self.topic_group_id = topic_group_id
            self.partition = partition
            self.unknown_tagged_fields = None

    class TaskOffsetSum(Message):
        __slots__ = ("topic_group_id", "partition", "offset_sum", "named_topology", "partition_to_offset_sum",)
        FIELDS = (
            ('topic_group_id', 'int32', 7, 32767, None, None, 0, False),
            ('partition', 'int32', 10, 32767, None, None, 0, False),
            ('offset_sum', 'int64', 10, 32767, None, None, 0, False),
            ('named_topology', 'string', 10, 32767, (10, 32767), None, '', True),
            ('partition_to_offset_sum', '[]PartitionToOffsetSum', 7, 9, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_group_id: int = 0,
            partition: int = 0,
            offset_sum: int = 0,
            named_topology: str | None = '',
            partition_to_offset_sum: list[SubscriptionInfoData.PartitionToOffsetSum] = UNSET,
        ) -> None:
            self.topic_group_id = topic_group_id
            self.partition = partition
            self.offset_sum = offset_sum
            self.named_topology = named_topology
            self.partition_to_offset_sum = [] if partition_to_offset_sum is UNSET else partition_to_offset_sum
            self.unknown_tagged_fields = None

    class PartitionToOffsetSum(Message):
        __slots__ = ("partition", "offset_sum",)
        FIELDS = (
            ('partition', 'int32', 7, 9, None, None, 0, False),
            ('offset_sum', 'int64', 7, 9, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            partition: int = 0,
            offset_sum: int = 0,
        ) -> None:
            self.partition = partition
            self.offset_sum = offset_sum
            self.unknown_tagged_fields = None

    class ClientTag(Message):
        __slots__ = ("key", "value",)
        FIELDS = (
            ('key', 'bytes', 11, 32767, None, None, b'', False),
            ('value', 'bytes', 11, 32767, None, None, b'', False),
        )

        def __init__(
            self,
            *,
            key: bytes = b'',
            value: bytes = b'',
        ) -> None:
            self.key = key
            self.value = value
            self.unknown_tagged_fields = None
