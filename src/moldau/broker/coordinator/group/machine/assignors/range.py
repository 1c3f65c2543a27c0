"""The range assignor: each topic is cut into as many ranges as it has subscribers.

Members are in a fixed order, static ones first, so members with the same subscriptions
get the same partition numbers of all topics that have equally many.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from moldau.broker.coordinator.group.machine.assignors.interface import (
    GroupSpec,
    MemberSubscription,
    partition_count,
    text_order,
)
from moldau.broker.coordinator.machine.topics import TopicFacts


class RangeAssignor:
    name = "range"

    def assign(
        self, spec: GroupSpec, topics: Mapping[UUID, TopicFacts]
    ) -> dict[str, dict[UUID, frozenset[int]]]:
        ordered = sorted(spec.members.items(), key=_member_order)
        subscribers: dict[UUID, list[str]] = {}
        for member_id, member in ordered:
            for topic_id in member.topic_ids:
                subscribers.setdefault(topic_id, []).append(member_id)
        assigned: dict[str, dict[UUID, frozenset[int]]] = {each: {} for each, _ in ordered}
        for topic_id, member_ids in subscribers.items():
            quota, extra = divmod(partition_count(topic_id, topics), len(member_ids))
            start = 0
            for index, member_id in enumerate(member_ids):
                end = start + quota + (index < extra)
                if start < end:
                    assigned[member_id][topic_id] = frozenset(range(start, end))
                start = end
        return assigned


def _member_order(item: tuple[str, MemberSubscription]) -> tuple[bool, bytes, bytes]:
    """Static members first and by instance, which outlives the member id: they keep their own."""
    member_id, member = item
    if member.instance_id is None:
        return True, text_order(member_id), b""
    return False, text_order(member.instance_id), text_order(member_id)
