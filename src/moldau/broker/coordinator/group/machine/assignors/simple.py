"""The simple assignor of share groups: several members may share a partition.

Every partition is to have the same number of members, every member the same number of
partitions, give or take one; within that, members keep what they have. With different
subscriptions this holds for each topic by itself. Members, topics and partitions are
taken in order, so equal input gives equal output.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from uuid import UUID

from moldau.broker.coordinator.group.machine.assignors.interface import (
    GroupSpec,
    partition_count,
    text_order,
    topic_order,
)
from moldau.broker.coordinator.machine.topics import TopicFacts

_Place = tuple[int, int]
"""Topic, as a number in the order of topics, and partition."""


class SimpleAssignor:
    name = "simple"

    def assign(
        self, spec: GroupSpec, topics: Mapping[UUID, TopicFacts]
    ) -> dict[str, dict[UUID, frozenset[int]]]:
        member_ids = sorted(spec.members, key=text_order)
        subscribers: dict[UUID, list[int]] = {}
        for index, member_id in enumerate(member_ids):
            for topic_id in spec.members[member_id].topic_ids:
                subscribers.setdefault(topic_id, []).append(index)
        topic_ids = sorted(subscribers, key=topic_order)
        if spec.homogeneous:
            parts = [(range(len(topic_ids)), list(range(len(member_ids))))] if topic_ids else []
        else:
            parts = [
                (range(number, number + 1), subscribers[topic_id])
                for number, topic_id in enumerate(topic_ids)
            ]
        found: list[dict[UUID, set[int]]] = [{} for _ in member_ids]
        for numbers, members in parts:
            places = [
                (number, partition)
                for number in numbers
                for partition in _assignable(spec, topic_ids[number], topics)
            ]
            held = {
                index: {
                    (number, partition)
                    for number in numbers
                    for partition in spec.members[member_ids[index]].assigned.get(
                        topic_ids[number], ()
                    )
                }
                for index in members
            }
            for index, kept in _Sharing(places, members, held).build().items():
                for number, partition in kept:
                    found[index].setdefault(topic_ids[number], set()).add(partition)
        return {
            member_id: {topic_id: frozenset(each) for topic_id, each in parts_of.items()}
            for member_id, parts_of in zip(member_ids, found, strict=True)
        }


def _assignable(
    spec: GroupSpec, topic_id: UUID, topics: Mapping[UUID, TopicFacts]
) -> list[int] | range:
    partitions = range(partition_count(topic_id, topics))
    if spec.assignable is None:
        return partitions
    allowed = spec.assignable.get(topic_id, frozenset())
    return [partition for partition in partitions if partition in allowed]


class _Sharing:
    """Shares places among members with the same subscription; `held` is what they have now."""

    def __init__(
        self, places: list[_Place], members: list[int], held: dict[int, set[_Place]]
    ) -> None:
        self._members = members
        self._held = held
        self._sharing = -(-len(members) // len(places)) if places else 0
        # The running total is rounded, so members with one more are spread evenly.
        exact = self._sharing * len(places) / len(members)
        self._wanted = {
            member: ceil(exact * (number + 1)) - ceil(exact * number)
            for number, member in enumerate(members)
        }
        self._holders: dict[_Place, set[int]] = {place: set() for place in places}

    def build(self) -> dict[int, set[_Place]]:
        self._cut_members()
        self._cut_places()
        self._fill()
        return self._held

    def _cut_members(self) -> None:
        for member in self._members:
            held = self._held[member]
            too_many = len(held) - self._wanted[member]
            if too_many > 0:
                held.difference_update(sorted(held)[:too_many])
            for place in held:
                self._holders.setdefault(place, set()).add(member)

    def _cut_places(self) -> None:
        for place, holders in self._holders.items():
            too_many = len(holders) - self._sharing
            if too_many > 0:
                for member in sorted(holders)[:too_many]:
                    holders.discard(member)
                    self._held[member].discard(place)

    def _fill(self) -> None:
        """Go round the members that lack places, place by place."""
        lacking = [each for each in self._members if len(self._held[each]) < self._wanted[each]]
        position = 0
        given = False
        for place in sorted(self._holders):
            holders = self._holders[place]
            missing = self._sharing - len(holders)
            while missing > 0:
                if position == len(lacking):
                    if not given or not lacking:
                        break  # All members with room have had this one already.
                    position = 0
                    given = False
                member = lacking[position]
                position += 1
                if member in holders:
                    continue
                held = self._held[member]
                held.add(place)
                missing -= 1
                given = True
                if len(held) >= self._wanted[member]:
                    position -= 1
                    del lacking[position]
            if not lacking:
                break
