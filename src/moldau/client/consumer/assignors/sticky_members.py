"""What the members of a sticky group had, who may keep it, and where they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from moldau.client.consumer.assignors.interface import (
    GroupSubscription,
    PartitionsPerTopic,
    Subscription,
    racks_matter,
    replica_racks,
)
from moldau.client.topics import TopicPartition

__all__ = ["DEFAULT_GENERATION", "MemberData", "Owned", "Racks", "owned_partitions", "same_topics"]

DEFAULT_GENERATION = -1


class MemberData(NamedTuple):
    """What a member had, and in which generation, if it said so."""

    partitions: tuple[TopicPartition, ...]
    generation: int | None


class Owned(NamedTuple):
    """What each member may keep, and what two members of one generation both claimed."""

    partitions: dict[str, list[TopicPartition]]
    claimed_twice: frozenset[TopicPartition]


def same_topics(members: Mapping[str, Subscription]) -> bool:
    first: frozenset[str] = frozenset()
    for subscription in members.values():
        if not first:
            first = frozenset(subscription.topics)
        elif len(subscription.topics) != len(first) or not first.issuperset(subscription.topics):
            return False
    return True


def owned_partitions(
    members: GroupSubscription, data: Mapping[str, MemberData], partitions: PartitionsPerTopic
) -> Owned:
    """Of two that claim a partition the one of the newer generation has it, of equals neither.

    What does not exist is left out, and so is a partition of a topic that was created again with
    fewer: Kafka's own would count it towards its owner's share and then fail.
    """
    counts = {topic: len(infos) for topic, infos in partitions.items()}
    owned: dict[str, list[TopicPartition]] = {}
    owners: dict[TopicPartition, str] = {}
    twice: set[TopicPartition] = set()
    for member_id, had in data.items():
        generation = DEFAULT_GENERATION if had.generation is None else had.generation
        mine = owned[member_id] = []
        for key in had.partitions:
            if not 0 <= key.partition < counts.get(key.topic, 0):
                continue
            other = owners.get(key)
            if other is None:
                mine.append(key)
                owners[key] = member_id
                continue
            # Kafka looks at the field here, not at what the user data said.
            said = members[other].generation_id
            other_generation = DEFAULT_GENERATION if said is None else said
            if generation < other_generation:
                continue
            if key in owned[other]:
                owned[other].remove(key)
            owners[key] = member_id
            if generation == other_generation:
                twice.add(key)
            else:
                mine.append(key)
    return Owned(owned, frozenset(twice))


class Racks:
    """Who is near which partition. Nobody is known to be anywhere if it makes no difference."""

    def __init__(self, partitions: PartitionsPerTopic, members: GroupSubscription) -> None:
        consumers: dict[str, str] = {
            member_id: each.rack_id for member_id, each in members.items() if each.rack_id
        }
        by_partition: dict[TopicPartition, frozenset[str]] = {}
        if consumers:
            by_partition = {
                TopicPartition(info.topic, info.partition): replica_racks(info)
                for infos in partitions.values()
                for info in infos
            }
        all_racks = frozenset().union(*by_partition.values())
        matter = racks_matter(consumers.values(), all_racks, by_partition)
        self.consumers = consumers if matter else {}
        self.partitions = by_partition if matter else {}
        counts: dict[str, int] = {}
        for rack in consumers.values():
            counts[rack] = counts.get(rack, 0) + 1
        self._near_counts = {
            key: sum(counts.get(rack, 0) for rack in racks) for key, racks in by_partition.items()
        }

    def mismatch(self, member_id: str, key: TopicPartition) -> bool:
        rack = self.consumers.get(member_id)
        return rack is not None and rack not in self.partitions.get(key, ())

    def fewest_consumers_first(self, keys: list[TopicPartition]) -> list[TopicPartition]:
        """Partitions that few members are near to are given away while those have room."""
        if not self._near_counts:
            return keys
        return sorted(keys, key=lambda key: self._near_counts.get(key, 0))

    def next_near(self, key: TopicPartition, members: list[str], start: int) -> int:
        """The index of the next member that is near a partition, or -1."""
        racks = self.partitions.get(key)
        if racks:
            for step in range(len(members)):
                index = (start + step) % len(members)
                if self.consumers.get(members[index]) in racks:
                    return index
        return -1
