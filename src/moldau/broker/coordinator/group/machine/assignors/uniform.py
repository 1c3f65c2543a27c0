"""The uniform assignor: all members get equally many partitions, and keep what they have.

Balance comes before stickiness. With equal subscriptions no two members' counts differ
by more than one, and as few partitions as possible move. With different subscriptions
(uniform_heterogeneous.py) the subscribers of each topic come as near to that as they can.
Members and topics are taken in the order of their ids, so equal input gives equal output.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from uuid import UUID

from moldau.broker.coordinator.group.machine.assignors.interface import (
    Assignment,
    GroupSpec,
    partition_count,
    text_order,
    topic_order,
)
from moldau.broker.coordinator.group.machine.assignors.uniform_heterogeneous import (
    HeterogeneousAssignment,
)
from moldau.broker.coordinator.machine.topics import TopicFacts
from moldau.invariant import invariant


class UniformAssignor:
    name = "uniform"

    def assign(
        self, spec: GroupSpec, topics: Mapping[UUID, TopicFacts]
    ) -> dict[str, dict[UUID, frozenset[int]]]:
        if not spec.members:
            return {}
        if spec.homogeneous:
            return _HomogeneousAssignment(spec, topics).build()
        return HeterogeneousAssignment(spec, topics).build()


class _HomogeneousAssignment:
    """Everyone keeps what fits into its quota; the rest goes to those below theirs."""

    def __init__(self, spec: GroupSpec, topics: Mapping[UUID, TopicFacts]) -> None:
        self._members = [
            (each, spec.members[each]) for each in sorted(spec.members, key=text_order)
        ]
        subscribed = self._members[0][1].topic_ids
        self._counts = {
            each: partition_count(each, topics) for each in sorted(subscribed, key=topic_order)
        }
        self._claims: list[dict[UUID, frozenset[int]]] = []
        self._kept: list[dict[UUID, frozenset[int]]] = []
        self._free: list[tuple[UUID, int]] = []

    def build(self) -> dict[str, dict[UUID, frozenset[int]]]:
        self._claim_assigned()
        wanting = self._keep_within_quota()
        self._hand_out(wanting)
        return {
            member_id: kept for (member_id, _), kept in zip(self._members, self._kept, strict=True)
        }

    def _claim_assigned(self) -> None:
        """The present owners, each partition at most once even in an invalid log."""
        unclaimed = {topic_id: set(range(count)) for topic_id, count in self._counts.items()}
        for _, member in self._members:
            claims: dict[UUID, frozenset[int]] = {}
            for topic_id, partitions in member.assigned.items():
                left = unclaimed.get(topic_id)
                if left is not None:
                    claims[topic_id] = partitions if partitions <= left else partitions & left
                    left -= partitions
            self._claims.append(claims)
        for topic_id, left in unclaimed.items():
            self._free += ((topic_id, each) for each in sorted(left))

    def _keep_within_quota(self) -> list[tuple[int, int]]:
        """Reduce every member to its quota; return how many each may still get."""
        quota_min, extra = divmod(sum(self._counts.values()), len(self._members))
        wanting: list[tuple[int, int]] = []
        for index, claims in enumerate(self._claims):
            larger = extra > 0
            kept, room = self._cut(claims, quota_min + larger)
            if room > 0 and larger and len(self._members) - index > extra:
                # Enough members follow that may keep a partition by the larger quota.
                room -= 1
                larger = False
            if room > 0:
                wanting.append((index, room))
            extra -= larger
            self._kept.append(kept)
        return wanting

    def _cut(self, claims: Assignment, room: int) -> tuple[dict[UUID, frozenset[int]], int]:
        kept: dict[UUID, frozenset[int]] = {}
        for topic_id in sorted(claims, key=topic_order) if len(claims) > 1 else claims:
            partitions = claims[topic_id]
            if len(partitions) > room:
                ordered = sorted(partitions)
                partitions = frozenset(ordered[:room])
                self._free += ((topic_id, each) for each in ordered[room:])
            if partitions:
                kept[topic_id] = partitions
                room -= len(partitions)
        return kept, room

    def _hand_out(self, wanting: list[tuple[int, int]]) -> None:
        free = iter(self._free)
        for index, room in wanting:
            given: dict[UUID, list[int]] = {}
            for topic_id, partition in islice(free, room):
                given.setdefault(topic_id, []).append(partition)
            kept = self._kept[index]
            for topic_id, partitions in given.items():
                kept[topic_id] = kept.get(topic_id, frozenset()).union(partitions)
        invariant(next(free, None) is None, "the quotas of all members add up to all partitions")
