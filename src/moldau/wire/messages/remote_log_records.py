"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class RemoteLogSegmentMetadataRecord(Message):
    """remote-log, versions 0."""

    KIND = "remote-log"
    TYPE = 0
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("remote_log_segment_id", "start_offset", "end_offset", "broker_id", "max_timestamp_ms", "event_timestamp_ms", "segment_leader_epochs", "segment_size_in_bytes", "custom_metadata", "remote_log_segment_state", "txn_index_empty",)
    FIELDS = (
        ('remote_log_segment_id', 'RemoteLogSegmentIdEntry', 0, 32767, None, None, (), False),
        ('start_offset', 'int64', 0, 32767, None, None, 0, False),
        ('end_offset', 'int64', 0, 32767, None, None, 0, False),
        ('broker_id', 'int32', 0, 32767, None, None, 0, False),
        ('max_timestamp_ms', 'int64', 0, 32767, None, None, 0, False),
        ('event_timestamp_ms', 'int64', 0, 32767, None, None, 0, False),
        ('segment_leader_epochs', '[]SegmentLeaderEpochEntry', 0, 32767, None, None, (), False),
        ('segment_size_in_bytes', 'int32', 0, 32767, None, None, 0, False),
        ('custom_metadata', 'bytes', 0, 32767, (0, 32767), None, None, False),
        ('remote_log_segment_state', 'int8', 0, 32767, None, None, 0, False),
        ('txn_index_empty', 'bool', 0, 32767, None, (0, 0, 32767), False, False),
    )

    def __init__(
        self,
        *,
        remote_log_segment_id: RemoteLogSegmentMetadataRecord.RemoteLogSegmentIdEntry = UNSET,
        start_offset: int = 0,
        end_offset: int = 0,
        broker_id: int = 0,
        max_timestamp_ms: int = 0,
        event_timestamp_ms: int = 0,
        segment_leader_epochs: list[RemoteLogSegmentMetadataRecord.SegmentLeaderEpochEntry] = UNSET,
        segment_size_in_bytes: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
        txn_index_empty: bool = False,
    ) -> None:
        self.remote_log_segment_id = RemoteLogSegmentMetadataRecord.RemoteLogSegmentIdEntry() if remote_log_segment_id is UNSET else remote_log_segment_id
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.broker_id = broker_id
        self.max_timestamp_ms = max_timestamp_ms
        self.event_timestamp_ms = event_timestamp_ms
        self.segment_leader_epochs = [] if segment_leader_epochs is UNSET else segment_leader_epochs
        self.segment_size_in_bytes = segment_size_in_bytes
        self.custom_metadata = custom_metadata
        self.remote_log_segment_state = remote_log_segment_state
        self.txn_index_empty = txn_index_empty
        self.unknown_tagged_fields = None

    class RemoteLogSegmentIdEntry(Message):
        __slots__ = ("topic_id_partition", "id",)
        FIELDS = (
            ('topic_id_partition', 'TopicIdPartitionEntry', 0, 32767, None, None, (), False),
            ('id', 'uuid', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_id_partition: RemoteLogSegmentMetadataRecord.TopicIdPartitionEntry = UNSET,
            id: UUID = ZERO_UUID,
        ) -> None:
            self.topic_id_partition = RemoteLogSegmentMetadataRecord.TopicIdPartitionEntry() if topic_id_partition is UNSET else topic_id_partition
            self.id = id
            self.unknown_tagged_fields = None

    class TopicIdPartitionEntry(Message):
        __slots__ = ("name", "id", "partition",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('id', 'uuid', 0, 32767, None, None, (), False),
            ('partition', 'int32', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            id: UUID = ZERO_UUID,
            partition: int = 0,
        ) -> None:
            self.name = name
            self.id = id
            self.partition = partition
            self.unknown_tagged_fields = None

    class SegmentLeaderEpochEntry(Message):
        __slots__ = ("leader_epoch", "offset",)
        FIELDS = (
            ('leader_epoch', 'int32', 0, 32767, None, None, 0, False),
            ('offset', 'int64', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            leader_epoch: int = 0,
            offset: int = 0,
        ) -> None:
            self.leader_epoch = leader_epoch
            self.offset = offset
            self.unknown_tagged_fields = None


class RemoteLogSegmentMetadataUpdateRecord(Message):
    """remote-log, versions 0."""

    KIND = "remote-log"
    TYPE = 1
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("remote_log_segment_id", "broker_id", "event_timestamp_ms", "custom_metadata", "remote_log_segment_state",)
    FIELDS = (
        ('remote_log_segment_id', 'RemoteLogSegmentIdEntry', 0, 32767, None, None, (), False),
        ('broker_id', 'int32', 0, 32767, None, None, 0, False),
        ('event_timestamp_ms', 'int64', 0, 32767, None, None, 0, False),
        ('custom_metadata', 'bytes', 0, 32767, (0, 32767), None, None, False),
        ('remote_log_segment_state', 'int8', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        remote_log_segment_id: RemoteLogSegmentMetadataUpdateRecord.RemoteLogSegmentIdEntry = UNSET,
        broker_id: int = 0,
        event_timestamp_ms: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
    ) -> None:
        self.remote_log_segment_id = RemoteLogSegmentMetadataUpdateRecord.RemoteLogSegmentIdEntry() if remote_log_segment_id is UNSET else remote_log_segment_id
        self.broker_id = broker_id
        self.event_timestamp_ms = event_timestamp_ms
        self.custom_metadata = custom_metadata
        self.remote_log_segment_state = remote_log_segment_state
        self.unknown_tagged_fields = None

    class RemoteLogSegmentIdEntry(Message):
        __slots__ = ("topic_id_partition", "id",)
        FIELDS = (
            ('topic_id_partition', 'TopicIdPartitionEntry', 0, 32767, None, None, (), False),
            ('id', 'uuid', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_id_partition: RemoteLogSegmentMetadataUpdateRecord.TopicIdPartitionEntry = UNSET,
            id: UUID = ZERO_UUID,
        ) -> None:
            self.topic_id_partition = RemoteLogSegmentMetadataUpdateRecord.TopicIdPartitionEntry() if topic_id_partition is UNSET else topic_id_partition
            self.id = id
            self.unknown_tagged_fields = None

    class TopicIdPartitionEntry(Message):
        __slots__ = ("name", "id", "partition",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('id', 'uuid', 0, 32767, None, None, (), False),
            ('partition', 'int32', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            id: UUID = ZERO_UUID,
            partition: int = 0,
        ) -> None:
            self.name = name
            self.id = id
            self.partition = partition
            self.unknown_tagged_fields = None


class RemotePartitionDeleteMetadataRecord(Message):
    """remote-log, versions 0."""

    KIND = "remote-log"
    TYPE = 2
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("topic_id_partition", "broker_id", "event_timestamp_ms", "remote_partition_delete_state",)
    FIELDS = (
        ('topic_id_partition', 'TopicIdPartitionEntry', 0, 32767, None, None, (), False),
        ('broker_id', 'int32', 0, 32767, None, None, 0, False),
        ('event_timestamp_ms', 'int64', 0, 32767, None, None, 0, False),
        ('remote_partition_delete_state', 'int8', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        topic_id_partition: RemotePartitionDeleteMetadataRecord.TopicIdPartitionEntry = UNSET,
        broker_id: int = 0,
        event_timestamp_ms: int = 0,
        remote_partition_delete_state: int = 0,
    ) -> None:
        self.topic_id_partition = RemotePartitionDeleteMetadataRecord.TopicIdPartitionEntry() if topic_id_partition is UNSET else topic_id_partition
        self.broker_id = broker_id
        self.event_timestamp_ms = event_timestamp_ms
        self.remote_partition_delete_state = remote_partition_delete_state
        self.unknown_tagged_fields = None

    class TopicIdPartitionEntry(Message):
        __slots__ = ("name", "id", "partition",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('id', 'uuid', 0, 32767, None, None, (), False),
            ('partition', 'int32', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            id: UUID = ZERO_UUID,
            partition: int = 0,
        ) -> None:
            self.name = name
            self.id = id
            self.partition = partition
            self.unknown_tagged_fields = None


class RemoteLogSegmentMetadataSnapshotRecord(Message):
    """remote-log, versions 0."""

    KIND = "remote-log"
    TYPE = 3
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("segment_id", "start_offset", "end_offset", "broker_id", "max_timestamp_ms", "event_timestamp_ms", "segment_leader_epochs", "segment_size_in_bytes", "custom_metadata", "remote_log_segment_state", "txn_index_empty",)
    FIELDS = (
        ('segment_id', 'uuid', 0, 32767, None, None, (), False),
        ('start_offset', 'int64', 0, 32767, None, None, 0, False),
        ('end_offset', 'int64', 0, 32767, None, None, 0, False),
        ('broker_id', 'int32', 0, 32767, None, None, 0, False),
        ('max_timestamp_ms', 'int64', 0, 32767, None, None, 0, False),
        ('event_timestamp_ms', 'int64', 0, 32767, None, None, 0, False),
        ('segment_leader_epochs', '[]SegmentLeaderEpochEntry', 0, 32767, None, None, (), False),
        ('segment_size_in_bytes', 'int32', 0, 32767, None, None, 0, False),
        ('custom_metadata', 'bytes', 0, 32767, (0, 32767), None, None, False),
        ('remote_log_segment_state', 'int8', 0, 32767, None, None, 0, False),
        ('txn_index_empty', 'bool', 0, 32767, None, (0, 0, 32767), False, False),
    )

    def __init__(
        self,
        *,
        segment_id: UUID = ZERO_UUID,
        start_offset: int = 0,
        end_offset: int = 0,
        broker_id: int = 0,
        max_timestamp_ms: int = 0,
        event_timestamp_ms: int = 0,
        segment_leader_epochs: list[RemoteLogSegmentMetadataSnapshotRecord.SegmentLeaderEpochEntry] = UNSET,
        segment_size_in_bytes: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
        txn_index_empty: bool = False,
    ) -> None:
        self.segment_id = segment_id
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.broker_id = broker_id
        self.max_timestamp_ms = max_timestamp_ms
        self.event_timestamp_ms = event_timestamp_ms
        self.segment_leader_epochs = [] if segment_leader_epochs is UNSET else segment_leader_epochs
        self.segment_size_in_bytes = segment_size_in_bytes
        self.custom_metadata = custom_metadata
        self.remote_log_segment_state = remote_log_segment_state
        self.txn_index_empty = txn_index_empty
        self.unknown_tagged_fields = None

    class SegmentLeaderEpochEntry(Message):
        __slots__ = ("leader_epoch", "offset",)
        FIELDS = (
            ('leader_epoch', 'int32', 0, 32767, None, None, 0, False),
            ('offset', 'int64', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            leader_epoch: int = 0,
            offset: int = 0,
        ) -> None:
            self.leader_epoch = leader_epoch
            self.offset = offset
            self.unknown_tagged_fields = None
