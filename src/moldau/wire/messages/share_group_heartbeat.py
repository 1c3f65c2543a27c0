"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class ShareGroupHeartbeatRequest(Message):
    """request, versions 1."""

    KIND = "request"
    TYPE = 76
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 0
    __slots__ = ("group_id", "member_id", "member_epoch", "rack_id", "subscribed_topic_names",)
    FIELDS = (
        ('group_id', 'string', 0, 32767, None, None, '', False),
        ('member_id', 'string', 0, 32767, None, None, '', False),
        ('member_epoch', 'int32', 0, 32767, None, None, 0, False),
        ('rack_id', 'string', 0, 32767, (0, 32767), None, None, False),
        ('subscribed_topic_names', '[]string', 0, 32767, (0, 32767), None, None, False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
        member_id: str = '',
        member_epoch: int = 0,
        rack_id: str | None = None,
        subscribed_topic_names: list[str] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.rack_id = rack_id
        self.subscribed_topic_names = subscribed_topic_names
        self.unknown_tagged_fields = None


class ShareGroupHeartbeatResponse(Message):
    """response, versions 1."""

    KIND = "response"
    TYPE = 76
    LOWEST_VERSION = 1
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
        assignment: ShareGroupHeartbeatResponse.Assignment | None = None,
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
            topic_partitions: list[ShareGroupHeartbeatResponse.TopicPartitions] = UNSET,
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
