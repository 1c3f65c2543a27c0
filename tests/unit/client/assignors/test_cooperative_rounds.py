"""A cooperative group through rounds of rebalances: members come, go and change their minds.

In every round each member gives up what the leader did not give it, then has what it was given.
That nobody is given what another still has is what `cooperative-sticky` is for.
"""

from __future__ import annotations

import random

import pytest

from moldau.client.consumer.assignors import CooperativeStickyAssignor, Subscription
from moldau.client.consumer.assignors.embedded import read_subscription, write_subscription
from moldau.client.consumer.membership_interface import ConsumerGroupMetadata
from moldau.client.machine.metadata import EMPTY, ClusterMetadata, PartitionView, TopicView
from moldau.client.topics import Node, TopicPartition
from moldau.wire.uuids import ZERO_UUID

TOPICS = {"a": 5, "b": 3, "c": 7}


def cluster() -> ClusterMetadata:
    view = PartitionView(0, 1, (0,), (0,), ())
    views = {
        topic: TopicView(topic, ZERO_UUID, False, dict.fromkeys(range(count), view))
        for topic, count in TOPICS.items()
    }
    return EMPTY._replace(nodes={0: Node(0, "h", 1)}, topics=views)


class Group:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.generation = 0
        self.assignors: dict[str, CooperativeStickyAssignor] = {}
        self.topics: dict[str, tuple[str, ...]] = {}
        self.owned: dict[str, set[TopicPartition]] = {}
        self.generations: dict[str, int] = {}
        self._count = 0

    def change(self) -> None:
        what = self.chance.random()
        if what < 0.5 or not self.owned:
            self._count += 1
            name = f"member-{self.chance.randrange(1000)}-{self._count}"
            self.assignors[name] = CooperativeStickyAssignor()
            self.owned[name] = set()
            self.generations[name] = -1
            self._subscribe(name)
        elif what < 0.8:
            name = self.chance.choice(sorted(self.owned))
            for known in (self.assignors, self.owned, self.topics, self.generations):
                del known[name]
        else:
            name = self.chance.choice(sorted(self.owned))
            self._subscribe(name)
            self.owned[name] = {key for key in self.owned[name] if key.topic in self.topics[name]}

    def _subscribe(self, name: str) -> None:
        count = self.chance.choice((1, 2, 3, 3, 3))
        self.topics[name] = tuple(sorted(self.chance.sample(sorted(TOPICS), count)))

    def rebalance(self) -> bool:
        """One round; whether another is needed, as somebody gave something up."""
        said = {}
        for name in self.owned:
            subscription = Subscription(
                self.topics[name],
                self.assignors[name].subscription_user_data(frozenset(self.topics[name])),
                tuple(self.owned[name]),
                self.generations[name],
            )
            said[name] = read_subscription(write_subscription(subscription))
        leader = self.chance.choice(sorted(self.owned))
        assigned = self.assignors[leader].assign(cluster(), said)
        self.generation += 1
        again = False
        before = {key: name for name, keys in self.owned.items() for key in keys}
        for name, assignment in assigned.items():
            keys = set(assignment.partitions)
            assert all(key.topic in self.topics[name] for key in keys)
            stolen = {key for key in keys if before.get(key, name) != name}
            assert not stolen, f"{name} was given what others have: {stolen}"
            again |= bool(self.owned[name] - keys)
            self.owned[name] = keys
            metadata = ConsumerGroupMetadata("g", self.generation, name)
            self.assignors[name].on_assignment(assignment, metadata)
            self.generations[name] = self.generation
        return again


@pytest.mark.parametrize("seed", range(60))
def test_rounds_of_a_cooperative_group(seed: int) -> None:
    group = Group(seed)
    for _ in range(12):
        group.change()
        if not group.owned:
            continue
        rounds = 1
        while group.rebalance():
            rounds += 1
            assert rounds < 6, "it does not come to rest"
        wanted = {topic for topics in group.topics.values() for topic in topics}
        every = {TopicPartition(topic, i) for topic in wanted for i in range(TOPICS[topic])}
        owned = [key for keys in group.owned.values() for key in keys]
        assert sorted(owned) == sorted(every)
        if len(set(group.topics.values())) == 1:
            sizes = [len(keys) for keys in group.owned.values()]
            assert max(sizes) - min(sizes) <= 1
