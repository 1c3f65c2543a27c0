"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class FetchSnapshotRequest(Message):
    """request, versions 0-1."""

    KIND = "request"
    TYPE = 59
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 0
    __slots__ = ("cluster_id", "replica_id", "max_bytes", "topics",)
    FIELDS = (
        ('cluster_id', 'string', 0, 32767, (0, 32767), (0, 0, 32767), None, False),
        ('replica_id', 'int32', 0, 32767, None, None, -1, False),
        ('max_bytes', 'int32', 0, 32767, None, None, 2147483647, False),
        ('topics', '[]TopicSnapshot', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        replica_id: int = -1,
        max_bytes: int = 2147483647,
        topics: list[FetchSnapshotRequest.TopicSnapshot] = UNSET,
    ) -> None:
        self.cluster_id = cluster_id
        self.replica_id = replica_id
        self.max_bytes = max_bytes
        self.topics = [] if topics is UNSET else topics
        self.unknown_tagged_fields = None

    class TopicSnapshot(Message):
        __slots__ = ("name", "partitions",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]PartitionSnapshot', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            partitions: list[FetchSnapshotRequest.PartitionSnapshot] = UNSET,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class PartitionSnapshot(Message):
        __slots__ = ("partition", "current_leader_epoch", "snapshot_id", "position", "replica_directory_id",)
        FIELDS = (
            ('partition', 'int32', 0, 32767, None, None, 0, False),
            ('current_leader_epoch', 'int32', 0, 32767, None, None, 0, False),
            ('snapshot_id', 'SnapshotId', 0, 32767, None, None, (), False),
            ('position', 'int64', 0, 32767, None, None, 0, False),
            ('replica_directory_id', 'uuid', 1, 32767, None, (0, 1, 32767), (), True),
        )

        def __init__(
            self,
            *,
            partition: int = 0,
            current_leader_epoch: int = 0,
            snapshot_id: FetchSnapshotRequest.SnapshotId = UNSET,
            position: int = 0,
            replica_directory_id: UUID = ZERO_UUID,
        ) -> None:
            self.partition = partition
            self.current_leader_epoch = current_leader_epoch
            self.snapshot_id = FetchSnapshotRequest.SnapshotId() if snapshot_id is UNSET else snapshot_id
            self.position = position
            self.replica_directory_id = replica_directory_id
            self.unknown_tagged_fields = None

    class SnapshotId(Message):
        __slots__ = ("end_offset", "epoch",)
        FIELDS = (
            ('end_offset', 'int64', 0, 32767, None, None, 0, False),
            ('epoch', 'int32', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            end_offset: int = 0,
            epoch: int = 0,
        ) -> None:
            self.end_offset = end_offset
            self.epoch = epoch
            self.unknown_tagged_fields = None


class FetchSnapshotResponse(Message):
    """response, versions 0-1."""

    KIND = "response"
    TYPE = 59
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "topics", "node_endpoints",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, True),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('topics', '[]TopicSnapshot', 0, 32767, None, None, (), False),
        ('node_endpoints', '[]NodeEndpoint', 1, 32767, None, (0, 1, 32767), (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: list[FetchSnapshotResponse.TopicSnapshot] = UNSET,
        node_endpoints: list[FetchSnapshotResponse.NodeEndpoint] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.topics = [] if topics is UNSET else topics
        self.node_endpoints = [] if node_endpoints is UNSET else node_endpoints
        self.unknown_tagged_fields = None

    class TopicSnapshot(Message):
        __slots__ = ("name", "partitions",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]PartitionSnapshot', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            partitions: list[FetchSnapshotResponse.PartitionSnapshot] = UNSET,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class PartitionSnapshot(Message):
        __slots__ = ("index", "error_code", "snapshot_id", "current_leader", "size", "position", "unaligned_records",)
        FIELDS = (
            ('index', 'int32', 0, 32767, None, None, 0, False),
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('snapshot_id', 'SnapshotId', 0, 32767, None, None, (), False),
            ('current_leader', 'LeaderIdAndEpoch', 0, 32767, None, (0, 0, 32767), (), False),
            ('size', 'int64', 0, 32767, None, None, 0, False),
            ('position', 'int64', 0, 32767, None, None, 0, False),
            ('unaligned_records', 'records', 0, 32767, None, None, b'', False),
        )

        def __init__(
            self,
            *,
            index: int = 0,
            error_code: int = 0,
            snapshot_id: FetchSnapshotResponse.SnapshotId = UNSET,
            current_leader: FetchSnapshotResponse.LeaderIdAndEpoch = UNSET,
            size: int = 0,
            position: int = 0,
            unaligned_records: bytes = b'',
        ) -> None:
            self.index = index
            self.error_code = error_code
            self.snapshot_id = FetchSnapshotResponse.SnapshotId() if snapshot_id is UNSET else snapshot_id
            self.current_leader = FetchSnapshotResponse.LeaderIdAndEpoch() if current_leader is UNSET else current_leader
            self.size = size
            self.position = position
            self.unaligned_records = unaligned_records
            self.unknown_tagged_fields = None

    class SnapshotId(Message):
        __slots__ = ("end_offset", "epoch",)
        FIELDS = (
            ('end_offset', 'int64', 0, 32767, None, None, 0, False),
            ('epoch', 'int32', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            end_offset: int = 0,
            epoch: int = 0,
        ) -> None:
            self.end_offset = end_offset
            self.epoch = epoch
            self.unknown_tagged_fields = None

    class LeaderIdAndEpoch(Message):
        __slots__ = ("leader_id", "leader_epoch",)
        FIELDS = (
            ('leader_id', 'int32', 0, 32767, None, None, 0, False),
            ('leader_epoch', 'int32', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            leader_id: int = 0,
            leader_epoch: int = 0,
        ) -> None:
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.unknown_tagged_fields = None

    class NodeEndpoint(Message):
        __slots__ = ("node_id", "host", "port",)
        FIELDS = (
            ('node_id', 'int32', 1, 32767, None, None, 0, False),
            ('host', 'string', 1, 32767, None, None, '', False),
            ('port', 'uint16', 1, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = '',
            port: int = 0,
        ) -> None:
            self.node_id = node_id
            self.host = host
            self.port = port
            self.unknown_tagged_fields = None
