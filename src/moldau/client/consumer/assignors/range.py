"""Neighbouring partitions of each topic to each member: the same numbers of topics that are
partitioned alike go to the same member, which joins rely on. Members get partitions with a replica
in their rack where that does not make it less even (KIP-881).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from moldau.client.consumer.assignors.hash_order import member_order
from moldau.client.consumer.assignors.interface import (
    GroupSubscription,
    PartitionsPerTopic,
    TopicAssignor,
    by_instance,
    racks_matter,
    replica_racks,
)
from moldau.client.topics import PartitionInfo, TopicPartition

__all__ = ["RangeAssignor"]

MayAssign = Callable[[str, TopicPartition], bool]


class RangeAssignor(TopicAssignor):
    name = "range"

    def assign_partitions(
        self, partitions: PartitionsPerTopic, subscriptions: GroupSubscription
    ) -> dict[str, list[TopicPartition]]:
        assigned: dict[str, list[TopicPartition]] = {
            member_id: [] for member_id in member_order(subscriptions)
        }
        topics = [
            _Topic(topic, infos, subscriptions) for topic, infos in partitions.items() if infos
        ]
        racks_count = any(topic.by_rack for topic in topics)
        if racks_count:
            _assign_within_racks(topics, assigned)
        for topic in topics:
            _assign_ranges(topic, lambda member_id, key: True, assigned)
        if racks_count:
            for each in assigned.values():
                each.sort()
        return assigned


class _Topic:
    """How far a topic's partitions are given away."""

    def __init__(
        self, name: str, infos: list[PartitionInfo], subscriptions: GroupSubscription
    ) -> None:
        self.name = name
        members = [
            member_id
            for member_id in member_order(subscriptions)
            if name in subscriptions[member_id].topics
        ]
        members.sort(key=lambda member_id: by_instance(member_id, subscriptions[member_id]))
        self.racks = {member_id: subscriptions[member_id].rack_id or None for member_id in members}
        self.unassigned = dict.fromkeys(TopicPartition(name, info.partition) for info in infos)
        self._counts = dict.fromkeys(members, 0)
        self._quota, self._extra_left = divmod(len(infos), len(members)) if members else (0, 0)
        member_racks = {rack for rack in self.racks.values() if rack is not None}
        self.partition_racks: dict[TopicPartition, frozenset[str]] = (
            {TopicPartition(name, info.partition): replica_racks(info) for info in infos}
            if member_racks
            else {}
        )
        all_racks = frozenset().union(*self.partition_racks.values())
        self.by_rack = racks_matter(member_racks, all_racks, self.partition_racks)

    def racks_match(self, member_id: str, key: TopicPartition) -> bool:
        rack = self.racks[member_id]
        return rack is None or rack in self.partition_racks.get(key, ())

    def room(self, member_id: str) -> int:
        extra = 1 if self._extra_left > 0 else 0
        return max(0, self._quota + extra - self._counts[member_id])

    def take(self, member_id: str, keys: list[TopicPartition]) -> None:
        self._counts[member_id] += len(keys)
        if self._counts[member_id] > self._quota:
            self._extra_left -= 1
        for key in keys:
            self.unassigned.pop(key, None)


def _assign_ranges(
    topic: _Topic, may_assign: MayAssign, assigned: dict[str, list[TopicPartition]]
) -> None:
    for member_id in topic.racks:
        free = (key for key in topic.unassigned if may_assign(member_id, key))
        keys = list(islice(free, topic.room(member_id)))
        if keys:
            assigned[member_id].extend(keys)
            topic.take(member_id, keys)


def _assign_within_racks(topics: list[_Topic], assigned: dict[str, list[TopicPartition]]) -> None:
    alike: dict[tuple[tuple[tuple[str, str | None], ...], int], list[_Topic]] = {}
    for topic in topics:
        group = (tuple(topic.racks.items()), len(topic.partition_racks))
        alike.setdefault(group, []).append(topic)
    for (_, partition_count), group_topics in alike.items():
        if len(group_topics) > 1:
            _assign_alike(group_topics, partition_count, assigned)
        elif group_topics[0].by_rack:
            _assign_ranges(group_topics[0], group_topics[0].racks_match, assigned)


def _assign_alike(
    topics: list[_Topic], partition_count: int, assigned: dict[str, list[TopicPartition]]
) -> None:
    """Topics with the same members and as many partitions: a number goes to one member."""
    remaining = list(topics[0].racks)
    for index in range(partition_count):
        member_id = next(
            (
                each
                for each in remaining
                if all(
                    topic.racks_match(each, TopicPartition(topic.name, index)) and topic.room(each)
                    for topic in topics
                )
            ),
            None,
        )
        if member_id is None:
            continue
        for topic in topics:
            key = TopicPartition(topic.name, index)
            assigned[member_id].append(key)
            topic.take(member_id, [key])
        if not any(topic.room(member_id) for topic in topics):
            remaining.remove(member_id)
            if not remaining:
                return
