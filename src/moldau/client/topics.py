"""The small values that all clients speak of: partitions, nodes, offsets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = [
    "Node",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetLike",
    "OffsetsLike",
    "PartitionInfo",
    "PartitionLike",
    "TimesLike",
    "TopicPartition",
]


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Node(NamedTuple):
    """A broker or controller; `id` is -1 where there is none."""

    id: int
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False

    def __str__(self) -> str:
        return f"{self.host}:{self.port} (id: {self.id} rack: {self.rack or 'null'})"


class PartitionInfo(NamedTuple):
    """What the cluster knows of a partition. `leader` is None while there is none."""

    topic: str
    partition: int
    leader: Node | None
    leader_epoch: int
    replicas: tuple[Node, ...]
    in_sync_replicas: tuple[Node, ...]
    offline_replicas: tuple[Node, ...]


class OffsetAndMetadata(NamedTuple):
    offset: int
    metadata: str = ""
    leader_epoch: int | None = None


class OffsetAndTimestamp(NamedTuple):
    offset: int
    timestamp: int
    leader_epoch: int | None = None


#: What calls take in place of the values above.
PartitionLike = TopicPartition | tuple[str, int]
OffsetLike = OffsetAndMetadata | int
# The keys of a Mapping are not covariant: both kinds have to be named.
OffsetsLike = Mapping[TopicPartition, OffsetLike] | Mapping[tuple[str, int], OffsetLike]
TimesLike = Mapping[TopicPartition, int] | Mapping[tuple[str, int], int]
