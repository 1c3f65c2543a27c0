"""What one says of partitions and replicas and learns about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from moldau.client.errors import KafkaError
from moldau.client.topics import TopicPartition

__all__ = [
    "ElectionType",
    "LogDirDescription",
    "NewPartitionReassignment",
    "PartitionReassignment",
    "ReplicaInfo",
    "ReplicaLogDirInfo",
    "TopicPartitionReplica",
]


class ElectionType(IntEnum):
    PREFERRED = 0
    UNCLEAN = 1


@dataclass(frozen=True, slots=True)
class NewPartitionReassignment:
    """The brokers that shall have replicas, the preferred leader first."""

    target_replicas: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "target_replicas", tuple(self.target_replicas))
        if not self.target_replicas:
            raise ValueError("a partition cannot be reassigned to no replicas")


class PartitionReassignment(NamedTuple):
    """A reassignment under way; `replicas` are old and new ones."""

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


class TopicPartitionReplica(NamedTuple):
    topic: str
    partition: int
    broker_id: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}-{self.broker_id}"


class ReplicaInfo(NamedTuple):
    """A replica's log in bytes, how far it is behind, and whether it is being moved there."""

    size: int
    offset_lag: int
    is_future: bool


class LogDirDescription(NamedTuple):
    """A log directory; `error` if it is offline."""

    error: KafkaError | None
    replica_infos: Mapping[TopicPartition, ReplicaInfo]
    total_bytes: int | None = None
    usable_bytes: int | None = None
    is_cordoned: bool = False


class ReplicaLogDirInfo(NamedTuple):
    """Where a replica is, and where it is being moved to; lags are -1 where there is none."""

    current_replica_log_dir: str | None = None
    current_replica_offset_lag: int = -1
    future_replica_log_dir: str | None = None
    future_replica_offset_lag: int = -1
