"""An application of Streams through one seed: its instances and the nodes fail in every way.

A seed draws one node or three, the protocol of the group, caches, standby replicas and intervals.
In the end all faults are over, all input is processed, and the outputs that committed readers see
must be those that a recomputation of the input gives (`application.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.sim.clients.producer import IdempotentProducer
from moldau.sim.cluster_scenario import ClusterScenario, Facts, Profile
from moldau.sim.faults import WEIGHTS, Power
from moldau.sim.replicated_scenario import ReplicatedScenario
from moldau.sim.streams.application import APPLICATION, INPUT, OVERALL, WITHIN, check_result
from moldau.sim.streams.supervisor import FATES, Plan, Supervisor
from moldau.sim.world import World

TOPICS = {INPUT: 2, WITHIN: 2, OVERALL: 2}
#: How often a seed has three nodes: such a run takes several times as long.
_REPLICATED = 0.3

Scenario = ClusterScenario


def streams_scenario(
    world: World,
    *,
    fates: Mapping[str, int] = FATES,
    faults: Mapping[str, int] = WEIGHTS,
    settings: Mapping[str, Any] | None = None,
    replicated: bool | None = None,
) -> Scenario:
    """Tests choose what happens to instances (`fates`) and to a single node (`faults`), and
    settings of the application."""
    random = world.random
    several = random.random() < _REPLICATED if replicated is None else replicated
    given = {**_drawn(world), **(settings or {}), "replication.factor": 3 if several else 1}

    def join(scenario: ClusterScenario) -> None:
        _join(scenario, given, fates)

    profile = Profile(
        f"streams ({given['group.protocol']})",
        dict(TOPICS),
        join,
        faults=dict(faults),
        derived=frozenset({WITHIN, OVERALL}),
    )
    scenario: Scenario
    if several:
        scenario = ReplicatedScenario(world, profile=profile, operator=False)
    else:
        # Without other replicas a reader may see what a power failure then takes.
        scenario = ClusterScenario(world, profile=profile, power=Power.ALWAYS_ON)
    scenario.cluster.expected += (
        # The nodes were away for longer than a client waits; the result is checked as ever.
        "stopped by an error",
    )
    return scenario


def _drawn(world: World) -> dict[str, Any]:
    choice = world.random.choice
    return {
        "application.id": APPLICATION,
        "processing.guarantee": "exactly_once_v2",
        "group.protocol": choice(("classic", "streams")),
        "num.standby.replicas": choice((0, 1)),
        "acceptable.recovery.lag": choice((0, 10_000)),
        "probing.rebalance.interval.ms": 60_000,
        "commit.interval.ms": choice((100, 400)),
        "statestore.cache.max.bytes": choice((0, 100_000)),
        "repartition.purge.interval.ms": choice((3_000, 30_000)),
        "session.timeout.ms": 6_000,
        "heartbeat.interval.ms": 1_000,
        "max.poll.interval.ms": 12_000,
        "request.timeout.ms": 5_000,
        "default.api.timeout.ms": 20_000,
        "metadata.max.age.ms": 10_000,
        "producer.delivery.timeout.ms": 15_000,
        "producer.max.block.ms": 15_000,
        "producer.transaction.timeout.ms": 8_000,
        "task.timeout.ms": 60_000,
    }


def _join(scenario: ClusterScenario, settings: Mapping[str, Any], fates: Mapping[str, int]) -> None:
    cluster, history = scenario.cluster, scenario.history
    inputs = [where for where in scenario.partitions if where[0] == INPUT]
    scenario.add(IdempotentProducer(cluster, history, "producer", inputs))
    plan = Plan(settings=settings, inputs=inputs, fates=fates)
    for number in range(2):
        scenario.add(Supervisor(cluster, history, f"app{number}", plan))

    async def final_check(facts: Facts) -> None:
        check_result(
            {where: facts.committed[where].values() for where in inputs},
            {
                topic: [
                    value
                    for where in scenario.partitions
                    if where[0] == topic
                    for value in facts.committed[where].values()
                ]
                for topic in (WITHIN, OVERALL)
            },
            every_update=not settings["statestore.cache.max.bytes"],
        )

    scenario.final_checks.append(final_check)
