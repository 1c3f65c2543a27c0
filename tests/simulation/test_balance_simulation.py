"""The balancer in the simulator: a broker is filled and another drained, while clients write and
nodes fail. The scenario finds what is lost; the balancer must come to its end."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from moldau.balance.machine.continuous import Bounds, Chosen, Rounds
from moldau.balance.machine.model import Broker, Constraints, Impossible, Partition
from moldau.balance.machine.model import Cluster as Load
from moldau.balance.machine.planner import TOLERANCE, plan
from moldau.sim.clients.operator import Operator
from moldau.sim.clients.rpc import Lost
from moldau.sim.cluster import THREE
from moldau.sim.cluster_scenario import LOGS, TRANSACTIONS, Profile
from moldau.sim.replicated_scenario import ReplicatedScenario
from moldau.sim.runner import run_seed
from moldau.sim.world import Invariant, Violation, World
from moldau.wire.errors import ErrorCode

DRAINED = 1
MOVES_MAX = 2
PARTITIONS = 6


class Balancer(Operator):
    """Fills a broker that comes later, then drains one of the first, some partitions at a time."""

    def __init__(self, scenario: ReplicatedScenario) -> None:
        super().__init__(
            scenario.cluster,
            scenario.history,
            "balancer",
            scenario.profile.topics,
            on_new=lambda node: scenario.faults.start(node),
        )
        self.rounds = 0
        self.filled = 0

    async def run(self) -> None:
        await self.rest(1.0)
        await self._add_broker()
        added = self.cluster.brokers[-1].node_id
        while added not in self._alive():
            await self.rest(1.0)
        await self._balance(Constraints(added=frozenset({added})))
        self.filled = sum(added in each.replicas for each in self._read().partitions)
        await self._balance(Constraints(drained=frozenset({DRAINED})))

    async def _balance(self, constraints: Constraints) -> None:
        rounds = Rounds(Bounds(MOVES_MAX, cool_down_s=0.0))
        while True:
            load = self._read()
            now_s = self.cluster.world.loop.time()
            try:
                planned = plan(load, constraints)
                chosen = rounds.choose(
                    load, planned, now_s, constraints=constraints, tolerance=TOLERANCE
                )
            except Impossible:
                # The broker that is to be filled is down for the moment.
                await asyncio.sleep(0.5)
                continue
            if not chosen.reassignments:
                return
            await self._carry_out(chosen)

    async def _carry_out(self, chosen: Chosen) -> None:
        self.rounds += 1
        wanted = {(each.topic, each.partition): each.after for each in chosen.reassignments}
        deadline_s = self.cluster.world.loop.time() + 30.0
        while wanted and self.cluster.world.loop.time() < deadline_s:
            for (topic, partition), replicas in wanted.items():
                try:
                    code = await self._alter(topic, partition, list(replicas))
                except Lost:
                    continue
                self.note(f"moves {topic}-{partition} to {replicas}: {code.name}")
                if code is ErrorCode.NONE:
                    self.cluster.world.fault("reassignment")
            await asyncio.sleep(1.0)
            placed = {(each.topic, each.number): each.replicas for each in self._read().partitions}
            wanted = {key: each for key, each in wanted.items() if placed[key] != each}

    # What it knows: the newest metadata, and sizes as the logs have them.

    def _image(self) -> Any:
        image = self.cluster.newest_image()
        if image is None:
            raise Violation(Invariant.NO_SURPRISE, "there is no metadata")
        return image

    def _alive(self) -> set[int]:
        return {each.id for each in self._read().brokers if each.alive}

    def _read(self) -> Load:
        image = self._image()
        brokers = [Broker(key, alive=not each.fenced) for key, each in image.brokers.items()]
        partitions = [
            Partition(
                topic.name,
                index,
                tuple(state.replicas),
                disk=float(self._size(topic.name, index, state.leader)),
                fixed=state.leader < 0,
            )
            for topic in image.topics_by_id.values()
            for index, state in topic.partitions.items()
            # What is in progress holds replicas that go.
            if not state.removing_replicas and topic.name in self._topics
        ]
        moving = [
            Partition(topic.name, index, tuple(_target(state)), fixed=True)
            for topic in image.topics_by_id.values()
            for index, state in topic.partitions.items()
            if state.removing_replicas and topic.name in self._topics
        ]
        return Load(brokers, [*partitions, *moving])

    def _size(self, topic: str, index: int, leader: int) -> int:
        for node in self.cluster.brokers:
            if node.node_id == leader and node.replicas is not None:
                found = node.replicas.find(topic, index)
                return 0 if found is None else found.log.log_end_offset
        return 0


def _target(state: Any) -> list[int]:
    return [each for each in state.replicas if each not in state.removing_replicas]


class BalancedScenario(ReplicatedScenario):
    def __init__(self, world: World, profile: Profile) -> None:
        # Enough partitions for several rounds.
        topics = dict.fromkeys(profile.topics, PARTITIONS)
        profile = replace(profile, topics=topics)
        super().__init__(world, profile=profile, layout=THREE, operator=False)
        self.balancer = Balancer(self)
        self.add(self.balancer)


MORE = pytest.mark.long("another seed; the first shows the same")


@pytest.mark.parametrize(
    ("profile", "seed"),
    [
        pytest.param(LOGS, 1, id="logs"),
        pytest.param(LOGS, 2, id="logs again", marks=MORE),
        pytest.param(TRANSACTIONS, 1, id="transactions", marks=MORE),
        pytest.param(TRANSACTIONS, 3, id="transactions again", marks=MORE),
    ],
)
def test_a_broker_is_filled_and_another_drained_while_nodes_fail(
    profile: Profile, seed: int
) -> None:
    made: list[BalancedScenario] = []

    def scenario(world: World) -> BalancedScenario:
        made.append(BalancedScenario(world, profile))
        return made[-1]

    outcome = run_seed(seed, scenario=scenario)
    assert outcome.invariant is None, f"{outcome.invariant}: {outcome.detail}"
    assert outcome.faults["reassignment"] > 0
    balancer = made[-1].balancer
    assert balancer.filled > 0
    load = balancer._read()
    assert all(DRAINED not in each.replicas for each in load.partitions)
    assert all(len(set(each.replicas)) == 3 for each in load.partitions)
    assert plan(load, Constraints(drained=frozenset({DRAINED}))).reassignments == ()
    assert balancer.rounds >= sum(made[-1].profile.topics.values()) / MOVES_MAX


@pytest.mark.long("one seed, in which all are killed in the middle of a move")
def test_nothing_is_lost_while_a_partition_waits_for_its_last_leader() -> None:
    """The balancer does not come to its end before the scenario does."""
    outcome = run_seed(2, scenario=lambda world: BalancedScenario(world, TRANSACTIONS))
    assert outcome.invariant is None, f"{outcome.invariant}: {outcome.detail}"
