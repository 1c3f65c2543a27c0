"""The tools on three nodes of which one is lost, beside Apache Kafka's on the same cluster."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from support.cli import Ended, Tools, moldau_cli
from support.cluster import ClusterUnderTest, cluster_for
from support.java import KafkaTools
from support.processes import kafka_missing

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))


@pytest.fixture(scope="module")
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterUnderTest]:
    with cluster_for(request, tmp_path_factory.mktemp("cluster"), {}) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def tools(cluster: ClusterUnderTest) -> Iterator[Tools]:
    with KafkaTools(cluster.bootstrap) as kafka:
        yield Tools(cluster.bootstrap, kafka)


def test_controllers_are_asked_directly(cluster: ClusterUnderTest, tools: Tools) -> None:
    at = ("--bootstrap-controller", cluster.controller_bootstrap)
    assert tools.kafka is not None
    for tool, name, words in (
        ("kafka-cluster", "org.apache.kafka.tools.ClusterTool", ["cluster-id", *at]),
        ("kafka-cluster", "org.apache.kafka.tools.ClusterTool", ["list-endpoints", *at]),
        ("features", "org.apache.kafka.tools.FeatureCommand", [*at, "describe"]),
    ):
        ours = moldau_cli(tool, *words)
        theirs = tools.kafka.run_alone(name, *words)
        assert (ours.status, theirs.status) == (0, 0)
        assert _lines(ours.out) == _lines(theirs.output)
    assert ours.out.count("Feature: ") > 5
    quorum = moldau_cli("metadata-quorum", *at, "describe", "--status", "--json").json
    assert sorted(voter["id"] for voter in quorum["currentVoters"]) == [1, 2, 3]
    set_ = ["--alter", "--broker-defaults", "--add-config", "log.retention.ms=12345"]
    assert moldau_cli("configs", *at, *set_).status == 0
    described = moldau_cli("configs", *at, "--describe", "--broker-defaults")
    assert "  log.retention.ms=12345 " in described.out
    ended = moldau_cli("kafka-cluster", "list-endpoints", *at, "--include-fenced-brokers")
    assert (ended.status, ended.err.count("\n")) == (1, 1)


def _lines(output: str) -> list[str]:
    # The epoch of features is an offset of the metadata log, which goes on between two tools.
    return sorted(re.sub(r"Epoch: [0-9]+", "Epoch: N", output).splitlines())


def test_a_lost_node(cluster: ClusterUnderTest, tools: Tools) -> None:
    made = "--create --topic kept --partitions 3 --config min.insync.replicas=2"
    tools.run("topics", *made.split())
    tools.run("topics", "--create", "--topic", "lost", "--replica-assignment", "3,1,2")
    cluster.wait_until_whole("kept", "lost")
    assert tools.same("topics", "--describe", "--under-replicated-partitions") == ""
    tools.same_but_numbers("metadata-quorum", "describe", "--replication", ordered=False)

    cluster.kill(3)
    cluster.wait_until_fenced(3)
    tools.bootstrap = cluster.bootstrap
    cluster.eventually(
        lambda: tools.run("topics", "--describe", "--under-replicated-partitions").count("\n") == 4,
        what="all have lost a replica",
    )
    for words in (
        "--under-replicated-partitions",
        "--at-min-isr-partitions",
        "--under-min-isr-partitions",
        "--unavailable-partitions",
        "--topic kept",
    ):
        tools.same("topics", "--describe", *words.split(), ordered=False)
    (gone,) = json.loads(tools.run("topics", "--describe", "--unavailable-partitions", "--json"))
    assert gone["topic"] == "lost"
    assert [each["leader"] for each in gone["partitions"]] == [None]
    shown = tools.same("kafka-cluster", "list-endpoints", "--include-fenced-brokers", ordered=False)
    assert re.search(r"^3 .* fenced +broker", shown, re.MULTILINE)
    assert tools.same("kafka-cluster", "list-endpoints", ordered=False).count("unfenced") == 2
    done = tools.run("kafka-cluster", "unregister", "--id", "3")
    assert done == "Broker 3 is no longer registered.\n"


@pytest.mark.long(
    "Kafka's tool does it in test_cluster_tools, our admin in test_client_admin_cluster"
)
def test_a_controller_leaves_and_returns(cluster: ClusterUnderTest, tools: Tools) -> None:
    if not cluster.nodes[3].is_running:
        cluster.start_node(3)

    def voters() -> dict[int, str]:
        status = json.loads(tools.run("metadata-quorum", "describe", "--status", "--json"))
        return {voter["id"]: voter["directoryId"] for voter in status["currentVoters"]}

    directory = voters()[3]
    words = ["remove-controller", "-i", "3", "-d", directory]
    assert tools.run("metadata-quorum", *words) == (
        f"Removed  KRaft controller 3 with directory id {directory}\n"
    )
    cluster.eventually(lambda: set(voters()) == {1, 2}, what="it is no voter")
    words = ["--command-config", str(cluster.nodes[3].config), "add-controller"]

    def add() -> Ended | None:
        """Who has just left may have to catch up first."""
        ended = tools.ask("metadata-quorum", *words)
        return ended if ended.status == 0 else None

    added = cluster.eventually(add, what="it is a voter again")
    assert added.out.startswith(f"Added controller 3 with directory id {directory} and endpoints: ")
    assert set(voters()) == {1, 2, 3}
    # What its file says beside the client's settings is no concern of ours.
    assert added.err == ""
    again = tools.ask("metadata-quorum", *words)
    assert (again.status, again.err.count("\n")) == (1, 1)
