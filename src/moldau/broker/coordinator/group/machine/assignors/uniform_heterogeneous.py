"""Uniform assignment for members with different subscriptions.

Three steps: everyone keeps what it still subscribes to; free partitions go to the least
loaded subscribers, topics with most partitions per subscriber first; then partitions move
from the most to the least loaded subscribers of each topic, round by round, until no topic
gains from it. Rounds are limited: where subscriptions overlap in part, each brings less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from uuid import UUID

from moldau.broker.coordinator.group.machine.assignors.interface import (
    GroupSpec,
    partition_count,
    text_order,
    topic_order,
)
from moldau.broker.coordinator.machine.topics import TopicFacts

_ROUNDS_MAX = 16
_NOBODY = -1


class HeterogeneousAssignment:
    """One computation; members are numbered in the order of their ids."""

    def __init__(self, spec: GroupSpec, topics: Mapping[UUID, TopicFacts]) -> None:
        self._member_ids = sorted(spec.members, key=text_order)
        self._members = [spec.members[each] for each in self._member_ids]
        self._subscribers: dict[UUID, list[int]] = {}
        for index, member in enumerate(self._members):
            for topic_id in member.topic_ids:
                self._subscribers.setdefault(topic_id, []).append(index)
        self._owners = {
            topic_id: [_NOBODY] * partition_count(topic_id, topics)
            for topic_id in self._subscribers
        }
        self._loads = [0] * len(self._members)
        self._topics = sorted(self._subscribers, key=self._topic_priority)

    def build(self) -> dict[str, dict[UUID, frozenset[int]]]:
        self._keep_subscribed()
        self._assign_free()
        self._balance()
        parts: list[dict[UUID, list[int]]] = [{} for _ in self._members]
        for topic_id, owners in self._owners.items():
            for partition, owner in enumerate(owners):
                parts[owner].setdefault(topic_id, []).append(partition)
        return {
            member_id: {topic_id: frozenset(each) for topic_id, each in found.items()}
            for member_id, found in zip(self._member_ids, parts, strict=True)
        }

    def _topic_priority(self, topic_id: UUID) -> tuple[float, int, int]:
        subscribers = len(self._subscribers[topic_id])
        return -len(self._owners[topic_id]) / subscribers, subscribers, topic_order(topic_id)

    def _keep_subscribed(self) -> None:
        for index, member in enumerate(self._members):
            for topic_id, partitions in member.assigned.items():
                if topic_id not in member.topic_ids:
                    continue
                owners = self._owners[topic_id]
                for partition in partitions:
                    # Whatever an odd log says: partitions exist, and have one owner.
                    if partition < len(owners) and owners[partition] == _NOBODY:
                        owners[partition] = index
                        self._loads[index] += 1

    def _assign_free(self) -> None:
        for topic_id in self._topics:
            owners = self._owners[topic_id]
            if _NOBODY not in owners:
                continue
            ranks = _LoadRanks(self._subscribers[topic_id], self._loads)
            for partition, owner in enumerate(owners):
                if owner == _NOBODY:
                    taker = ranks.take_least_loaded()
                    owners[partition] = taker
                    self._loads[taker] += 1

    def _balance(self) -> None:
        movable = [each for each in self._topics if len(self._subscribers[each]) > 1]
        last_moved: UUID | None = None
        for _ in range(_ROUNDS_MAX):
            for topic_id in movable:
                if topic_id == last_moved:
                    return  # A whole round since then has moved nothing.
                if self._balance_topic(topic_id) or last_moved is None:
                    last_moved = topic_id

    def _balance_topic(self, topic_id: UUID) -> bool:
        ranks = _LoadRanks(self._subscribers[topic_id], self._loads)
        if ranks.spread <= 1:
            return False
        owners = self._owners[topic_id]
        by_owner = sorted(range(len(owners)), key=owners.__getitem__)
        held = {owner: list(each) for owner, each in groupby(by_owner, owners.__getitem__)}
        moved = False
        while not ranks.balanced:
            giver = ranks.take_most_loaded(held)
            if giver is None:
                break
            partition = held[giver].pop()
            taker = ranks.take_least_loaded()
            if ranks.balanced:
                break
            self._loads[giver] -= 1
            self._loads[taker] += 1
            owners[partition] = taker
            moved = True
        return moved


class _LoadRanks:
    """The subscribers of one topic by load, with a range of equals at either end.

    Whoever is taken from the low end gets a partition, whoever is taken from the high end
    gives one, so a range that has been gone through is one level higher or lower and may
    have met the next members. `loads` is the caller's and changes as it moves partitions.
    """

    def __init__(self, members: Iterable[int], loads: list[int]) -> None:
        self._loads = loads
        # Stable: members of equal load stay in the order of their numbers.
        self._ranked = sorted(members, key=loads.__getitem__)
        self._low_end = 0
        self._low_level = loads[self._ranked[0]] - 1
        self._low_next = 0
        self._high_start = self._high_end = len(self._ranked)
        self._high_level = loads[self._ranked[-1]] + 1
        self._high_next = len(self._ranked) - 1

    @property
    def spread(self) -> int:
        return self._loads[self._ranked[-1]] - self._loads[self._ranked[0]]

    @property
    def balanced(self) -> bool:
        return self._high_level - self._low_level <= 1

    def take_least_loaded(self) -> int:
        if self._low_next >= self._low_end:
            self._low_level += 1
            while (
                self._low_end < len(self._ranked)
                and self._loads[self._ranked[self._low_end]] == self._low_level
            ):
                self._low_end += 1
            self._low_next = 0
        member = self._ranked[self._low_next]
        self._low_next += 1
        return member

    def take_most_loaded(self, held: Mapping[int, list[int]]) -> int | None:
        """The next member that has a partition to give; those without leave the range."""
        while True:
            if self._high_next < self._high_start:
                self._extend_high()
            if self._high_next < 0:
                return None
            member = self._ranked[self._high_next]
            self._high_next -= 1
            if held.get(member):
                return member
            self._high_end -= 1
            self._ranked[self._high_next + 1] = self._ranked[self._high_end]
            self._ranked[self._high_end] = member

    def _extend_high(self) -> None:
        if self._high_end <= self._high_start and self._high_start > 0:
            # No member in the range had anything to give: continue with the next ones.
            self._high_level = self._loads[self._ranked[self._high_start - 1]]
        else:
            self._high_level -= 1
        while (
            self._high_start > 0
            and self._loads[self._ranked[self._high_start - 1]] == self._high_level
        ):
            self._high_start -= 1
        self._high_next = self._high_end - 1
