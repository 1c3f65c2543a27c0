"""A console of several clusters, one of them with three nodes: replicas are moved and brokers
emptied."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.client import Admin, NewTopic, Producer
from support.cluster import ClusterUnderTest, cluster_for
from support.console import Console, Tab, console_of
from support.processes import BrokerProcess
from support.waiting import eventually

#: Two replicas at most: a broker of three can be emptied.
SETTINGS = {"default.replication.factor": "2", "min.insync.replicas": "1"}


@pytest.fixture(scope="module")
def nodes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterUnderTest]:
    with cluster_for(request, tmp_path_factory.mktemp("cluster"), SETTINGS) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def console(broker: BrokerProcess, nodes: ClusterUnderTest) -> Iterator[Console]:
    """`default` has one node, `three` has three."""
    more = {"clusters": "three", "cluster_three_bootstrap_servers": nodes.bootstrap}
    with console_of(broker.bootstrap, **more) as found:
        yield found


@pytest.fixture(scope="module")
def three(console: Console) -> Console:
    return Console(console.service, "three")


def test_each_cluster_has_its_own_topics(tab: Tab, console: Console, three: Console) -> None:
    console.ask("POST", "/topics", {"name": "here"})
    three.ask("POST", "/topics", {"name": "there", "replication_factor": 2})

    def names(of: Console) -> set[str]:
        return {each["name"] for each in of.ask("GET", "/topics")["data"]} & {"here", "there"}

    eventually(lambda: names(console) == {"here"}, what="the topic of one cluster")
    eventually(lambda: names(three) == {"there"}, what="the topic of the other")
    page = tab.page
    page.goto(three.page("/topics"), wait_until="domcontentloaded")
    page.get_by_role("link", name="there").wait_for()
    assert page.get_by_role("link", name="here", exact=True).count() == 0
    page.goto(three.page("/brokers"), wait_until="domcontentloaded")
    for number in (1, 2, 3):
        page.get_by_role("row", name=f"127.0.0.1:{_port(three, number)}").wait_for()
    page.get_by_label("Cluster", exact=True).select_option("default")
    page.get_by_role("heading", name="default").wait_for()
    clusters = page.get_by_role("region", name="Configured clusters")
    clusters.get_by_text("reachable").nth(1).wait_for()


def _port(console: Console, broker: int) -> int:
    (found,) = [each for each in console.ask("GET", "/brokers")["data"] if each["id"] == broker]
    return int(found["port"])


def test_replicas_are_moved(tab: Tab, three: Console, nodes: ClusterUnderTest) -> None:
    with Admin({"bootstrap.servers": nodes.bootstrap}) as admin:
        admin.create_topics([NewTopic("moved", replicas_assignments={0: [1, 2]})])
        three.ask(
            "PUT", "/topics/moved/replicas", {"partitions": [{"partition": 0, "replicas": [3, 2]}]}
        )

        def placed() -> tuple[list[int], set[int]]:
            (partition,) = three.ask("GET", "/topics/moved")["partitions"]
            return partition["replicas"], set(partition["isr"])

        eventually(lambda: placed() == ([3, 2], {2, 3}), what="the replicas where they are wanted")
        page = tab.page
        page.goto(three.page("/topics/moved"), wait_until="domcontentloaded")
        page.get_by_role("button", name="Move partition 0").click()
        page.get_by_label("Brokers", exact=True).fill("1, 3")
        page.get_by_role("button", name="Move", exact=True).click()
        page.get_by_text("The move has begun.").wait_for()
        eventually(lambda: placed() == ([1, 3], {1, 3}), what="the replicas on the brokers chosen")
        bad = {"partitions": [{"partition": 0, "replicas": [9]}]}
        answer = three.ask("PUT", "/topics/moved/replicas", bad, status=400)
        assert "9" in answer["message"]


@pytest.mark.long("three nodes; the balancer's own tests empty a broker")
def test_a_broker_is_emptied_by_the_balancer(three: Console, nodes: ClusterUnderTest) -> None:
    with Admin({"bootstrap.servers": nodes.bootstrap}) as admin:
        admin.create_topics([NewTopic("spread", 6, 2)])
        with Producer({"bootstrap.servers": nodes.bootstrap}) as producer:
            for number in range(600):
                producer.send("spread", b"x" * 100, partition=number % 6)
    plan = three.ask("GET", "/balancer/plan?drain=1")
    assert plan["total"] > 0
    three.ask("POST", "/balancer/execute", {"drain": "1"})

    def left() -> int:
        found = three.ask("GET", "/topics/spread")["partitions"]
        return sum(1 in each["replicas"] for each in found)

    eventually(lambda: left() == 0, what="no replica on broker 1")


def test_a_plan_is_drawn_carried_out_with_a_throttle_and_stopped(
    tab: Tab, three: Console, nodes: ClusterUnderTest
) -> None:
    with Admin({"bootstrap.servers": nodes.bootstrap}) as admin:
        admin.create_topics(
            [NewTopic("heavy", replicas_assignments=dict.fromkeys(range(6), (1, 2)))]
        )
        with Producer({"bootstrap.servers": nodes.bootstrap}) as producer:
            for number in range(600):
                producer.send("heavy", b"x" * 20_000, partition=number % 6)
        page = tab.page
        page.goto(three.page("/balancer"), wait_until="domcontentloaded")
        moves = page.get_by_role("region", name="Moves")
        moves.get_by_text("heavy-").first.wait_for()
        page.get_by_role("region", name="disk by broker").wait_for()
        page.get_by_label("Bytes per second for each broker").fill("10000")
        page.get_by_role("button", name="Plan again").click()
        page.get_by_text("in at least").wait_for()

        page.get_by_role("button", name="Carry out").click()
        page.get_by_role("dialog").get_by_role("button", name="Start").click()
        page.get_by_role("region", name="Reassignments").get_by_text("heavy-").first.wait_for()
        assert three.ask("GET", "/balancer")["running"]
        refused = three.ask("POST", "/balancer/execute", {}, status=409)
        assert "A plan is being carried out" in refused["message"]
        page.get_by_role("button", name="Stop").click()
        page.get_by_text("were cancelled").wait_for()
        assert admin.list_partition_reassignments() == {}
        assert not three.ask("GET", "/balancer")["running"]
    refused = three.ask("POST", "/balancer/execute", {"throttle": 0}, status=400)
    assert "greater than 0" in refused["message"]
    assert "no broker 9" in three.ask("GET", "/balancer/plan?add=9", status=409)["message"]
