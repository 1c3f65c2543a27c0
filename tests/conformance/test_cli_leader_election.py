"""`moldau leader-election` beside Kafka's own tool, on the same cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cli import CLASSES, TOOLS, Tools, moldau_cli
from support.cluster import ClusterUnderTest, always_whole, cluster_for
from support.java import KafkaTools
from support.processes import kafka_missing
from support.waiting import eventually

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

TOOL = "leader-election"
CLASSES[TOOL] = TOOLS + "LeaderElectionCommand"


@pytest.fixture(scope="module")
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterUnderTest]:
    settings = {"auto.leader.rebalance.enable": "false"}
    with cluster_for(request, tmp_path_factory.mktemp("cluster"), settings) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: ClusterUnderTest) -> Iterator[ClusterUnderTest]:
    with always_whole(shared) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def tools(shared: ClusterUnderTest) -> Iterator[Tools]:
    with KafkaTools(shared.bootstrap) as kafka:
        yield Tools(shared.bootstrap, kafka)


def test_preferred_and_unclean_elections(
    cluster: ClusterUnderTest, tools: Tools, tmp_path: Path
) -> None:
    cluster.create_topic("led", assignment=[(1, 2, 3), (1, 3, 2)])
    cluster.create_topic("lone", assignment=[(1,)])
    preferred = ("--election-type", "preferred")
    one = (*preferred, "--topic", "led", "--partition", "0")
    assert "Valid replica already elected for partitions led-0" in tools.same(TOOL, *one)
    cluster.kill(1)
    cluster.wait_for_leader("led", 0, not_in=[1])
    cluster.wait_for_leader("led", 1, not_in=[1])
    ours, theirs = tools.both(TOOL, *one)
    assert ours.status == theirs.status == 1
    assert ours.output.splitlines()[0] == theirs.output.splitlines()[0]
    assert "PreferredLeaderNotAvailableException" in ours.output
    assert ours.output.splitlines()[1] == "1 replica(s) could not be elected"
    unclean = ("--election-type", "unclean", "--topic", "lone", "--partition", "0")
    ours, theirs = tools.both(TOOL, *unclean)
    assert ours.output.splitlines()[:2] == theirs.output.splitlines()[:2]
    assert "EligibleLeadersNotAvailableException" in ours.output
    cluster.start_node(1)
    cluster.wait_until_whole("led")
    file = tmp_path / "partitions.json"
    file.write_text(json.dumps({"partitions": [{"topic": "led", "partition": 0}]}))
    elected = tools.run(TOOL, *preferred, "--path-to-json-file", str(file))
    assert elected == "Successfully completed leader election (PREFERRED) for partitions led-0\n"
    everywhere = tools.ask(TOOL, *preferred, "--all-topic-partitions", "--json").json
    assert {"topic": "led", "partition": 1} in everywhere["elected"]
    eventually(lambda: cluster.leader("led", 1) == 1, what="the preferred replica leads")
    assert tools.same(TOOL, *preferred, "--all-topic-partitions") == ""


def test_refusals(tools: Tools, tmp_path: Path) -> None:
    preferred = ("--election-type", "preferred")
    for words in (
        preferred,
        (*preferred, "--topic", "led"),
        (*preferred, "--partition", "0", "--all-topic-partitions"),
        (*preferred, "--topic", "led", "--partition", "0", "--all-topic-partitions"),
    ):
        tools.same_failure(TOOL, *words)
    for text, shown in (
        ("{}", 'missing "partitions" field'),
        ('{"partitions": [{"topic": "a", "partition": 0}, {"topic": "a", "partition": 0}]}',
         "duplicate partitions: [a-0]"),
    ):  # fmt: skip
        file = tmp_path / "partitions.json"
        file.write_text(text)
        assert shown in tools.same_failure(TOOL, *preferred, "--path-to-json-file", str(file))
    ended = moldau_cli(TOOL, "--bootstrap-server", tools.bootstrap, "--election-type", "fair",
                       "--all-topic-partitions")  # fmt: skip
    assert ended.status == 1
    assert ended.err.count("\n") == 1
    assert "fair" in ended.err
    unknown = tools.ask(TOOL, *preferred, "--topic", "nowhere", "--partition", "0")
    assert unknown.status == 1
    assert "UnknownTopicOrPartitionException" in unknown.out
    file.write_text("not json")
    broken = tools.ask(TOOL, *preferred, "--path-to-json-file", str(file))
    assert broken.err == "Replica election data is empty\n"
