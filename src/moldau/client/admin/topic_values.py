"""What one says of topics and learns about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from moldau.client.topics import Node

if TYPE_CHECKING:
    from moldau.client.admin.acl_values import AclOperation
    from moldau.client.admin.config_values import ConfigEntry

__all__ = [
    "CreatedTopic",
    "NewPartitions",
    "NewTopic",
    "TopicDescription",
    "TopicListing",
    "TopicPartitionInfo",
]


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create: with counts, the broker's defaults where None, or with assignments."""

    name: str
    num_partitions: int | None = None
    replication_factor: int | None = None
    configs: Mapping[str, str | None] = field(default_factory=dict)
    #: Partition to the brokers of its replicas, the preferred leader first; instead of counts.
    replicas_assignments: Mapping[int, Sequence[int]] | None = None

    def __post_init__(self) -> None:
        if self.replicas_assignments is not None and (
            self.num_partitions is not None or self.replication_factor is not None
        ):
            raise ValueError(
                f"topic {self.name}: give either counts or replicas_assignments, not both"
            )


class CreatedTopic(NamedTuple):
    """How a topic was created; what a broker does not return is None."""

    name: str
    topic_id: UUID
    num_partitions: int | None
    replication_factor: int | None
    config: Mapping[str, ConfigEntry] | None


class TopicListing(NamedTuple):
    name: str
    topic_id: UUID
    is_internal: bool


class TopicPartitionInfo(NamedTuple):
    """A partition. The eligible leader replicas are None where the broker does not know them."""

    partition: int
    leader: Node | None
    replicas: tuple[Node, ...]
    isr: tuple[Node, ...]
    elr: tuple[Node, ...] | None = None
    last_known_elr: tuple[Node, ...] | None = None
    leader_epoch: int | None = None
    offline_replicas: tuple[Node, ...] = ()


class TopicDescription(NamedTuple):
    name: str
    topic_id: UUID
    is_internal: bool
    partitions: tuple[TopicPartitionInfo, ...]
    #: None unless asked for.
    authorized_operations: frozenset[AclOperation] | None = None


class NewPartitions(NamedTuple):
    """How many partitions a topic shall have, and where the replicas of the new ones go."""

    total_count: int
    new_assignments: Sequence[Sequence[int]] | None = None

    @classmethod
    def increase_to(
        cls, total_count: int, new_assignments: Sequence[Sequence[int]] | None = None
    ) -> NewPartitions:
        return cls(total_count, new_assignments)
