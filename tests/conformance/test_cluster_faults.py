"""Three real processes that are killed, stopped, paused and cut off under clients at work.

Nothing acknowledged is lost, nothing comes twice, order is kept, and no client is started again:
`Traffic.check` says so after each. `--against-kafka` runs the same against Apache Kafka.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from support.cluster import ClusterUnderTest, always_whole, cluster_for
from support.traffic import Traffic


@pytest.fixture(scope="module")
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterUnderTest]:
    with cluster_for(request, tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: ClusterUnderTest) -> Iterator[ClusterUnderTest]:
    with always_whole(shared) as cluster:
        yield cluster


def a_leader(traffic: Traffic) -> int:
    return traffic.cluster.leader(traffic.topic)


def the_controller(traffic: Traffic) -> int:
    return traffic.cluster.active_controller()


def the_group_coordinator(traffic: Traffic) -> int:
    return traffic.cluster.coordinator(traffic.group)


KILLS = 5

VICTIMS: dict[str, Callable[[Traffic], int]] = {
    "leader": a_leader,
    "controller": the_controller,
    "coordinator": the_group_coordinator,
}


def wait_until_replaced(traffic: Traffic, victim: int) -> None:
    """Another leads whatever the node led, and clients come on without it."""
    cluster = traffic.cluster
    cluster.wait_until_fenced(victim)
    for _, index in cluster.partitions(traffic.topic):
        cluster.wait_for_leader(traffic.topic, index, not_in=[victim])
    assert cluster.active_controller() != victim
    traffic.wait_for_progress()


@pytest.mark.parametrize(
    "who",
    [
        "leader",
        pytest.param("controller", marks=pytest.mark.long("test_cluster_failover kills it")),
        pytest.param("coordinator", marks=pytest.mark.long("leaders of other topics die as well")),
    ],
)
def test_a_node_is_killed_and_returns(cluster: ClusterUnderTest, who: str) -> None:
    with Traffic(cluster, f"killed-{who}") as traffic:
        victim = VICTIMS[who](traffic)
        cluster.kill(victim)
        wait_until_replaced(traffic, victim)
        cluster.start_node(victim)
        cluster.wait_until_whole()
        traffic.wait_for_progress()
        traffic.check()


@pytest.mark.parametrize(
    "who",
    [
        "controller",
        pytest.param("leader", marks=pytest.mark.long("the controller leads partitions as well")),
    ],
)
def test_a_node_sleeps_for_longer_than_its_session(cluster: ClusterUnderTest, who: str) -> None:
    """It wakes up believing that it still leads: nobody may believe it."""
    with Traffic(cluster, f"asleep-{who}", protocol="consumer") as traffic:
        victim = VICTIMS[who](traffic)
        cluster.nodes[victim].pause()
        wait_until_replaced(traffic, victim)
        cluster.nodes[victim].resume()
        cluster.wait_until_whole()
        traffic.wait_for_progress()
        traffic.check()


@pytest.mark.long("another victim")
def test_a_follower_is_killed_and_nobody_notices(cluster: ClusterUnderTest) -> None:
    """It leads nothing that clients use: they see no error but a lost connection."""
    follower = next(each for each in cluster.brokers if each != cluster.active_controller())
    first, second = cluster.others(follower)
    # Its partitions are led by the others, and stay with them.
    assignment = [[first, second, follower], [second, first, follower]] * 2
    with Traffic(cluster, "follower", assignment=assignment) as traffic:
        leaders = {at: state.leader for at, state in cluster.partitions(traffic.topic).items()}
        cluster.kill(follower)
        cluster.wait_until_fenced(follower)
        traffic.wait_for_progress()
        cluster.start_node(follower)
        cluster.wait_until_whole()
        traffic.wait_for_progress()
        now = {at: state.leader for at, state in cluster.partitions(traffic.topic).items()}
        assert now == leaders
        traffic.check()


def test_all_nodes_are_killed_at_once(cluster: ClusterUnderTest) -> None:
    with Traffic(cluster, "all-killed") as traffic:
        cluster.kill(*cluster.nodes)
        cluster.start_node(*cluster.nodes)
        cluster.wait_until_whole()
        traffic.wait_for_progress()
        traffic.check()


@pytest.mark.long("several kills in a row; the tests above are about one")
def test_node_after_node_is_killed_at_any_time(cluster: ClusterUnderTest) -> None:
    """The next dies when the last is in sync again, whatever it has become meanwhile."""
    chance = random.Random(4_004)
    with Traffic(cluster, "storm") as traffic:
        for _ in range(KILLS):
            victim = chance.choice(list(cluster.nodes))
            cluster.kill(victim)
            # Some return before they are missed.
            if chance.random() < 0.5:
                cluster.wait_until_fenced(victim)
            cluster.start_node(victim)
            cluster.wait_until_whole(traffic.topic, traffic.outcome, "__consumer_offsets",
                                     "__transaction_state")  # fmt: skip
            traffic.wait_for_progress(count=20, transactions=1)
        traffic.check()


def test_a_rolling_restart(cluster: ClusterUnderTest) -> None:
    """As an operator does it: stopped, started, and the next when all is in sync."""
    with Traffic(cluster, "rolling") as traffic:
        for node_id in list(cluster.nodes):
            cluster.hand_over(node_id)
            traffic.wait_for_progress(count=30, transactions=1)
            cluster.start_node(node_id)
            cluster.wait_until_whole()
            traffic.wait_for_progress(count=30, transactions=1)
        traffic.check()
