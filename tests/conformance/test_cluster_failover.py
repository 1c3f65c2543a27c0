"""Three real nodes: a process that is gone is not waited for, and one that returns does not wait.

Sessions and fetch timeouts last five minutes here, longer than any wait of a test, so nothing but
the notice of a closed connection and a refused one can let these tests pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from support.cluster import COMBINED, SEPARATE, ClusterUnderTest, always_whole
from support.traffic import Traffic

FIVE_MINUTES_MS = "300000"
PATIENT = {
    "broker.session.timeout.ms": FIVE_MINUTES_MS,
    "broker.heartbeat.interval.ms": "2000",
    "controller.quorum.fetch.timeout.ms": FIVE_MINUTES_MS,
}

SHAPES = [
    pytest.param(COMBINED, id="combined"),
    pytest.param(SEPARATE, id="separate", marks=pytest.mark.long("also in test_cluster_roles")),
]


@pytest.fixture(scope="module", params=SHAPES)
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterUnderTest]:
    folder = tmp_path_factory.mktemp("failover")
    with ClusterUnderTest("moldau", folder, PATIENT, shape=request.param) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: ClusterUnderTest) -> Iterator[ClusterUnderTest]:
    with always_whole(shared) as cluster:
        yield cluster


def a_leader(cluster: ClusterUnderTest, topic: str) -> int:
    """Of partitions, but not of the quorum."""
    leaders = {state.leader for state in cluster.partitions(topic).values()}
    return min(leaders - {cluster.active_controller()})


def the_controller(cluster: ClusterUnderTest, topic: str) -> int:
    return cluster.active_controller()


VICTIMS: dict[str, Callable[[ClusterUnderTest, str], int]] = {
    "leader": a_leader,
    "controller": the_controller,
}


@pytest.mark.parametrize("who", VICTIMS)
def test_whatever_a_killed_node_led_is_led_by_others(cluster: ClusterUnderTest, who: str) -> None:
    with Traffic(cluster, f"gone-{who}") as traffic:
        victim = VICTIMS[who](cluster, traffic.topic)
        cluster.kill(victim)
        for _, index in cluster.partitions(traffic.topic):
            cluster.wait_for_leader(traffic.topic, index, not_in=[victim])
        assert cluster.active_controller() != victim
        traffic.wait_for_progress()
        cluster.start_node(victim)
        cluster.wait_until_whole()
        traffic.wait_for_progress()
        traffic.check()


def test_a_broker_that_stopped_in_order_is_back_at_once(cluster: ClusterUnderTest) -> None:
    node_id = next(each for each in cluster.brokers if each != cluster.active_controller())
    cluster.hand_over(node_id)
    cluster.start_node(node_id)
    cluster.wait_until_whole()


def test_a_broker_that_was_killed_and_started_again_is_back_at_once(
    cluster: ClusterUnderTest,
) -> None:
    node_id = next(each for each in cluster.brokers if each != cluster.active_controller())
    cluster.kill(node_id)
    cluster.start_node(node_id)
    cluster.wait_until_whole()


def test_a_whole_cluster_that_was_killed_is_back_at_once(cluster: ClusterUnderTest) -> None:
    """The new active controller has never heard from any of the processes that were killed."""
    cluster.kill(*cluster.nodes)
    cluster.start_node(*cluster.nodes)
    cluster.wait_until_whole()
