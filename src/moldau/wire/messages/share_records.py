"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class ShareSnapshotKey(Message):
    """share-key, versions 0."""

    KIND = "share-key"
    TYPE = 0
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("group_id", "topic_id", "partition",)
    FIELDS = (
        ('group_id', 'string', 0, 0, None, None, '', False),
        ('topic_id', 'uuid', 0, 0, None, None, (), False),
        ('partition', 'int32', 0, 0, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
        topic_id: UUID = ZERO_UUID,
        partition: int = 0,
    ) -> None:
        self.group_id = group_id
        self.topic_id = topic_id
        self.partition = partition
        self.unknown_tagged_fields = None


class ShareSnapshotValue(Message):
    """share-value, versions 0."""

    KIND = "share-value"
    TYPE = 0
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("snapshot_epoch", "state_epoch", "leader_epoch", "start_offset", "delivery_complete_count", "create_timestamp", "write_timestamp", "state_batches",)
    FIELDS = (
        ('snapshot_epoch', 'int32', 0, 32767, None, None, 0, False),
        ('state_epoch', 'int32', 0, 32767, None, None, 0, False),
        ('leader_epoch', 'int32', 0, 32767, None, None, 0, False),
        ('start_offset', 'int64', 0, 32767, None, None, 0, False),
        ('delivery_complete_count', 'int32', 0, 32767, None, (0, 0, 32767), -1, False),
        ('create_timestamp', 'int64', 0, 32767, None, None, 0, False),
        ('write_timestamp', 'int64', 0, 32767, None, None, 0, False),
        ('state_batches', '[]StateBatch', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        snapshot_epoch: int = 0,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
        create_timestamp: int = 0,
        write_timestamp: int = 0,
        state_batches: list[ShareSnapshotValue.StateBatch] = UNSET,
    ) -> None:
        self.snapshot_epoch = snapshot_epoch
        self.state_epoch = state_epoch
        self.leader_epoch = leader_epoch
        self.start_offset = start_offset
        self.delivery_complete_count = delivery_complete_count
        self.create_timestamp = create_timestamp
        self.write_timestamp = write_timestamp
        self.state_batches = [] if state_batches is UNSET else state_batches
        self.unknown_tagged_fields = None

    class StateBatch(Message):
        __slots__ = ("first_offset", "last_offset", "delivery_state", "delivery_count",)
        FIELDS = (
            ('first_offset', 'int64', 0, 32767, None, None, 0, False),
            ('last_offset', 'int64', 0, 32767, None, None, 0, False),
            ('delivery_state', 'int8', 0, 32767, None, None, 0, False),
            ('delivery_count', 'int16', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            first_offset: int = 0,
            last_offset: int = 0,
            delivery_state: int = 0,
            delivery_count: int = 0,
        ) -> None:
            self.first_offset = first_offset
            self.last_offset = last_offset
            self.delivery_state = delivery_state
            self.delivery_count = delivery_count
            self.unknown_tagged_fields = None


class ShareUpdateKey(Message):
    """share-key, versions 0."""

    KIND = "share-key"
    TYPE = 1
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("group_id", "topic_id", "partition",)
    FIELDS = (
        ('group_id', 'string', 0, 0, None, None, '', False),
        ('topic_id', 'uuid', 0, 0, None, None, (), False),
        ('partition', 'int32', 0, 0, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        group_id: str = '',
        topic_id: UUID = ZERO_UUID,
        partition: int = 0,
    ) -> None:
        self.group_id = group_id
        self.topic_id = topic_id
        self.partition = partition
        self.unknown_tagged_fields = None


class ShareUpdateValue(Message):
    """share-value, versions 0."""

    KIND = "share-value"
    TYPE = 1
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("snapshot_epoch", "leader_epoch", "start_offset", "delivery_complete_count", "state_batches",)
    FIELDS = (
        ('snapshot_epoch', 'int32', 0, 32767, None, None, 0, False),
        ('leader_epoch', 'int32', 0, 32767, None, None, 0, False),
        ('start_offset', 'int64', 0, 32767, None, None, 0, False),
        ('delivery_complete_count', 'int32', 0, 32767, None, (0, 0, 32767), -1, False),
        ('state_batches', '[]StateBatch', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        snapshot_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
        state_batches: list[ShareUpdateValue.StateBatch] = UNSET,
    ) -> None:
        self.snapshot_epoch = snapshot_epoch
        self.leader_epoch = leader_epoch
        self.start_offset = start_offset
        self.delivery_complete_count = delivery_complete_count
        self.state_batches = [] if state_batches is UNSET else state_batches
        self.unknown_tagged_fields = None

    class StateBatch(Message):
        __slots__ = ("first_offset", "last_offset", "delivery_state", "delivery_count",)
        FIELDS = (
            ('first_offset', 'int64', 0, 32767, None, None, 0, False),
            ('last_offset', 'int64', 0, 32767, None, None, 0, False),
            ('delivery_state', 'int8', 0, 32767, None, None, 0, False),
            ('delivery_count', 'int16', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            first_offset: int = 0,
            last_offset: int = 0,
            delivery_state: int = 0,
            delivery_count: int = 0,
        ) -> None:
            self.first_offset = first_offset
            self.last_offset = last_offset
            self.delivery_state = delivery_state
            self.delivery_count = delivery_count
            self.unknown_tagged_fields = None
