"""A network between three real processes that is cut, in both directions or in one.

What `Traffic.check` says holds, and the cluster comes together again by itself.
`--against-kafka` runs the same against Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.wire.errors import ErrorCode
from moldau.wire.records import encode_batch
from support import asking
from support.cluster import ClusterUnderTest, Shape, always_whole, cluster_for
from support.raw import RawConnection
from support.traffic import Traffic

NOT_NOW = {
    ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
}  # fmt: skip


# What goes through the proxy takes longer, on a busy machine much longer.
PATIENCE = {
    "broker.session.timeout.ms": "6000",
    "controller.quorum.fetch.timeout.ms": "4000",
    "controller.quorum.request.timeout.ms": "2000",
}


@pytest.fixture(scope="module")
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterUnderTest]:
    folder = tmp_path_factory.mktemp("cluster")
    with cluster_for(request, folder, PATIENCE, Shape(with_proxy=True)) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: ClusterUnderTest) -> Iterator[ClusterUnderTest]:
    with always_whole(shared) as cluster:
        yield cluster


def wait_until_others_go_on(cluster: ClusterUnderTest, alone: int, *topics: str) -> None:
    """The majority has fenced the node and leads without it."""
    far = cluster.others(alone)
    cluster.eventually(
        lambda: all(alone not in cluster.unfenced(node_id) for node_id in far),
        what=f"broker {alone} is fenced",
    )
    for topic in topics:
        cluster.eventually(
            lambda topic=topic: all(
                state.leader not in (-1, alone)
                for node_id in far
                for state in cluster.partitions(topic, node_id=node_id).values()
            ),
            what=f"{topic} is led by the majority",
        )


LEADER_TOO = pytest.mark.long("the controller leads partitions as well")


@pytest.mark.slow("a session expires while the node is cut off, under load")
@pytest.mark.parametrize("who", ["controller", pytest.param("leader", marks=LEADER_TOO)])
def test_a_node_is_cut_off_from_everybody(cluster: ClusterUnderTest, who: str) -> None:
    with Traffic(cluster, f"alone-{who}") as traffic:
        leader = cluster.leader(traffic.topic)
        alone = leader if who == "leader" else cluster.active_controller()
        cluster.isolate(alone, from_clients=True)
        wait_until_others_go_on(cluster, alone, traffic.topic, traffic.outcome)
        traffic.wait_for_progress()
        cluster.heal()
        cluster.wait_until_whole()
        traffic.wait_for_progress()
        traffic.check()


@pytest.mark.long("another way to be cut off")
@pytest.mark.parametrize("who", ["controller", pytest.param("leader", marks=LEADER_TOO)])
def test_clients_still_reach_a_node_that_no_other_reaches(
    cluster: ClusterUnderTest, who: str
) -> None:
    """It may not acknowledge what the others will never know of."""
    with Traffic(cluster, f"reached-{who}", protocol="consumer") as traffic:
        leader = cluster.leader(traffic.topic)
        alone = leader if who == "leader" else cluster.active_controller()
        index = next(
            at[1] for at, state in cluster.partitions(traffic.topic).items()
            if state.leader == alone
        )  # fmt: skip
        cluster.isolate(alone)
        with RawConnection(cluster.nodes[alone].port, timeout=60) as to:
            batch = encode_batch([(None, b"by the old leader", 1, ())])
            answer = asking.produce(to, traffic.topic, index, batch, timeout_ms=2_000)
            assert answer.error_code in NOT_NOW, answer
        wait_until_others_go_on(cluster, alone, traffic.topic, traffic.outcome)
        cluster.heal()
        cluster.wait_until_whole()
        traffic.wait_for_progress()
        traffic.check()


@pytest.mark.slow("a session expires and a leader of the quorum is elected, under load")
@pytest.mark.parametrize(
    "incoming",
    [
        pytest.param(False, id="unheard"),
        pytest.param(True, id="deaf", marks=pytest.mark.long("the other direction")),
    ],
)
def test_the_network_is_cut_in_one_direction(cluster: ClusterUnderTest, incoming: bool) -> None:
    with Traffic(cluster, "deaf" if incoming else "unheard") as traffic:
        alone = cluster.active_controller()
        cluster.silence(alone, incoming=incoming)
        wait_until_others_go_on(cluster, alone, traffic.topic, traffic.outcome)
        cluster.heal()
        cluster.wait_until_whole()
        traffic.wait_for_progress()
        traffic.check()


@pytest.mark.long("another way to be cut off")
def test_two_nodes_do_not_see_each_other(cluster: ClusterUnderTest) -> None:
    """The third sees both: nobody is fenced for good, and all comes on."""
    with Traffic(cluster, "two") as traffic:
        assert cluster.proxy is not None
        active = cluster.active_controller()
        first, second = cluster.others(active)
        cluster.proxy.block({(first, second), (second, first)})
        # Leaders of the two drop the other from their in-sync replicas.
        cluster.eventually(
            lambda: all(
                {first, second} - set(state.isr)
                for state in cluster.partitions(traffic.topic).values()
                if state.leader != active
            ),
            what="the two have left each other's in-sync replicas",
        )
        # A transaction waits where its coordinator does not reach a leader; nobody else does.
        traffic.wait_for_progress(transactions=0)
        cluster.heal()
        cluster.wait_until_whole()
        traffic.wait_for_progress()
        traffic.check()
