"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class ShareGroupDescribeRequest(Message):
    """request, versions 1."""

    KIND = "request"
    TYPE = 77
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 0
    __slots__ = ("group_ids", "include_authorized_operations",)
    FIELDS = (
        ('group_ids', '[]string', 0, 32767, None, None, (), False),
        ('include_authorized_operations', 'bool', 0, 32767, None, None, False, False),
    )

    def __init__(
        self,
        *,
        group_ids: list[str] = UNSET,
        include_authorized_operations: bool = False,
    ) -> None:
        self.group_ids = [] if group_ids is UNSET else group_ids
        self.include_authorized_operations = include_authorized_operations
        self.unknown_tagged_fields = None


class ShareGroupDescribeResponse(Message):
    """response, versions 1."""

    KIND = "response"
    TYPE = 77
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "groups",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('groups', '[]DescribedGroup', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[ShareGroupDescribeResponse.DescribedGroup] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is UNSET else groups
        self.unknown_tagged_fields = None

    class DescribedGroup(Message):
        __slots__ = ("error_code", "error_message", "group_id", "group_state", "group_epoch", "assignment_epoch", "assignor_name", "members", "authorized_operations",)
        FIELDS = (
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('error_message', 'string', 0, 32767, (0, 32767), None, None, False),
            ('group_id', 'string', 0, 32767, None, None, '', False),
            ('group_state', 'string', 0, 32767, None, None, '', False),
            ('group_epoch', 'int32', 0, 32767, None, None, 0, False),
            ('assignment_epoch', 'int32', 0, 32767, None, None, 0, False),
            ('assignor_name', 'string', 0, 32767, None, None, '', False),
            ('members', '[]Member', 0, 32767, None, None, (), False),
            ('authorized_operations', 'int32', 0, 32767, None, None, -2147483648, False),
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = None,
            group_id: str = '',
            group_state: str = '',
            group_epoch: int = 0,
            assignment_epoch: int = 0,
            assignor_name: str = '',
            members: list[ShareGroupDescribeResponse.Member] = UNSET,
            authorized_operations: int = -2147483648,
        ) -> None:
            self.error_code = error_code
            self.error_message = error_message
            self.group_id = group_id
            self.group_state = group_state
            self.group_epoch = group_epoch
            self.assignment_epoch = assignment_epoch
            self.assignor_name = assignor_name
            self.members = [] if members is UNSET else members
            self.authorized_operations = authorized_operations
            self.unknown_tagged_fields = None

    class Member(Message):
        __slots__ = ("member_id", "rack_id", "member_epoch", "client_id", "client_host", "subscribed_topic_names", "assignment",)
        FIELDS = (
            ('member_id', 'string', 0, 32767, None, None, '', False),
            ('rack_id', 'string', 0, 32767, (0, 32767), None, None, False),
            ('member_epoch', 'int32', 0, 32767, None, None, 0, False),
            ('client_id', 'string', 0, 32767, None, None, '', False),
            ('client_host', 'string', 0, 32767, None, None, '', False),
            ('subscribed_topic_names', '[]string', 0, 32767, None, None, (), False),
            ('assignment', 'Assignment', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            member_id: str = '',
            rack_id: str | None = None,
            member_epoch: int = 0,
            client_id: str = '',
            client_host: str = '',
            subscribed_topic_names: list[str] = UNSET,
            assignment: ShareGroupDescribeResponse.Assignment = UNSET,
        ) -> None:
            self.member_id = member_id
            self.rack_id = rack_id
            self.member_epoch = member_epoch
            self.client_id = client_id
            self.client_host = client_host
            self.subscribed_topic_names = [] if subscribed_topic_names is UNSET else subscribed_topic_names
            self.assignment = ShareGroupDescribeResponse.Assignment() if assignment is UNSET else assignment
            self.unknown_tagged_fields = None

    class TopicPartitions(Message):
        __slots__ = ("topic_id", "topic_name", "partitions",)
        FIELDS = (
            ('topic_id', 'uuid', 0, 32767, None, None, (), False),
            ('topic_name', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]int32', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_id: UUID = ZERO_UUID,
            topic_name: str = '',
            partitions: list[int] = UNSET,
        ) -> None:
            self.topic_id = topic_id
            self.topic_name = topic_name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class Assignment(Message):
        __slots__ = ("topic_partitions",)
        FIELDS = (
            ('topic_partitions', '[]TopicPartitions', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_partitions: list[ShareGroupDescribeResponse.TopicPartitions] = UNSET,
        ) -> None:
            self.topic_partitions = [] if topic_partitions is UNSET else topic_partitions
            self.unknown_tagged_fields = None
