"""`moldau reassign-partitions` and `leader-election` beside Kafka's tools, on the same cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client.admin import Admin, AlterConfigOp, ConfigResource
from moldau.client.topics import TopicPartition
from support.cli import CLASSES, TOOLS, Tools, moldau_cli
from support.cluster import ClusterUnderTest, always_whole, cluster_for
from support.java import KafkaTools
from support.processes import BrokerProcess, apache_kafka, kafka_missing, moldau
from support.waiting import eventually

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

TOOL = "reassign-partitions"
CLASSES[TOOL] = TOOLS + "reassign.ReassignPartitionsCommand"
ELECT = "leader-election"
CLASSES[ELECT] = TOOLS + "LeaderElectionCommand"


@pytest.fixture(scope="module")
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterUnderTest]:
    # Leaders move when a tool says so.
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


def plan(path: Path, *partitions: dict[str, Any]) -> str:
    path.write_text(json.dumps({"version": 1, "partitions": list(partitions)}))
    return str(path)


def partition(topic: str, number: int, *replicas: int, **more: Any) -> dict[str, Any]:
    return {"topic": topic, "partition": number, "replicas": list(replicas), **more}


def test_plan_is_generated(cluster: ClusterUnderTest, tools: Tools, tmp_path: Path) -> None:
    cluster.create_topic("generated", 3, replication=2)
    file = tmp_path / "topics.json"
    file.write_text('{"topics": [{"topic": "generated"}], "version": 1}')
    words = ("--generate", "--topics-to-move-json-file", str(file), "--broker-list", "1,2,3")
    ours, theirs = tools.both(TOOL, *words)
    # Proposals are drawn at random.
    assert ours.output.splitlines()[:-1] == theirs.output.splitlines()[:-1]
    proposed = json.loads(ours.output.splitlines()[-1])
    assert [each["partition"] for each in proposed["partitions"]] == [0, 1, 2]
    assert all(len(set(each["replicas"])) == 2 for each in proposed["partitions"])
    assert proposed["partitions"][0]["log_dirs"] == ["any", "any"]
    as_json = tools.ask(TOOL, *words, "--disable-rack-aware", "--json").json
    assert set(as_json) == {"current", "proposed"}
    less = ("--generate", "--topics-to-move-json-file", str(file), "--broker-list", "1")
    ours, theirs = tools.both(TOOL, *less)
    assert ours.status == theirs.status == 1
    assert ours.output.splitlines()[0] == theirs.output.splitlines()[0]
    unknown = tmp_path / "unknown.json"
    unknown.write_text('{"topics": [{"topic": "nowhere"}], "version": 1}')
    failing = ("--generate", "--topics-to-move-json-file", str(unknown), "--broker-list", "1")
    assert "Topic nowhere not found." in tools.same_failure(TOOL, *failing)


def test_reassignment_from_begin_to_end(
    cluster: ClusterUnderTest, tools: Tools, tmp_path: Path
) -> None:
    cluster.create_topic("moved", assignment=[(1, 2), (2, 1)])
    wanted = plan(tmp_path / "plan", partition("moved", 0, 2, 3), partition("moved", 1, 3, 2))
    with Admin(bootstrap_servers=tools.bootstrap) as admin:
        assert "No partition reassignments found." in tools.same(TOOL, "--list")
        before = tools.same(TOOL, "--verify", "--reassignment-json-file", wanted)
        assert "There is no active reassignment of partition moved-0" in before
        _throttle_all(admin)
        executed = tools.run(
            TOOL, "--execute", "--reassignment-json-file", wanted, "--throttle", "1000000"
        )
        assert "Successfully started partition reassignments for moved-0,moved-1" in executed
        assert "The inter-broker throttle limit was set to 1000000 B/s" in executed
        topic, broker = ConfigResource.topic("moved"), ConfigResource.broker(1)

        def throttle() -> str | None:
            entries = admin.describe_configs([topic])[topic]
            return entries["leader.replication.throttled.replicas"].value

        eventually(lambda: throttle() == "0:1,0:2,1:1,1:2", what="leaders are throttled")
        rate = admin.describe_configs([broker])[broker]["leader.replication.throttled.rate"]
        assert rate.value == "1000000"
        eventually(lambda: not admin.list_partition_reassignments(), what="it is done")
        ended = eventually(
            lambda: _done(tools, "--verify", "--reassignment-json-file", wanted), what="verified"
        )
        assert "Clearing broker-level throttles on brokers 1,2,3" in ended
        assert "Clearing topic-level throttles on topic moved" in ended
        eventually(lambda: throttle() == "", what="throttles are gone")
    assert ended == tools.same(TOOL, "--verify", "--reassignment-json-file", wanted)
    verified = tools.ask(TOOL, "--verify", "--reassignment-json-file", wanted, "--json").json
    assert [each["currentReplicas"] for each in verified["partitions"]] == [[2, 3], [3, 2]]


def _throttle_all(admin: Admin) -> None:
    """Give every broker a throttle to clear."""
    for broker in (1, 2, 3):
        operation = AlterConfigOp.set("follower.replication.throttled.rate", "1000000")
        admin.incremental_alter_configs({ConfigResource.broker(broker): [operation]})


def _done(tools: Tools, *words: str) -> str | None:
    text = tools.run(TOOL, *words)
    return text if text.count("is completed.") == 2 else None


def test_ongoing_reassignment_is_listed_and_cancelled(
    cluster: ClusterUnderTest, tools: Tools, tmp_path: Path
) -> None:
    cluster.create_topic("stuck", assignment=[(1, 2)])
    wanted = plan(tmp_path / "plan", partition("stuck", 0, 1, 2, 3))
    with Admin(bootstrap_servers=tools.bootstrap) as admin:
        cluster.kill(3)
        cluster.wait_until_fenced(3)
        refused = tools.same_failure(TOOL, "--execute", "--reassignment-json-file", wanted)
        assert refused == "Error: Unknown broker id 3"
        key = TopicPartition("stuck", 0)
        admin.alter_partition_reassignments({key: [1, 2, 3]})
        listed = tools.same(TOOL, "--list")
        assert "stuck-0: replicas: 1,2,3. adding: 3." in listed
        assert tools.ask(TOOL, "--list", "--json").json[0]["addingReplicas"] == [3]
        verified = tools.same(TOOL, "--verify", "--reassignment-json-file", wanted)
        assert "Reassignment of partition stuck-0 is still in progress." in verified
        other = plan(tmp_path / "other", partition("stuck", 0, 2, 1))
        existing = tools.same_failure(TOOL, "--execute", "--reassignment-json-file", other)
        assert existing.startswith("Cannot execute because there is an existing")
        by_controller = moldau_cli(
            TOOL, "--bootstrap-controller", cluster.controller_bootstrap, "--list"
        )
        assert by_controller.out == listed
        cancel = ("--cancel", "--reassignment-json-file", wanted, "--preserve-throttles")
        cancelled = tools.run(TOOL, *cancel)
        assert cancelled == (
            "Successfully cancelled partition reassignment for: stuck-0\n"
            "None of the specified partition moves are active."
        )
        assert "None of the specified partition reassignments" in tools.same(TOOL, *cancel)
        additional = tools.run(TOOL, "--execute", "--reassignment-json-file", other, "--additional")
        assert "Successfully started partition reassignment for stuck-0" in additional


def test_bad_plans(cluster: ClusterUnderTest, tools: Tools, tmp_path: Path) -> None:
    cluster.create_topic("plain", assignment=[(1, 2)])

    def refused(name: str, *partitions: dict[str, Any]) -> str:
        words = ("--execute", "--reassignment-json-file", plan(tmp_path / name, *partitions))
        return tools.same_failure(TOOL, *words)

    assert "Partition reassignment list cannot be empty" in refused("empty")
    assert "Partition replica list cannot be empty" in refused("none", partition("plain", 0))
    twice = refused("twice", partition("plain", 0, 1), partition("plain", 0, 2))
    assert "contains duplicate topic partitions: plain-0" in twice
    assert "plain-0 contains multiple entries for 1" in refused(
        "replicas", partition("plain", 0, 1, 1)
    )
    assert "Size of replicas list [1, 2]" in refused(
        "dirs", partition("plain", 0, 1, 2, log_dirs=["any"])
    )
    assert "Unable to find partition: plain-7" in refused("number", partition("plain", 7, 1))
    factor = plan(tmp_path / "factor", partition("plain", 0, 1, 2, 3))
    words = ("--execute", "--reassignment-json-file", factor)
    ours, theirs = tools.both(TOOL, *words, "--disallow-replication-factor-change")
    assert ours.status == theirs.status == 1
    assert ours.output == theirs.output
    assert "Error reassigning partition(s):" in ours.output


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--list", "--verify"], "exactly one action"),
        (["--verify"], "reassignment-json-file"),
        (["--list", "--timeout", "5"], 'Option "[timeout]" can\'t be used with action "[list]"'),
        (["--execute", "--reassignment-json-file", "/no/file"], "/no/file"),
        (["--lst"], "did you mean --list"),
    ],
)
def test_bad_usage(shared: ClusterUnderTest, words: list[str], shown: str) -> None:
    ended = moldau_cli(TOOL, "--bootstrap-server", shared.bootstrap, *words)
    assert ended.status == 1
    assert shown.lower() in (ended.out + ended.err).lower()
    assert (ended.out + ended.err).count("\n") == 1


def test_preferred_and_unclean_elections(
    cluster: ClusterUnderTest, tools: Tools, tmp_path: Path
) -> None:
    cluster.create_topic("led", assignment=[(1, 2, 3), (1, 3, 2)])
    cluster.create_topic("lone", assignment=[(1,)])
    preferred = ("--election-type", "preferred")
    one = (*preferred, "--topic", "led", "--partition", "0")
    assert "Valid replica already elected for partitions led-0" in tools.same(ELECT, *one)
    cluster.kill(1)
    cluster.wait_for_leader("led", 0, not_in=[1])
    cluster.wait_for_leader("led", 1, not_in=[1])
    ours, theirs = tools.both(ELECT, *one)
    assert ours.status == theirs.status == 1
    assert ours.output.splitlines()[0] == theirs.output.splitlines()[0]
    assert "PreferredLeaderNotAvailableException" in ours.output
    assert ours.output.splitlines()[1] == "1 replica(s) could not be elected"
    unclean = ("--election-type", "unclean", "--topic", "lone", "--partition", "0")
    ours, theirs = tools.both(ELECT, *unclean)
    assert ours.output.splitlines()[:2] == theirs.output.splitlines()[:2]
    assert "EligibleLeadersNotAvailableException" in ours.output
    cluster.start_node(1)
    cluster.wait_until_whole("led")
    file = tmp_path / "partitions.json"
    file.write_text(json.dumps({"partitions": [{"topic": "led", "partition": 0}]}))
    elected = tools.run(ELECT, *preferred, "--path-to-json-file", str(file))
    assert elected == "Successfully completed leader election (PREFERRED) for partitions led-0\n"
    everywhere = tools.ask(ELECT, *preferred, "--all-topic-partitions", "--json").json
    assert {"topic": "led", "partition": 1} in everywhere["elected"]
    eventually(lambda: cluster.leader("led", 1) == 1, what="the preferred replica leads")
    assert tools.same(ELECT, *preferred, "--all-topic-partitions") == ""


def test_refused_elections(tools: Tools, tmp_path: Path) -> None:
    preferred = ("--election-type", "preferred")
    for words in (
        preferred,
        (*preferred, "--topic", "led"),
        (*preferred, "--partition", "0", "--all-topic-partitions"),
        (*preferred, "--topic", "led", "--partition", "0", "--all-topic-partitions"),
    ):
        tools.same_failure(ELECT, *words)
    for text, shown in (
        ("{}", 'missing "partitions" field'),
        ('{"partitions": [{"topic": "a", "partition": 0}, {"topic": "a", "partition": 0}]}',
         "duplicate partitions: [a-0]"),
    ):  # fmt: skip
        file = tmp_path / "partitions.json"
        file.write_text(text)
        assert shown in tools.same_failure(ELECT, *preferred, "--path-to-json-file", str(file))
    ended = moldau_cli(ELECT, "--bootstrap-server", tools.bootstrap, "--election-type", "fair",
                       "--all-topic-partitions")  # fmt: skip
    assert ended.status == 1
    assert ended.err.count("\n") == 1
    assert "fair" in ended.err
    unknown = tools.ask(ELECT, *preferred, "--topic", "nowhere", "--partition", "0")
    assert unknown.status == 1
    assert "UnknownTopicOrPartitionException" in unknown.out
    file.write_text("not json")
    broken = tools.ask(ELECT, *preferred, "--path-to-json-file", str(file))
    assert broken.err == "Replica election data is empty\n"


@pytest.fixture(scope="module")
def two_folders(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[BrokerProcess, list[str]]]:
    folder = tmp_path_factory.mktemp("folders")
    folders = [str(folder / name) for name in ("first", "second")]
    settings = {"log.dirs": ",".join(folders)}
    if request.config.getoption("--against-kafka"):
        broker = apache_kafka(folder, settings)
    else:
        broker = moldau(folder, [f"{key}={value}" for key, value in settings.items()])
    with broker:
        yield broker, folders


def test_replica_moves_to_another_folder(
    two_folders: tuple[BrokerProcess, list[str]], tmp_path: Path
) -> None:
    broker, folders = two_folders
    tools = Tools(broker.bootstrap)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics(["here"])
        eventually(lambda: "here" in admin.list_topics(), what="it is known")
        node = admin.describe_cluster().nodes[0].id
        key = TopicPartition("here", 0)

        def where() -> str:
            found = admin.describe_log_dirs([node])[node]
            return next((path for path, each in found.items() if key in each.replica_infos), "")

        source = eventually(where, what="it has a log")
        target = folders[1 - folders.index(source)]
        wanted = plan(tmp_path / "plan", partition("here", 0, node, log_dirs=[target]))
        words = ("--reassignment-json-file", wanted)
        moving = tools.run(TOOL, "--execute", *words, "--replica-alter-log-dirs-throttle", "10000")
        assert "The replica-alter-dir throttle limit was set to 10000 B/s" in moving
        assert f"Successfully started moving log directory to {target} for replica here-0" in moving
        eventually(lambda: where() == target, what="it has moved")
        done = eventually(
            lambda: _if_in("completed successfully", tools.run(TOOL, "--verify", *words)),
            what="verified",
        )
        assert f"Reassignment of replica here-0-{node} completed successfully." in done
        back = plan(tmp_path / "back", partition("here", 0, node, log_dirs=[source]))
        state = tools.run(TOOL, "--verify", "--reassignment-json-file", back)
        assert f"is not being moved from log dir {target} to {source}." in state
        nowhere = plan(tmp_path / "no", partition("here", 0, node, log_dirs=["/no/such"]))
        failed = tools.ask(TOOL, "--execute", "--reassignment-json-file", nowhere)
        assert failed.status == 1
        assert f"Error: Failed to alter dir for here-0-{node}" in failed.out


def _if_in(words: str, text: str) -> str | None:
    return text if words in text else None
