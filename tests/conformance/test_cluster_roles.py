"""Controllers in processes of their own: brokers serve on while they are killed and restarted.

`--against-kafka` runs the same against Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.cluster import SEPARATE, ClusterUnderTest, always_whole, cluster_for
from support.traffic import Traffic


@pytest.fixture(scope="module")
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterUnderTest]:
    folder = tmp_path_factory.mktemp("cluster")
    with cluster_for(request, folder, shape=SEPARATE) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: ClusterUnderTest) -> Iterator[ClusterUnderTest]:
    with always_whole(shared) as cluster:
        yield cluster


def test_the_controller_and_a_leader_die_at_once(cluster: ClusterUnderTest) -> None:
    """The one that would replace the leader has to be replaced first."""
    with Traffic(cluster, "both") as traffic:
        active, leader = cluster.active_controller(), cluster.leader(traffic.topic)
        cluster.kill(active, leader)
        cluster.wait_for_leader(traffic.topic, not_in=[leader])
        assert cluster.active_controller() != active
        cluster.wait_until_fenced(leader)
        traffic.wait_for_progress()
        cluster.start_node(active, leader)
        cluster.wait_until_whole()
        traffic.check()


def leaders_of(cluster: ClusterUnderTest, topic: str) -> dict[object, tuple[int, int]]:
    states = cluster.partitions(topic).items()
    return {at: (state.leader, state.leader_epoch) for at, state in states}


@pytest.mark.long("restarts controllers in turn; one that dies is shown above")
def test_controllers_are_restarted_one_after_the_other(cluster: ClusterUnderTest) -> None:
    """Nobody is fenced by it, and no partition changes its leader."""
    with Traffic(cluster, "restarted", protocol="consumer") as traffic:
        before = leaders_of(cluster, traffic.topic)
        for node_id in cluster.controllers:
            cluster.stop(node_id)
            traffic.wait_for_progress(count=30, transactions=1)
            cluster.start_node(node_id)
            cluster.eventually(
                lambda: (quorum := cluster.quorum()) is not None and len({
                    each.log_end_offset for each in quorum.current_voters
                }) == 1,
                what="all controllers have what the leader has",
            )  # fmt: skip
        assert leaders_of(cluster, traffic.topic) == before
        cluster.create_topic("afterwards", 3)
        traffic.check()
