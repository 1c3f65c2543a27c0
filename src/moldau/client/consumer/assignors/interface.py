"""What an assignor is given and gives: the classic protocol's members and their partitions.

The leader of a group runs the assignor that all members have in common. `PartitionAssignor` is
what custom ones are made from; whoever has `name` and `assign` will do as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from moldau.client.consumer.assignors.hash_order import java_sorted_key, member_order
from moldau.client.machine.metadata import ClusterMetadata
from moldau.client.topics import PartitionInfo, TopicPartition

__all__ = [
    "Assignment",
    "GroupSubscription",
    "PartitionAssignor",
    "PartitionsPerTopic",
    "RebalanceProtocol",
    "Subscription",
    "TopicAssignor",
    "by_instance",
    "racks_matter",
    "replica_racks",
]

PartitionsPerTopic = Mapping[str, list[PartitionInfo]]


class RebalanceProtocol(IntEnum):
    """What members do with their partitions while they rejoin: give all up, or only the moved."""

    EAGER = 0
    COOPERATIVE = 1


class Subscription(NamedTuple):
    """What a member says when it joins."""

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: tuple[TopicPartition, ...] = ()
    #: The last generation that it was in, None for none.
    generation_id: int | None = None
    rack_id: str | None = None
    group_instance_id: str | None = None


class Assignment(NamedTuple):
    """What the leader gives a member."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes | None = None


GroupSubscription = Mapping[str, Subscription]


class PartitionAssignor:
    """A base for custom assignors; put the class or an object into
    `partition.assignment.strategy`."""

    #: Members of a group agree on an assignor by this name.
    name: str = ""
    #: The best one that all of a consumer's assignors have is used.
    supported_protocols: tuple[RebalanceProtocol, ...] = (RebalanceProtocol.EAGER,)
    #: Of what is in the user data, for the assignor itself.
    version: int = 0

    def configure(self, config: Mapping[str, Any]) -> None:
        """Given the consumer's settings once, before anything else."""

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        """What the leader is sent when this member joins."""
        return None

    def assign(
        self, metadata: ClusterMetadata, subscriptions: GroupSubscription
    ) -> Mapping[str, Assignment | Iterable[TopicPartition]]:
        """Partitions for every member, by member id."""
        raise TypeError(f"{type(self).__name__} has no method assign(metadata, subscriptions)")

    def on_assignment(self, assignment: Assignment, group_metadata: Any) -> None:
        """Told what the leader gave this member; `group_metadata.generation_id` says when."""


class TopicAssignor(PartitionAssignor):
    """An assignor that needs to know the topics' partitions and nothing else of the cluster."""

    def assign(
        self, metadata: ClusterMetadata, subscriptions: GroupSubscription
    ) -> dict[str, Assignment]:
        topics = member_order(
            topic
            for member_id in member_order(subscriptions)
            for topic in subscriptions[member_id].topics
        )
        partitions: dict[str, list[PartitionInfo]] = {}
        for topic in topics:
            view = metadata.topics.get(topic)
            if view is not None and view.partitions:
                keys = (TopicPartition(topic, index) for index in sorted(view.partitions))
                infos = (metadata.info(key) for key in keys)
                partitions[topic] = [info for info in infos if info is not None]
        raw = self.assign_partitions(partitions, subscriptions)
        return {member_id: Assignment(tuple(each)) for member_id, each in raw.items()}

    def assign_partitions(
        self, partitions: PartitionsPerTopic, subscriptions: GroupSubscription
    ) -> dict[str, list[TopicPartition]]:
        raise TypeError(f"{type(self).__name__} has no method assign_partitions")


def by_instance(member_id: str, subscription: Subscription) -> tuple[bool, bytes]:
    """Sorts members: static ones first, by instance, so that a restart changes nothing."""
    instance_id = subscription.group_instance_id
    return instance_id is None, java_sorted_key(member_id if instance_id is None else instance_id)


def replica_racks(info: PartitionInfo) -> frozenset[str]:
    return frozenset(node.rack for node in info.replicas if node.rack is not None)


def racks_matter(
    consumer_racks: Iterable[str],
    partition_racks: frozenset[str],
    racks_by_partition: Mapping[TopicPartition, frozenset[str]],
) -> bool:
    """Whether it makes a difference in which rack who consumes a partition (KIP-881)."""
    if partition_racks.isdisjoint(consumer_racks):
        return False
    return any(racks != partition_racks for racks in racks_by_partition.values())
