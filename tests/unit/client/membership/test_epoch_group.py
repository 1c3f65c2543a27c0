"""Several members and a coordinator that plays by KIP-848, in any order of events: no partition is
ever in the hands of two, and in the end everybody has what they should.

The coordinator gives a partition on only after its owner has reported that it gave it up, or is out
of the group. That is all it knows; the rest is up to the members.
"""

from __future__ import annotations

import random
from uuid import UUID

import pytest

from moldau.client.consumer.membership.machine.epoch_member import (
    LEAVE_EPOCH,
    EpochMember,
    EpochState,
    LocalAssignment,
    Reconciliation,
)
from moldau.client.topics import TopicPartition
from moldau.wire.errors import ErrorCode

TOPICS = {UUID(int=10): "a", UUID(int=11): "b"}
PARTITIONS = [(topic_id, index) for topic_id in TOPICS for index in range(4)]
Assigned = dict[UUID, frozenset[int]]


class Application:
    """A member, and what its application has in hand."""

    def __init__(self, name: str) -> None:
        self.member = EpochMember(name)
        self.owned: set[TopicPartition] = set()
        self.steps: Reconciliation | None = None
        self.taken = False
        #: What it has told the coordinator to have; it is told again only when it changes.
        self.said: LocalAssignment | None = None

    def poll(self, names: dict[UUID, str]) -> None:
        """One step of what a poll does, so that others come in between."""
        member = self.member
        if member.must_release:
            self.owned.clear()
            self.steps = None
            self.taken = False
            member.on_released()
            return
        member.join()
        if self.steps is None:
            self.steps = member.reconciliation(names, self.owned)
            if self.steps is not None:
                self.owned.difference_update(self.steps.revoked)
            return
        steps = self.steps
        if not member.still_wanted(steps):
            self.steps = None
        elif not self.taken:
            self.owned.update(member.take(steps))
            self.taken = True
            return
        else:
            member.on_reconciled(steps)
            self.steps = None
        self.taken = False


class Coordinator:
    def __init__(self) -> None:
        self.epoch = 1
        self.targets: dict[str, set[tuple[UUID, int]]] = {}
        #: What each member may have in hand, as far as it has said.
        self.held: dict[str, set[tuple[UUID, int]]] = {}

    def rebalance(self, chance: random.Random) -> None:
        self.epoch += 1
        members = sorted(self.targets)
        for name in members:
            self.targets[name] = set()
        for partition in PARTITIONS:
            if members:
                self.targets[chance.choice(members)].add(partition)

    def heartbeat(
        self, name: str, epoch: int, owned: Assigned | None, chance: random.Random
    ) -> tuple[ErrorCode, int, Assigned | None]:
        if epoch == LEAVE_EPOCH:
            self.forget(name, chance)
            return ErrorCode.NONE, LEAVE_EPOCH, None
        if epoch == 0:
            self.targets.setdefault(name, set())
            self.held[name] = set()
            self.rebalance(chance)
        elif name not in self.targets:
            return ErrorCode.UNKNOWN_MEMBER_ID, 0, None
        if owned is not None:
            had = {(topic, index) for topic, each in owned.items() for index in each}
            # What it does not name it has given up, unless it still has to take it.
            self.held[name] &= had | self.targets[name]
        others = set().union(*(each for other, each in self.held.items() if other != name))
        given = self.targets[name] - others
        self.held[name] |= given
        found: dict[UUID, set[int]] = {}
        for topic_id, index in given:
            found.setdefault(topic_id, set()).add(index)
        return ErrorCode.NONE, self.epoch, {key: frozenset(each) for key, each in found.items()}

    def forget(self, name: str, chance: random.Random) -> None:
        self.targets.pop(name, None)
        self.held.pop(name, None)
        self.rebalance(chance)


class World:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.coordinator = Coordinator()
        self.applications = [Application(f"m{index}") for index in range(3)]

    def beat(self, application: Application) -> None:
        member = application.member
        if member.is_silent:
            return
        told = member.current if member.current != application.said else None
        owned = None if told is None else dict(told.partitions)
        application.said = member.current
        epoch = member.epoch
        member.on_beat_sent()
        if self.chance.random() < 0.1:
            # The request is lost, and all is said again.
            application.said = None
            return
        code, epoch, assignment = self.coordinator.heartbeat(
            member.member_id, epoch, owned, self.chance
        )
        if code is ErrorCode.NONE:
            member.on_beat_answered(epoch, assignment)
        else:
            member.on_beat_refused(code)

    def step(self) -> None:
        application = self.chance.choice(self.applications)
        what = self.chance.random()
        if what < 0.45:
            self.beat(application)
        elif what < 0.85:
            names = dict(TOPICS)
            if self.chance.random() < 0.2:
                names.pop(self.chance.choice(list(names)))
            application.poll(names)
        elif what < 0.9:
            self.coordinator.rebalance(self.chance)
        elif what < 0.93 and not application.member.is_silent and application.steps is None:
            application.member.prepare_leaving()
            application.owned.clear()
            application.member.leave(LEAVE_EPOCH)
            self.beat(application)

    def check(self) -> None:
        seen: dict[TopicPartition, str] = {}
        for application in self.applications:
            if application.member.state is EpochState.FENCED:
                # It has not been told yet that all is lost.
                continue
            for partition in application.owned:
                other = seen.setdefault(partition, application.member.member_id)
                assert other == application.member.member_id, f"{partition} twice"


@pytest.mark.parametrize("seed", range(40))
def test_no_partition_is_in_two_hands(seed: int) -> None:
    world = World(seed)
    for _ in range(400):
        world.step()
        world.check()
    # Left alone, the group comes to rest with everything assigned once.
    world.chance = random.Random(seed)
    world.chance.random = lambda: 0.5  # type: ignore[method-assign]
    for _ in range(30):
        for application in world.applications:
            application.poll(TOPICS)
            application.poll(TOPICS)
            world.beat(application)
    owned = [key for application in world.applications for key in application.owned]
    assert sorted(owned) == sorted(
        TopicPartition(TOPICS[topic_id], index) for topic_id, index in PARTITIONS
    )
    assert {each.member.state for each in world.applications} == {EpochState.STABLE}
