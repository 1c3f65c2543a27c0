"""The planner: what every plan keeps, and how close it comes to the best plan there is."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.balance.machine.model import (
    Broker,
    Cluster,
    Constraints,
    Impossible,
    Partition,
    Resource,
)
from moldau.balance.machine.planner import TOLERANCE, plan
from support.balance import EVEN, carried_out, exact, loads, made, outside, shared_racks
from support.repeats import mostly_long


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    brokers=st.integers(3, 7),
    partitions=st.integers(1, 24),
    factor=st.integers(1, 3),
    racks=st.sampled_from((0, 2, 3)),
    seed=st.integers(0, 1000),
)
def test_every_plan_keeps_replicas_and_racks(
    brokers: int, partitions: int, factor: int, racks: int, seed: int
) -> None:
    cluster = made(brokers, partitions, factor, seed, racks=racks)
    planned = plan(cluster)
    result = carried_out(cluster, planned)
    for partition in result.partitions:
        assert len(partition.replicas) == len(set(partition.replicas)) == factor
    assert shared_racks(result) == 0
    for broker, expected in loads(result).items():
        assert planned.after[broker] == pytest.approx(expected, abs=1e-3)
    turned = Cluster(cluster.brokers[::-1], cluster.partitions[::-1])
    assert plan(turned) == planned, "the same cluster gives the same plan, in whatever order"
    assert plan(result).reassignments == (), "after its plan a cluster is as good as it gets"


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    brokers=st.integers(4, 9),
    partitions=st.integers(1, 40),
    factor=st.integers(1, 3),
    racks=st.sampled_from((0, 3)),
    seed=st.integers(0, 1000),
)
def test_drained_broker_is_empty_and_nothing_else_moves(
    brokers: int, partitions: int, factor: int, racks: int, seed: int
) -> None:
    cluster = made(brokers, partitions, factor, seed, racks=racks)
    planned = plan(cluster, Constraints(drained=frozenset({0})))
    for each in planned.reassignments:
        assert 0 in each.before
        assert 0 not in each.after
        assert set(each.before) - {0} <= set(each.after)
        assert len(each.adding) == 1
        assert each.reason == "broker 0 is drained"
    result = carried_out(cluster, planned)
    assert loads(result)[0] == [0.0] * len(Resource)
    assert plan(result, Constraints(drained=frozenset({0}))).reassignments == ()


@pytest.mark.parametrize("seed", range(5))
def test_added_broker_alone_receives(seed: int) -> None:
    cluster = made(6, 120, 2, seed, skew=1.0)
    cluster = Cluster([*cluster.brokers, Broker(6)], cluster.partitions)
    constraints = Constraints(added=frozenset({6}))
    planned = plan(cluster, constraints)
    assert planned.reassignments
    assert {new for each in planned.reassignments for new in each.adding} == {6}
    result = carried_out(cluster, planned)
    total = sum(load[Resource.DISK] for load in loads(result).values())
    assert loads(result)[6][Resource.DISK] >= total / 7 * (1 - TOLERANCE) * 0.99
    assert plan(result, constraints).reassignments == ()


def test_replicas_that_share_a_rack_are_spread() -> None:
    brokers = [Broker(1, "a"), Broker(2, "a"), Broker(3, "b"), Broker(4, "b")]
    planned = plan(Cluster(brokers, [Partition("t", 0, (1, 2), 10.0)]))
    (only,) = planned.reassignments
    assert only.before == (1, 2)
    assert only.after[0] == 1, "the leader stays"
    assert only.after[1] in (3, 4)
    assert only.reason == "replicas share a rack"


def test_with_fewer_racks_than_replicas_they_are_as_even_as_racks_allow() -> None:
    brokers = [Broker(1, "a"), Broker(2, "a"), Broker(3, "a"), Broker(4, "b")]
    planned = plan(Cluster(brokers, [Partition("t", 0, (1, 2, 3), 10.0)]))
    assert len(planned.reassignments) == 1
    assert 4 in planned.reassignments[0].after


def test_capacity_comes_before_evenness() -> None:
    limited = {Resource.DISK: 50.0}
    brokers = [Broker(1, capacity=limited), Broker(2), Broker(3)]
    listed = [Partition("t", each, (1,), 20.0) for each in range(9)]
    result = carried_out(
        Cluster(brokers, listed), planned := plan(Cluster(brokers, listed), tolerance=0.1)
    )
    assert loads(result)[1][Resource.DISK] <= 50.0
    assert not any("capacity" in each for each in planned.unmet)


def test_shares_follow_capacities() -> None:
    brokers = [
        Broker(1, capacity={Resource.DISK: 100.0}), Broker(2, capacity={Resource.DISK: 300.0})
    ]  # fmt: skip
    listed = [Partition("t", each, (1 + each % 2,), 1.0) for each in range(80)]
    cluster = Cluster(brokers, [*listed])
    after = loads(carried_out(cluster, plan(cluster)))
    # Equal counts pull the other way: disk is between its own even share and that of replicas.
    assert after[1][Resource.DISK] < after[2][Resource.DISK]


def test_leaders_are_spread_without_copies() -> None:
    listed = [Partition("t", each, (1, 2, 3), 5.0) for each in range(9)]
    planned = plan(Cluster([Broker(1), Broker(2), Broker(3)], listed))
    assert planned.bytes_moved == 0
    assert [planned.after[each][Resource.LEADERS] for each in (1, 2, 3)] == [3, 3, 3]


def test_two_leaders_with_little_traffic_are_traded_for_one_with_more() -> None:
    """Traffic is even and counts more than leaders, so no single step helps."""
    large = [Partition("large", each, (1, 2), 1.0, bytes_out=2.0) for each in range(20)]
    small = [Partition("small", each, (2, 1), 1.0, bytes_out=1.0) for each in range(40)]
    planned = plan(Cluster([Broker(1), Broker(2)], [*large, *small]))
    assert planned.bytes_moved == 0
    assert planned.unmet == ()
    for broker in (1, 2):
        assert 27 <= planned.after[broker][Resource.LEADERS] <= 33
        assert planned.after[broker][Resource.NETWORK_OUT] == pytest.approx(40.0, rel=0.1)


def test_replicas_of_brokers_that_are_down_stay() -> None:
    brokers = [Broker(1), Broker(2), Broker(3, alive=False)]
    listed = [Partition("t", each, (3,), 5.0) for each in range(4)]
    assert plan(Cluster(brokers, listed)).reassignments == ()
    drained = plan(Cluster(brokers, listed), Constraints(drained=frozenset({3})))
    assert len(drained.reassignments) == 4


def test_partitions_without_a_leader_stay() -> None:
    listed = [Partition("t", each, (1,), 5.0, fixed=True) for each in range(4)]
    assert plan(Cluster([Broker(1), Broker(2)], listed)).reassignments == ()


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        (Constraints(drained=frozenset({7})), "no broker 7 is in the cluster"),
        (Constraints(added=frozenset({3})), "broker 3 is not up"),
        (Constraints(drained=frozenset({1})), "t-0 has 2 replicas, and no other broker is left"),
        (Constraints(drained=frozenset({1, 2})), "no broker is left"),
    ],
)
def test_what_cannot_be_done_is_refused(constraints: Constraints, words: str) -> None:
    cluster = Cluster(
        [Broker(1), Broker(2), Broker(3, alive=False)], [Partition("t", 0, (1, 2), 1.0)]
    )
    with pytest.raises(Impossible, match=words):
        plan(cluster, constraints)


def test_time_at_a_throttle_is_that_of_the_busiest_broker() -> None:
    listed = [Partition("t", each, (1,), 100.0) for each in range(4)]
    planned = plan(Cluster([Broker(1), Broker(2)], listed))
    assert planned.bytes_moved == 200.0
    assert planned.seconds_at(50.0) == 4.0


@pytest.mark.parametrize("shape", [(2, 7, 1), (3, 6, 1), (3, 4, 2), (2, 6, 2)])
@pytest.mark.parametrize("seed", mostly_long(range(8), "more seeds", keep=3))
def test_plans_are_close_to_the_best_there_is(shape: tuple[int, int, int], seed: int) -> None:
    cluster = made(*shape, seed)
    planned = plan(cluster)
    off_least, bytes_least = exact(cluster)
    assert outside(carried_out(cluster, planned)) <= off_least + 1e-6
    assert planned.bytes_moved <= bytes_least * 1.3 + 1e-6


def test_a_hundred_brokers_are_even_with_bounded_work() -> None:
    cluster = made(100, 10_000, 3, seed=1, racks=0, skew=1.2)
    planned = plan(cluster)
    after = planned.after.values()
    for resource in EVEN:
        even = sum(load[resource] for load in after) / len(after)
        assert max(load[resource] for load in after) <= even * 1.101
        assert min(load[resource] for load in after) >= even * 0.899
    total = sum(load[Resource.DISK] for load in after)
    surplus = sum(
        max(0.0, load[Resource.DISK] - total / 100 * 1.1) for load in planned.before.values()
    )
    assert planned.bytes_moved <= surplus * 1.3, "what is above the band has to move anyhow"
    assert planned.steps < 1_500_000
    assert plan(carried_out(cluster, planned)).reassignments == ()
