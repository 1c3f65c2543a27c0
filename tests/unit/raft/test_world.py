"""What a quorum promises holds on bad networks and disks, and the checks see when it does not."""

from __future__ import annotations

import pytest

from moldau.invariant import InvariantError
from moldau.sim.world import Invariant, Violation
from support.raft_world import Faults, World

SEEDS = range(10)
SEEDS_MAX = 200


def disturb(world: World, *, rounds: int = 12) -> None:
    """Some time of bad luck: losses, cuts, crashes, snapshots, proposals."""
    rng = world.rng
    nodes = list(world.nodes)
    for _ in range(rounds):
        world.loss = rng.choice([0.0, 0.0, 0.05, 0.3])
        world.doubling = rng.choice([0.0, 0.2])
        world.delay_ms_max = rng.choice([5, 30, 400])
        world.cut = {
            (a, b) for a in nodes for b in nodes if a != b and rng.random() < rng.choice([0, 0.3])
        }
        for node_id in nodes:
            if rng.random() < 0.25:
                world.crash(node_id)
            if world.nodes[node_id].machine is None and rng.random() < 0.6:
                world.start(node_id)
            if rng.random() < 0.1:
                world.take_snapshot(node_id)
        if world.dynamic and rng.random() < 0.5:
            world.change_voters(rng.choice(nodes))
        for _ in range(rng.randint(0, 12)):
            world.at(rng.randint(0, 3000), world.propose)
        world.run(rng.randint(200, 4000))


def storm(world: World, *, rounds: int = 80) -> None:
    """Leaders that fall as soon as they stand, while entries go out one by one."""
    rng = world.rng
    nodes = list(world.nodes)
    world.batch_max = 1
    world.falls_after_vote = 0.3
    for _ in range(rounds):
        world.delay_ms_max = rng.choice([5, 100, 300])
        apart = rng.sample(nodes, rng.randint(0, len(nodes) // 2 + 1))
        world.cut = {(a, b) for a in nodes for b in nodes if (a in apart) != (b in apart)}
        if rng.random() < 0.5:
            # Two that do not hear of each other stand at the same time.
            one, other = rng.sample(nodes, 2)
            world.cut = {(one, other), (other, one)}
        leader = world.leader()
        if leader is not None and rng.random() < 0.4:
            world.crash(leader.key.id)
        fallen = rng.choice(nodes)
        if rng.random() < 0.3:
            world.crash(fallen)
        for node_id in nodes:
            if world.nodes[node_id].machine is None and rng.random() < 0.7:
                world.start(node_id)
        for _ in range(rng.randint(0, 6)):
            world.at(rng.randint(0, 400), world.propose)
        world.run(rng.choice([30, 200, 1500]))


def heal(world: World) -> None:
    world.loss = world.doubling = world.falls_after_vote = 0.0
    world.batch_max = 5
    world.cut = set()
    world.delay_ms_max = 5
    for node_id, node in world.nodes.items():
        if node.machine is None:
            world.start(node_id)


def check_alive(world: World) -> None:
    """With everything well again the quorum leads, commits, and everybody follows."""
    heal(world)
    world.run(15_000)
    leader = world.leader()
    if leader is None or leader.machine is None:
        raise Violation(Invariant.SETTLES, "nobody leads")
    before = leader.machine.high_watermark
    for _ in range(40):
        world.propose()
    world.run(5_000)
    if leader.machine is None or leader.machine.high_watermark <= before:
        raise Violation(Invariant.SETTLES, "nothing is committed any more")
    for node in world.nodes.values():
        if node.machine is None or node.machine.high_watermark < leader.machine.high_watermark:
            raise Violation(Invariant.SETTLES, f"node {node.key.id} does not follow")


def change(world: World) -> None:
    """Every node is asked to join if it has no vote, and to leave if it has one."""
    for node_id in world.nodes:
        world.change_voters(node_id)
        world.run(3_000)
    check_alive(world)


@pytest.mark.parametrize(
    ("voters", "observers", "dynamic"),
    [(3, 0, False), (5, 1, False), (3, 2, True), (1, 2, True)],
    ids=["three", "five and an observer", "dynamic", "grown from one"],
)
def test_promises_hold(voters: int, observers: int, dynamic: bool) -> None:
    commits = changes = 0
    for seed in SEEDS:
        for trouble in (disturb, storm):
            world = World(seed, voters=voters, observers=observers, dynamic=dynamic)
            try:
                trouble(world)
                check_alive(world)
                if dynamic:
                    change(world)
            except (Violation, InvariantError) as error:
                pytest.fail(f"{trouble.__name__}, seed {seed}: {error}")
            commits += world.commit_count
            changes += world.changes_done
    assert commits > 10 * len(SEEDS)
    assert not dynamic or changes > len(SEEDS)


@pytest.mark.parametrize(
    ("faults", "found_as"),
    [
        (Faults(forget_vote=True), {Invariant.QUORUM_LEADER_ONE}),
        (Faults(lose_vote_file=True), {Invariant.QUORUM_VOTE_KEPT}),
        (Faults(commit_older_epoch=True), {Invariant.QUORUM_OWN_EPOCH}),
        (Faults(acknowledge_before_sync=True), {Invariant.METADATA_SURVIVES}),
        (
            Faults(keep_diverging=True),
            {Invariant.METADATA_SURVIVES, Invariant.QUORUM_COMMIT_AGREES},
        ),
    ],
    ids=["forget vote", "lose vote file", "older epoch", "before the fsync", "keep diverging"],
)
def test_planted_faults_are_found(faults: Faults, found_as: set[Invariant]) -> None:
    for seed in range(SEEDS_MAX):
        violation = violation_in(World(seed, voters=3, faults=faults))
        if violation is not None:
            assert violation.invariant in found_as, violation
            return
    pytest.fail(f"not found within {SEEDS_MAX} seeds: {faults}")


def violation_in(world: World) -> Violation | None:
    try:
        storm(world)
        check_alive(world)
    except Violation as violation:
        return violation
    return None
