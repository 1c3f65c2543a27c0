"""All partitions of all topics in turn to the members that want them."""

from __future__ import annotations

from moldau.client.consumer.assignors.hash_order import member_order
from moldau.client.consumer.assignors.interface import (
    GroupSubscription,
    PartitionsPerTopic,
    TopicAssignor,
    by_instance,
)
from moldau.client.topics import TopicPartition

__all__ = ["RoundRobinAssignor"]


class RoundRobinAssignor(TopicAssignor):
    name = "roundrobin"

    def assign_partitions(
        self, partitions: PartitionsPerTopic, subscriptions: GroupSubscription
    ) -> dict[str, list[TopicPartition]]:
        members = member_order(subscriptions)
        assigned: dict[str, list[TopicPartition]] = {member_id: [] for member_id in members}
        members.sort(key=lambda member_id: by_instance(member_id, subscriptions[member_id]))
        wanted = {member_id: frozenset(subscriptions[member_id].topics) for member_id in members}
        turn = 0
        for topic in sorted(partitions):
            if not any(topic in topics for topics in wanted.values()):
                continue
            for index in range(len(partitions[topic])):
                while topic not in wanted[members[turn % len(members)]]:
                    turn += 1
                assigned[members[turn % len(members)]].append(TopicPartition(topic, index))
                turn += 1
        return assigned
