"""The sticky assignment when members want different topics.

Whoever has a partition that it still wants keeps it. The rest goes to the member with the fewest,
then partitions move from members with more to members with fewer until no move makes it more even.
If all moving did not make it more even than before, nothing moves.
"""

from __future__ import annotations

from bisect import bisect_left, insort

from moldau.client.consumer.assignors.hash_order import PartitionSet, java_sorted_key
from moldau.client.consumer.assignors.interface import GroupSubscription, PartitionsPerTopic
from moldau.client.consumer.assignors.sticky_members import Owned, Racks
from moldau.client.topics import TopicPartition

__all__ = ["GeneralAssignment"]


class _ByLoad:
    """Members by the count of their partitions, then by id."""

    def __init__(self, assigned: dict[str, list[TopicPartition]]) -> None:
        self._assigned = assigned
        self._sorted: list[tuple[int, bytes, str]] = []

    def _entry(self, member_id: str) -> tuple[int, bytes, str]:
        return len(self._assigned[member_id]), java_sorted_key(member_id), member_id

    def add(self, member_id: str) -> None:
        insort(self._sorted, self._entry(member_id))

    def remove(self, member_id: str) -> None:
        """To be called before its count changes."""
        entry = self._entry(member_id)
        index = bisect_left(self._sorted, entry)
        if index < len(self._sorted) and self._sorted[index] == entry:
            del self._sorted[index]

    def members(self) -> list[str]:
        return [entry[2] for entry in self._sorted]

    def spread(self) -> tuple[int, int]:
        return self._sorted[0][0], self._sorted[-1][0]


class GeneralAssignment:
    """One assignment; `previous` are the owners in older generations."""

    def __init__(
        self,
        partitions: PartitionsPerTopic,
        racks: Racks,
        owned: Owned,
        members: GroupSubscription,
        previous: dict[TopicPartition, str],
    ) -> None:
        self._partitions = partitions
        self._racks = racks
        self._previous = previous
        self._topics = {
            member_id: [topic for topic in each.topics if topic in partitions]
            for member_id, each in members.items()
        }
        self._consumers: dict[str, list[str]] = {topic: [] for topic in partitions}
        for member_id, topics in self._topics.items():
            for topic in topics:
                self._consumers[topic].append(member_id)
        ordered = sorted(partitions, key=lambda topic: (len(self._consumers[topic]), topic))
        self._all = [
            TopicPartition(topic, info.partition) for topic in ordered for info in partitions[topic]
        ]
        self._assigned = owned.partitions
        self._owner: dict[TopicPartition, str] = {}
        self._revocation = False
        self._moves = _Moves()
        self._by_load = _ByLoad(self._assigned)

    def build(self) -> dict[str, list[TopicPartition]]:
        for member_id, keys in self._assigned.items():
            keys[:] = [key for key in keys if self._may_keep(member_id, key)]
            self._owner.update((key, member_id) for key in keys)
        unassigned = [key for key in self._all if key not in self._owner]
        for member_id in self._assigned:
            self._by_load.add(member_id)
        self._balance(unassigned)
        return self._assigned

    def _may_keep(self, member_id: str, key: TopicPartition) -> bool:
        wanted = key.topic in self._topics[member_id]
        if wanted and not self._racks.mismatch(member_id, key):
            return True
        self._revocation = True
        return False

    def _balance(self, unassigned: list[TopicPartition]) -> None:
        initial = self._by_load.spread()[1] == 0
        remaining = unassigned
        if self._racks.consumers:
            remaining = [key for key in unassigned if not self._give_to_least(key, near=True)]
        for key in remaining:
            self._give_to_least(key, near=False)
        movable = [key for key in self._all if self._is_movable(key.topic)]
        fixed = {
            member_id: self._assigned[member_id]
            for member_id in self._topics
            if not self._may_change(member_id)
        }
        for member_id in fixed:
            self._by_load.remove(member_id)
            del self._assigned[member_id]
        before = {member_id: list(keys) for member_id, keys in self._assigned.items()}
        if not self._revocation:
            # First try with what nobody had yet.
            self._reassign([key for key in unassigned if self._is_movable(key.topic)])
        if (
            self._reassign(movable)
            and not initial
            and _unevenness(self._assigned) >= _unevenness(before)
        ):
            self._assigned.update(before)
        self._assigned.update(fixed)

    def _give_to_least(self, key: TopicPartition, *, near: bool) -> bool:
        for member_id in self._by_load.members():
            if key.topic not in self._topics[member_id]:
                continue
            if near and self._racks.mismatch(member_id, key):
                continue
            self._by_load.remove(member_id)
            self._assigned[member_id].append(key)
            self._owner[key] = member_id
            self._by_load.add(member_id)
            return True
        return False

    def _is_movable(self, topic: str) -> bool:
        return len(self._consumers[topic]) >= 2

    def _may_change(self, member_id: str) -> bool:
        keys = self._assigned[member_id]
        if len(keys) < self._wanted_count(member_id):
            return True
        return any(self._is_movable(key.topic) for key in keys)

    def _wanted_count(self, member_id: str) -> int:
        return sum(len(self._partitions[topic]) for topic in self._topics[member_id])

    def _reassign(self, keys: list[TopicPartition]) -> bool:
        """Move partitions while it makes it more even; whether anything moved."""
        moved = False
        again = True
        while again:
            again = False
            for key in keys:
                if self._is_even():
                    break
                if self._improve(key):
                    moved = again = True
        return moved

    def _improve(self, key: TopicPartition) -> bool:
        count = len(self._assigned[self._owner[key]])
        previous = self._previous.get(key)
        # Back to who had it before, if that still wants it.
        if (
            previous is not None
            and key.topic in self._topics[previous]
            and previous in self._assigned
            and count > len(self._assigned[previous]) + 1
        ):
            self._move(key, previous)
            return True
        if any(count > len(self._assigned[each]) + 1 for each in self._consumers[key.topic]):
            least = next(
                each for each in self._by_load.members() if key.topic in self._topics[each]
            )
            self._move(key, least)
            return True
        return False

    def _move(self, key: TopicPartition, target: str) -> None:
        moved = self._moves.instead_of(key, self._owner[key], target)
        source = self._owner[moved]
        self._by_load.remove(source)
        self._by_load.remove(target)
        self._moves.note(moved, source, target)
        self._assigned[source].remove(moved)
        self._assigned[target].append(moved)
        self._owner[moved] = target
        self._by_load.add(target)
        self._by_load.add(source)

    def _is_even(self) -> bool:
        fewest, most = self._by_load.spread()
        if fewest >= most - 1:
            return True
        for member_id in self._by_load.members():
            count = len(self._assigned[member_id])
            if count == self._wanted_count(member_id):
                continue
            for topic in self._topics[member_id]:
                for info in self._partitions[topic]:
                    owner = self._owner[TopicPartition(topic, info.partition)]
                    if owner != member_id and count + 1 < len(self._assigned[owner]):
                        return False
        return True


class _Moves:
    """What moved between whom: rather than a partition there and another of its topic back,
    the first one returns."""

    def __init__(self) -> None:
        self._pairs: dict[TopicPartition, tuple[str, str]] = {}
        self._by_topic: dict[str, dict[tuple[str, str], PartitionSet]] = {}

    def instead_of(self, key: TopicPartition, source: str, target: str) -> TopicPartition:
        """The partition to move where `key` would move from one member to another."""
        pair = self._pairs.get(key)
        back = (target, source if pair is None else pair[0])
        moved = self._by_topic.get(key.topic, {}).get(back)
        return moved.first() if moved else key

    def note(self, key: TopicPartition, source: str, target: str) -> None:
        pair = self._pairs.pop(key, None)
        if pair is not None:
            topic = self._by_topic[key.topic]
            topic[pair].discard(key)
            if not topic[pair]:
                del topic[pair]
            source = pair[0]
            if source == target:
                return
        self._pairs[key] = (source, target)
        pairs = self._by_topic.setdefault(key.topic, {})
        pairs.setdefault((source, target), PartitionSet()).add(key)


def _unevenness(assigned: dict[str, list[TopicPartition]]) -> int:
    counts = [len(keys) for keys in assigned.values()]
    return sum(
        abs(count - other) for index, count in enumerate(counts) for other in counts[index + 1 :]
    )
