"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class ConsumerProtocolAssignment(Message):
    """data, versions 0-3."""

    KIND = "data"
    TYPE = None
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 3
    FLEXIBLE_FROM = 32767
    __slots__ = ("assigned_partitions", "user_data",)
    FIELDS = (
        ('assigned_partitions', '[]TopicPartition', 0, 32767, None, None, (), False),
        ('user_data', 'bytes', 0, 32767, (0, 32767), None, None, False),
    )

    def __init__(
        self,
        *,
        assigned_partitions: list[ConsumerProtocolAssignment.TopicPartition] = UNSET,
        user_data: bytes | None = None,
    ) -> None:
        self.assigned_partitions = [] if assigned_partitions is UNSET else assigned_partitions
        self.user_data = user_data
        self.unknown_tagged_fields = None

    class TopicPartition(Message):
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


class ConsumerProtocolSubscription(Message):
    """data, versions 0-3."""

    KIND = "data"
    TYPE = None
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 3
    FLEXIBLE_FROM = 32767
    __slots__ = ("topics", "user_data", "owned_partitions", "generation_id", "rack_id",)
    FIELDS = (
        ('topics', '[]string', 0, 32767, None, None, (), False),
        ('user_data', 'bytes', 0, 32767, (0, 32767), None, None, False),
        ('owned_partitions', '[]TopicPartition', 1, 32767, None, None, (), True),
        ('generation_id', 'int32', 2, 32767, None, None, -1, True),
        ('rack_id', 'string', 3, 32767, (3, 32767), None, None, True),
    )

    def __init__(
        self,
        *,
        topics: list[str] = UNSET,
        user_data: bytes | None = None,
        owned_partitions: list[ConsumerProtocolSubscription.TopicPartition] = UNSET,
        generation_id: int = -1,
        rack_id: str | None = None,
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.user_data = user_data
        self.owned_partitions = [] if owned_partitions is UNSET else owned_partitions
        self.generation_id = generation_id
        self.rack_id = rack_id
        self.unknown_tagged_fields = None

    class TopicPartition(Message):
        __slots__ = ("topic", "partitions",)
        FIELDS = (
            ('topic', 'string', 1, 32767, None, None, '', False),
            ('partitions', '[]int32', 1, 32767, None, None, (), False),
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
