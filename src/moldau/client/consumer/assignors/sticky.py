"""As even as can be, and of those the one that moves the fewest partitions.

`sticky` remembers what it had in its user data and gives all up at a rebalance.
`cooperative-sticky` keeps what does not move, and takes two rebalances to move a partition: it is
first withheld from its new owner until the old one has given it up.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from moldau.client.consumer.assignors.hash_order import member_order
from moldau.client.consumer.assignors.interface import (
    Assignment,
    GroupSubscription,
    PartitionsPerTopic,
    RebalanceProtocol,
    Subscription,
    TopicAssignor,
)
from moldau.client.consumer.assignors.sticky_constrained import ConstrainedAssignment
from moldau.client.consumer.assignors.sticky_general import GeneralAssignment
from moldau.client.consumer.assignors.sticky_members import (
    DEFAULT_GENERATION,
    MemberData,
    Owned,
    Racks,
    owned_partitions,
    same_topics,
)
from moldau.client.topics import TopicPartition

__all__ = ["CooperativeStickyAssignor", "StickyAssignor"]

_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")


class _Sticky(TopicAssignor):
    def __init__(self) -> None:
        self._generation = DEFAULT_GENERATION
        self._generation_max = DEFAULT_GENERATION
        #: Who gets a partition that another must give up first; None if it was not noted.
        self._moving: dict[TopicPartition, str] | None = None

    def member_data(self, subscription: Subscription) -> MemberData:
        raise TypeError("a sticky assignor needs user data with the previous assignment")

    def assign_partitions(
        self, partitions: PartitionsPerTopic, subscriptions: GroupSubscription
    ) -> dict[str, list[TopicPartition]]:
        members = {each: subscriptions[each] for each in member_order(subscriptions)}
        data = {each: self.member_data(subscription) for each, subscription in members.items()}
        owned: Owned = owned_partitions(members, data, partitions)
        generations = (
            DEFAULT_GENERATION if each.generation is None else each.generation
            for each in data.values()
        )
        self._generation_max = max(self._generation_max, *generations)
        racks = Racks(partitions, members)
        if same_topics(members):
            constrained = ConstrainedAssignment(partitions, racks, owned)
            assigned = constrained.build()
            self._moving = constrained.moving
        else:
            previous = _older(data, self._generation_max)
            assigned = GeneralAssignment(partitions, racks, owned, members, previous).build()
            self._moving = None
        return assigned


def _older(data: dict[str, MemberData], generation_max: int) -> dict[TopicPartition, str]:
    """The last owner of each partition in an older generation than the newest."""
    found: dict[TopicPartition, tuple[str, int]] = {}
    for member_id, each in data.items():
        if each.generation is None:
            if generation_max <= DEFAULT_GENERATION:
                continue
            generation = DEFAULT_GENERATION
        elif each.generation < generation_max:
            generation = each.generation
        else:
            continue
        for key in each.partitions:
            if key not in found or generation > found[key][1]:
                found[key] = (member_id, generation)
    return {key: member_id for key, (member_id, _) in found.items()}


class StickyAssignor(_Sticky):
    name = "sticky"

    def __init__(self) -> None:
        super().__init__()
        self._partitions: tuple[TopicPartition, ...] | None = None

    def on_assignment(self, assignment: Assignment, group_metadata: Any) -> None:
        self._partitions = assignment.partitions
        self._generation = group_metadata.generation_id

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        if self._partitions is None:
            return None
        by_topic: dict[str, list[int]] = {}
        for key in self._partitions:
            by_topic.setdefault(key.topic, []).append(key.partition)
        out = bytearray(_INT32.pack(len(by_topic)))
        for topic, indexes in by_topic.items():
            name = topic.encode()
            out += _INT16.pack(len(name)) + name
            out += struct.pack(f">i{len(indexes)}i", len(indexes), *indexes)
        return bytes(out + _INT32.pack(self._generation))

    def member_data(self, subscription: Subscription) -> MemberData:
        if not subscription.user_data:
            return MemberData((), None)
        return _read_previous(subscription.user_data)


def _read_previous(data: bytes) -> MemberData:
    """What a member had; of a member that writes it differently nothing is known."""
    partitions: list[TopicPartition] = []
    try:
        (count,) = _INT32.unpack_from(data)
        position = 4
        for _ in range(count):
            (size,) = _INT16.unpack_from(data, position)
            name = data[position + 2 : position + 2 + size]
            position += 2 + size
            topic = name.decode()
            (index_count,) = _INT32.unpack_from(data, position)
            indexes = struct.unpack_from(f">{max(index_count, 0)}i", data, position + 4)
            position += 4 + 4 * len(indexes)
            partitions += (TopicPartition(topic, index) for index in indexes)
    except (struct.error, UnicodeDecodeError, MemoryError):
        return MemberData((), DEFAULT_GENERATION)
    # The first version of it ended without a generation.
    if len(data) - position < _INT32.size:
        return MemberData(tuple(partitions), None)
    return MemberData(tuple(partitions), _INT32.unpack_from(data, position)[0])


class CooperativeStickyAssignor(_Sticky):
    name = "cooperative-sticky"
    supported_protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def on_assignment(self, assignment: Assignment, group_metadata: Any) -> None:
        self._generation = group_metadata.generation_id

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        return _INT32.pack(self._generation)

    def member_data(self, subscription: Subscription) -> MemberData:
        if subscription.generation_id is not None:
            return MemberData(subscription.owned_partitions, subscription.generation_id)
        generation: int | None = None
        if subscription.user_data is not None:
            # Members whose subscription has no field for the generation put it there.
            known = len(subscription.user_data) >= _INT32.size
            generation = _INT32.unpack_from(subscription.user_data)[0] if known else -1
        return MemberData(subscription.owned_partitions, generation)

    def assign_partitions(
        self, partitions: PartitionsPerTopic, subscriptions: GroupSubscription
    ) -> dict[str, list[TopicPartition]]:
        assigned = super().assign_partitions(partitions, subscriptions)
        moving = self._moving
        if moving is None:
            moving = _moving_between(subscriptions, assigned)
        for key, member_id in moving.items():
            assigned[member_id].remove(key)
        return assigned


def _moving_between(
    subscriptions: GroupSubscription, assigned: dict[str, list[TopicPartition]]
) -> dict[TopicPartition, str]:
    added: dict[TopicPartition, str] = {}
    revoked: set[TopicPartition] = set()
    for member_id, keys in assigned.items():
        before = frozenset(subscriptions[member_id].owned_partitions)
        added.update((key, member_id) for key in keys if key not in before)
        revoked |= before.difference(keys)
    return {key: member_id for key, member_id in added.items() if key in revoked}
