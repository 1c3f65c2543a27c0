"""Balancing again and again: each round is within its bounds, and rounds come to an end."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.balance.machine.continuous import Bounds, Chosen, Rounds
from moldau.balance.machine.model import Broker, Cluster, Constraints, Partition, Plan
from moldau.balance.machine.placement import Placement
from moldau.balance.machine.planner import TOLERANCE, plan
from moldau.balance.machine.traffic import broker_cpu, shared_cpu

CPU = "process_cpu_seconds_total"
NOBODY = Constraints()


def lopsided(brokers: int, partitions: int, factor: int, seed: int) -> Cluster:
    """Most replicas are on the first brokers."""
    draw = random.Random(seed)
    listed = []
    for number in range(partitions):
        replicas: list[int] = []
        while len(replicas) < factor:
            broker = int(brokers * draw.random() ** 2)
            if broker not in replicas:
                replicas.append(broker)
        listed.append(Partition("t", number, tuple(replicas), disk=draw.choice((1.0, 2.0, 5.0))))
    return Cluster([Broker(each) for each in range(brokers)], listed)


def after(cluster: Cluster, chosen: Chosen | Plan) -> Cluster:
    places = {(each.topic, each.partition): each.after for each in chosen.reassignments}
    return Cluster(
        cluster.brokers,
        [
            replace(each, replicas=places.get((each.topic, each.number), each.replicas))
            for each in cluster.partitions
        ],
    )


def cost(cluster: Cluster, constraints: Constraints = NOBODY) -> float:
    return Placement(cluster, constraints, TOLERANCE).total_cost


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    brokers=st.integers(3, 6),
    partitions=st.integers(2, 24),
    factor=st.integers(1, 3),
    moves_max=st.sampled_from((2, 3, 6)),
    bytes_max=st.sampled_from((None, 6.0, 20.0)),
    seed=st.integers(0, 1000),
)
def test_rounds_are_bounded_and_end_where_one_plan_does(
    brokers: int, partitions: int, factor: int, moves_max: int, bytes_max: float | None, seed: int
) -> None:
    cluster = lopsided(brokers, partitions, factor, seed)
    whole = plan(cluster)
    rounds = Rounds(Bounds(moves_max, bytes_max, cool_down_s=0.0))
    for number in range(100):
        planned = plan(cluster)
        chosen = rounds.choose(cluster, planned, float(number), tolerance=TOLERANCE)
        assert len(chosen.reassignments) <= moves_max
        assert bytes_max is None or chosen.bytes_moved <= bytes_max
        if not chosen.reassignments:
            break
        before, cluster = cost(cluster), after(cluster, chosen)
        assert cost(cluster) < before
        rounds.moved(chosen.reassignments, float(number))
    else:
        raise AssertionError("the rounds do not end")
    if bytes_max is None:
        # What is left is a swap that needs more changes at once than a round may have.
        assert len(plan(cluster).reassignments) > moves_max or not plan(cluster).reassignments
    assert cost(cluster) <= cost(lopsided(brokers, partitions, factor, seed)) + 1e-9
    assert bool(whole.reassignments) or cluster == lopsided(brokers, partitions, factor, seed)


def test_a_partition_that_moved_stays_for_a_while() -> None:
    cluster = lopsided(3, 12, 1, seed=1)
    rounds = Rounds(Bounds(moves_max=20, cool_down_s=100.0))
    planned = plan(cluster)
    chosen = rounds.choose(cluster, planned, 0.0, tolerance=TOLERANCE)
    assert chosen.reassignments
    rounds.moved(chosen.reassignments, 0.0)
    again = rounds.choose(cluster, planned, 99.0, tolerance=TOLERANCE)
    assert (again.reassignments, again.cooling) == ((), len(planned.reassignments))
    later = rounds.choose(cluster, planned, 100.0, tolerance=TOLERANCE)
    assert later.reassignments == chosen.reassignments


def test_a_drained_broker_is_left_even_by_what_moved_just_now() -> None:
    cluster = lopsided(4, 12, 2, seed=3)
    drained = Constraints(drained=frozenset({0}))
    rounds = Rounds(Bounds(moves_max=3, cool_down_s=1e9))
    rounds.moved(plan(cluster, drained).reassignments, 0.0)
    for number in range(20):
        planned = plan(cluster, drained)
        chosen = rounds.choose(
            cluster, planned, float(number), constraints=drained, tolerance=TOLERANCE
        )
        if not chosen.reassignments:
            break
        assert len(chosen.reassignments) <= 3
        cluster = after(cluster, chosen)
    assert all(0 not in each.replicas for each in cluster.partitions)


def test_what_is_larger_than_a_round_is_said() -> None:
    cluster = Cluster(
        [Broker(1), Broker(2)], [Partition("t", each, (1,), disk=100.0) for each in range(4)]
    )
    chosen = Rounds(Bounds(bytes_max=99.0)).choose(cluster, plan(cluster), 0.0, tolerance=TOLERANCE)
    assert chosen.reassignments == ()
    assert chosen.too_large == 2


def test_cpu_is_what_was_used_in_between() -> None:
    before = [[(CPU, "", 10.0), ("other", "", 5.0)], [(CPU, "", 100.0)]]
    # The second broker has started again.
    later = [[(CPU, "", 13.0), ("other", "", 50.0)], [(CPU, "", 1.0)]]
    assert broker_cpu([1, 2], before, later, 2.0) == {1: 1.5, 2: 0.5}
    assert broker_cpu([None, None], before, later, 2.0) == {None: 2.0}


@pytest.mark.parametrize(
    ("cpu", "shares"),
    [
        pytest.param({1: 3.0, 2: 1.0}, [2.0, 1.0, 1.0], id="by broker"),
        pytest.param({None: 4.0}, [2.0, 1.0, 1.0], id="of all"),
        pytest.param({1: 0.05, 2: 0.01}, [0.0, 0.0, 0.0], id="idle brokers"),
    ],
)
def test_cpu_is_divided_by_the_bytes_of_leaders(
    cpu: dict[int | None, float], shares: list[float]
) -> None:
    listed = [
        Partition("t", 0, (1, 2), bytes_in=10.0),
        Partition("t", 1, (1,), bytes_in=5.0, bytes_out=5.0),
        Partition("t", 2, (2,), bytes_in=4.0, bytes_out=6.0),
    ]
    assert [each.cpu for each in shared_cpu(listed, cpu)] == pytest.approx(shares)


def test_a_busy_leader_gives_leadership_away() -> None:
    """Disks are even; only CPU is not."""
    listed = [Partition("t", each, (1, 2), disk=1.0, bytes_in=1.0) for each in range(4)]
    cluster = Cluster([Broker(1), Broker(2)], shared_cpu(listed, {1: 4.0, 2: 0.1}))
    planned = plan(cluster)
    assert planned.bytes_moved == 0
    assert [each.after for each in planned.reassignments] == [(2, 1), (2, 1)]


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    brokers=st.integers(4, 7),
    partitions=st.integers(2, 24),
    factor=st.integers(1, 3),
    moves_max=st.sampled_from((2, 3, 6)),
    seed=st.integers(0, 1000),
)
def test_rounds_drain_a_broker_and_balance_the_others(
    brokers: int, partitions: int, factor: int, moves_max: int, seed: int
) -> None:
    cluster = lopsided(brokers, partitions, factor, seed)
    limits = Constraints(drained=frozenset({0}), others_too=True)
    rounds = Rounds(Bounds(moves_max, cool_down_s=0.0))
    is_drained = False
    for number in range(100):
        planned = plan(cluster, limits)
        assert not any(0 in each.after for each in planned.reassignments)
        chosen = rounds.choose(
            cluster, planned, float(number), constraints=limits, tolerance=TOLERANCE
        )
        assert len(chosen.reassignments) <= moves_max
        if not chosen.reassignments:
            break
        before, cluster = cost(cluster, limits), after(cluster, chosen)
        if is_drained:
            assert cost(cluster, limits) < before, "moves beyond the drain are for evenness"
        is_drained = all(0 not in each.replicas for each in cluster.partitions)
        rounds.moved(chosen.reassignments, float(number))
    else:
        raise AssertionError("the rounds do not end")
    assert all(0 not in each.replicas for each in cluster.partitions)
    assert all(len(set(each.replicas)) == factor for each in cluster.partitions)
    left = plan(cluster, limits).reassignments
    assert len(left) > moves_max or not left


def test_draining_with_the_others_gives_them_an_even_load() -> None:
    """Without `others_too` nothing but the drained broker's replicas moves."""
    listed = [Partition("t", each, (1,), disk=1.0) for each in range(12)]
    listed += [Partition("u", 0, (4,), disk=1.0)]
    cluster = Cluster([Broker(each) for each in (1, 2, 3, 4)], listed)
    alone = plan(cluster, Constraints(drained=frozenset({4})))
    assert [each.topic for each in alone.reassignments] == ["u"]
    both = after(cluster, plan(cluster, Constraints(drained=frozenset({4}), others_too=True)))
    counts = [sum(broker in each.replicas for each in both.partitions) for broker in (1, 2, 3, 4)]
    assert sorted(counts) == [0, 4, 4, 5]
    assert counts[3] == 0


def test_replicas_that_share_a_rack_are_spread_while_another_broker_is_drained() -> None:
    brokers = [Broker(1, "a"), Broker(2, "a"), Broker(3, "b"), Broker(4, "b", alive=False)]
    cluster = Cluster(
        brokers, [Partition("t", 0, (1, 2), disk=1.0), Partition("t", 1, (1, 4), disk=1.0)]
    )
    limits = Constraints(drained=frozenset({4}), others_too=True)
    result = after(cluster, plan(cluster, limits))
    assert [sorted(each.replicas)[-1] for each in result.partitions] == [3, 3]
