"""The sticky assignment when all members want the same topics, in linear time.

Each member keeps what it had up to its share, then the rest goes round those with room. Of `n`
members `total % n` get one partition more than the others.
"""

from __future__ import annotations

from moldau.client.consumer.assignors.hash_order import java_sorted_key
from moldau.client.consumer.assignors.interface import PartitionsPerTopic
from moldau.client.consumer.assignors.sticky_members import Owned, Racks
from moldau.client.topics import TopicPartition

__all__ = ["ConstrainedAssignment"]


class ConstrainedAssignment:
    """One assignment; `moving` says afterwards what has to leave another member first."""

    def __init__(self, partitions: PartitionsPerTopic, racks: Racks, owned: Owned) -> None:
        self._partitions = partitions
        self._racks = racks
        self._owned = owned
        total = sum(map(len, partitions.values()))
        member_count = len(owned.partitions)
        self._quota_min, self._over_wanted = divmod(total, member_count)
        self._quota_max = self._quota_min + (1 if self._over_wanted else 0)
        self._over = 0
        #: Members below the smaller share, and those at it that could get one more.
        self._under: list[str] = []
        self._at_min: list[str] = []
        self._revoked: dict[TopicPartition, str] = {}
        self._assigned: dict[str, list[TopicPartition]] = {
            member_id: [] for member_id in owned.partitions
        }
        self.moving: dict[TopicPartition, str] = {}

    def build(self) -> dict[str, list[TopicPartition]]:
        for member_id, keys in self._owned.partitions.items():
            self._keep(member_id, keys)
        kept = {key for keys in self._assigned.values() for key in keys}
        unassigned = [
            TopicPartition(topic, index)
            for topic in sorted(self._partitions)
            for index in range(len(self._partitions[topic]))
            if TopicPartition(topic, index) not in kept
        ]
        self._under.sort(key=java_sorted_key)
        self._at_min.sort(key=java_sorted_key)
        unassigned = self._racks.fewest_consumers_first(unassigned)
        if self._racks.consumers:
            unassigned = self._assign_near(unassigned)
        self._assign_round(unassigned)
        return self._assigned

    def _keep(self, member_id: str, owned: list[TopicPartition]) -> None:
        keys = []
        for key in owned:
            if self._racks.mismatch(member_id, key):
                self._revoked[key] = member_id
            elif key not in self._owned.claimed_twice:
                keys.append(key)
        keys.sort(key=lambda key: (key.partition, key.topic))
        if len(keys) < self._quota_min:
            self._assigned[member_id] += keys
            self._under.append(member_id)
            return
        if len(keys) >= self._quota_max and self._over < self._over_wanted:
            self._over += 1
            if self._over == self._over_wanted:
                self._at_min.clear()
            kept_count = self._quota_max
        else:
            kept_count = self._quota_min
            if self._over < self._over_wanted:
                self._at_min.append(member_id)
        self._assigned[member_id] += keys[:kept_count]
        self._revoked.update((key, member_id) for key in keys[kept_count:])

    def _assign_near(self, unassigned: list[TopicPartition]) -> list[TopicPartition]:
        """Round the members in a partition's racks; what remains has none with room."""
        remaining = []
        turn = 0
        for key in unassigned:
            index = self._racks.next_near(key, self._under, turn)
            if index >= 0:
                member_id = self._under[index]
                count = len(self._assigned[member_id]) + 1
                if count >= self._quota_min:
                    self._under.remove(member_id)
                    if count < self._quota_max and self._over < self._over_wanted:
                        self._at_min.append(member_id)
                else:
                    index += 1
                turn = index % len(self._under) if self._under else 0
                self._give(key, member_id)
                continue
            index = self._racks.next_near(key, self._at_min, 0)
            if index < 0:
                remaining.append(key)
                continue
            member_id = self._at_min[index]
            if len(self._assigned[member_id]) + 1 == self._quota_max:
                del self._at_min[index]
                self._over += 1
                if self._over == self._over_wanted:
                    self._at_min.clear()
            self._give(key, member_id)
        return remaining

    def _assign_round(self, unassigned: list[TopicPartition]) -> None:
        turn = 0
        for key in unassigned:
            if self._under:
                turn = turn if turn < len(self._under) else 0
                member_id = self._under[turn]
                turn += 1
            else:
                member_id = self._at_min.pop(0)
            count = self._give(key, member_id)
            if count == self._quota_min:
                turn -= 1
                del self._under[turn]
                self._at_min.append(member_id)

    def _give(self, key: TopicPartition, member_id: str) -> int:
        keys = self._assigned[member_id]
        keys.append(key)
        if self._revoked.get(key, member_id) != member_id or key in self._owned.claimed_twice:
            self.moving[key] = member_id
        return len(keys)
