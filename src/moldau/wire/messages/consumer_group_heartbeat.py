"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class ConsumerGroupHeartbeatRequest(Message):
    """request, versions 0-1."""

    KIND = "request"
    TYPE = 68
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 0
    __slots__ = ("group_id", "member_id", "member_epoch", "instance_id", "rack_id", "rebalance_timeout_ms", "subscribed_topic_names", "subscribed_topic_regex", "server_assignor", "topic_partitions",)
    FIELDS = (
        ('group_id', 'string', 0, 32767, None, None, '', False),
        ('member_id', 'string', 0, 32767, None, None, '', False),
        ('member_epoch', 'int32', 0, 32767, None, None, 0, False),
        ('instance_id', 'string', 0, 32767, (0, 32767), None, None, False),
        ('rack_id', 'string', 0, 32767, (0, 32767), None, None, False),
        ('rebalance_timeout_ms', 'int32', 0, 32767, None, None, -1, False),
        ('subscribed_topic_names', '[]string', 0, 32767, (0, 32767), None, None, False),
        ('subscribed_topic_regex', 'string', 1, 32767, (1, 32767), None, None, False),
        ('server_assignor', 'string', 0, 32767, (0, 32767), None, None, False),
        ('topic_partitions', '[]TopicPartitions', 0, 32767, (0, 32767), None, None, False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
        member_id: str = '',
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        subscribed_topic_names: list[str] | None = None,
        subscribed_topic_regex: str | None = None,
        server_assignor: str | None = None,
        topic_partitions: list[ConsumerGroupHeartbeatRequest.TopicPartitions] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.subscribed_topic_names = subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.server_assignor = server_assignor
        self.topic_partitions = topic_partitions
        self.unknown_tagged_fields = None

    class TopicPartitions(Message):
        __slots__ = ("topic_id", "partitions",)
        FIELDS = (
            ('topic_id', 'uuid', 0, 32767, None, None, (), False),
            ('partitions', '[]int32', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_id: UUID = ZERO_UUID,
            partitions: list[int] = UNSET,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None


class ConsumerGroupHeartbeatResponse(Message):
    """response, versions 0-1."""

    KIND = "response"
    TYPE = 68
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "member_id", "member_epoch", "heartbeat_interval_ms", "assignment",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('error_message', 'string', 0, 32767, (0, 32767), None, None, False),
        ('member_id', 'string', 0, 32767, (0, 32767), None, None, False),
        ('member_epoch', 'int32', 0, 32767, None, None, 0, False),
        ('heartbeat_interval_ms', 'int32', 0, 32767, None, None, 0, False),
        ('assignment', 'Assignment', 0, 32767, (0, 32767), None, None, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: ConsumerGroupHeartbeatResponse.Assignment | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.assignment = assignment
        self.unknown_tagged_fields = None

    class Assignment(Message):
        __slots__ = ("topic_partitions",)
        FIELDS = (
            ('topic_partitions', '[]TopicPartitions', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_partitions: list[ConsumerGroupHeartbeatResponse.TopicPartitions] = UNSET,
        ) -> None:
            self.topic_partitions = [] if topic_partitions is UNSET else topic_partitions
            self.unknown_tagged_fields = None

    class TopicPartitions(Message):
        __slots__ = ("topic_id", "partitions",)
        FIELDS = (
            ('topic_id', 'uuid', 0, 32767, None, None, (), False),
            ('partitions', '[]int32', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_id: UUID = ZERO_UUID,
            partitions: list[int] = UNSET,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None
