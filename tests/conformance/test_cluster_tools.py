"""Apache Kafka's own administration tools against three nodes: what an operator does to a cluster.

`--against-kafka` runs the same against Apache Kafka.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.wire.records import encode_batch
from support import asking
from support.cluster import ClusterUnderTest, always_whole, cluster_for
from support.java import KafkaTools
from support.processes import kafka_missing
from support.raw import RawConnection
from support.scenarios.members import Place
from support.scenarios.workers import Load, write
from support.waiting import eventually

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

TOOLS = "org.apache.kafka.tools."
REASSIGN = TOOLS + "reassign.ReassignPartitionsCommand"
TOPICS = TOOLS + "TopicCommand"
ELECT = TOOLS + "LeaderElectionCommand"
QUORUM = TOOLS + "MetadataQuorumCommand"
CONFIGS = "kafka.admin.ConfigCommand"


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
def tools(shared: ClusterUnderTest) -> Iterator[KafkaTools]:
    with KafkaTools(shared.bootstrap) as tools:
        yield tools


def run(tools: KafkaTools, tool: str, *arguments: str) -> str:
    outcome = tools.run(tool, *arguments)
    assert outcome.status == 0, outcome.output
    return outcome.output


def written(path: Path, value: object) -> str:
    path.write_text(json.dumps(value))
    return str(path)


def assignment(topic: str, *replicas: list[int]) -> object:
    partitions = [
        {"topic": topic, "partition": index, "replicas": ids} for index, ids in enumerate(replicas)
    ]
    return {"version": 1, "partitions": partitions}


def fill(cluster: ClusterUnderTest, topic: str, index: int, count: int, size: int) -> None:
    with RawConnection(cluster.nodes[cluster.leader(topic, index)].port) as to:
        for number in range(count):
            value = number.to_bytes(4, "big") * (size // 4)
            batch = encode_batch([(None, value, time.time_ns() // 1_000_000, ())])
            assert asking.produce(to, topic, index, batch).error_code == 0


def test_partitions_move_to_other_nodes_while_they_are_written(
    cluster: ClusterUnderTest, tools: KafkaTools, tmp_path: Path
) -> None:
    topic = "moving"
    cluster.create_topic(topic, assignment=[[1, 2], [2, 3]])
    places = frozenset(Place(topic, index) for index in range(2))
    wanted = written(tmp_path / "wanted.json", assignment(topic, [3, 1], [1, 3]))
    with Load(cluster.bootstrap, places) as load:
        started = run(tools, REASSIGN, "--reassignment-json-file", wanted, "--execute")
        assert "Successfully started partition reassignments for moving-0,moving-1" in started
        verified = eventually(
            lambda: text if "is still in progress" not in (
                text := run(tools, REASSIGN, "--reassignment-json-file", wanted, "--verify")
            ) else None,
            what="the reassignment is complete", seconds_max=60,
        )  # fmt: skip
        assert "Reassignment of partition moving-0 is completed." in verified
        assert "Reassignment of partition moving-1 is completed." in verified
        delivered = load.finish()
    cluster.wait_until_whole(topic)
    states = cluster.partitions(topic)
    assert {at[1]: state.replicas for at, state in states.items()} == {0: (3, 1), 1: (1, 3)}
    for _, index in states:
        with RawConnection(cluster.nodes[cluster.leader(topic, index)].port) as to:
            found = {(Place(topic, index), each.offset): each.value
                     for each in asking.fetch_everything(to, topic, index)}  # fmt: skip
        assert found == {at: value for at, value in delivered.items() if at[0].partition == index}
    # The replicas that were left behind are gone from their nodes' disks.
    cluster.eventually(
        lambda: (
            not (cluster.nodes[2].data / "moving-0").exists()
            and not (cluster.nodes[2].data / "moving-1").exists()
        ),
        what="nothing is left where the partitions were",
    )


@pytest.mark.long("a slow reassignment; test_cli_reassign cancels one")
def test_a_throttled_move_takes_its_time_and_can_be_cancelled(
    cluster: ClusterUnderTest, tools: KafkaTools, tmp_path: Path
) -> None:
    topic = "throttled"
    cluster.create_topic(topic, assignment=[[1, 2]])
    # Kafka lets one fetch through each time; many are needed, or the move is over at once.
    fill(cluster, topic, 0, 12, 500_000)
    wanted = written(tmp_path / "wanted.json", assignment(topic, [1, 3]))
    run(tools, REASSIGN, "--reassignment-json-file", wanted, "--execute", "--throttle", "1000")
    described = run(tools, CONFIGS, "--describe", "--topic", topic)
    assert "leader.replication.throttled.replicas=0:" in described
    assert "follower.replication.throttled.replicas=0:3" in described
    shown = run(tools, CONFIGS, "--describe", "--broker", "1")
    assert "leader.replication.throttled.rate=1000" in shown
    listed = run(tools, REASSIGN, "--list")
    assert "throttled-0: replicas: 1,3,2. adding: 3. removing: 2." in listed
    progress = run(tools, REASSIGN, "--reassignment-json-file", wanted, "--verify",
                   "--preserve-throttles")  # fmt: skip
    assert "is still in progress" in progress
    # It is written meanwhile: who is being added is not waited for.
    fill(cluster, topic, 0, 2, 100)

    cancelled = run(tools, REASSIGN, "--reassignment-json-file", wanted, "--cancel")
    assert "Successfully cancelled partition reassignment for: throttled-0" in cancelled
    assert cluster.eventually(
        lambda: cluster.partitions(topic)[topic, 0].replicas == (1, 2), what="it is as before"
    )
    assert "No partition reassignments found." in run(tools, REASSIGN, "--list")
    described = run(tools, CONFIGS, "--describe", "--topic", topic)
    assert "throttled.replicas" not in described
    cluster.wait_until_whole(topic)

    # Faster, the same move comes to its end.
    run(tools, REASSIGN, "--reassignment-json-file", wanted, "--execute",
        "--throttle", "50000000")  # fmt: skip
    eventually(
        lambda: "is completed" in run(
            tools, REASSIGN, "--reassignment-json-file", wanted, "--verify"),
        what="the reassignment is complete", seconds_max=60,
    )  # fmt: skip
    cluster.wait_until_whole(topic)
    assert cluster.partitions(topic)[topic, 0].replicas == (1, 3)


@pytest.mark.long("another reassignment")
def test_more_and_fewer_replicas(
    cluster: ClusterUnderTest, tools: KafkaTools, tmp_path: Path
) -> None:
    topic = "replicas"
    cluster.create_topic(topic, assignment=[[1]])
    fill(cluster, topic, 0, 5, 100)
    for replicas in ([1, 2, 3], [3, 2]):
        wanted = written(tmp_path / "wanted.json", assignment(topic, replicas))
        run(tools, REASSIGN, "--reassignment-json-file", wanted, "--execute")
        cluster.eventually(
            lambda replicas=replicas: (
                cluster.partitions(topic)[topic, 0].replicas == tuple(replicas)
            ),
            what=f"replicas are {replicas}",
        )
        cluster.wait_until_whole(topic)
    with RawConnection(cluster.nodes[cluster.leader(topic)].port) as to:
        assert len(asking.fetch_everything(to, topic, 0)) == 5
    bad = written(tmp_path / "bad.json", assignment(topic, [1, 9]))
    outcome = tools.run(REASSIGN, "--reassignment-json-file", bad, "--execute")
    assert outcome.status == 1
    assert "Unknown broker id 9" in outcome.output


def test_preferred_leaders_are_elected(cluster: ClusterUnderTest, tools: KafkaTools) -> None:
    topic = "preferred"
    cluster.create_topic(topic, assignment=[[2, 1, 3], [3, 1, 2]])
    cluster.stop(2)
    cluster.wait_for_leader(topic, 0, not_in=[2])
    failed = tools.run(ELECT, "--election-type", "preferred", "--topic", topic, "--partition", "0")
    assert failed.status == 1
    assert "PreferredLeaderNotAvailableException" in failed.output
    cluster.start_node(2)
    cluster.wait_until_whole(topic)
    assert cluster.leader(topic, 0) != 2
    done = run(tools, ELECT, "--election-type", "preferred", "--topic", topic, "--partition", "0")
    assert "Successfully completed leader election (PREFERRED) for partitions preferred-0" in done
    cluster.eventually(lambda: cluster.leader(topic, 0) == 2, what="the first replica leads")
    again = run(tools, ELECT, "--election-type", "preferred", "--topic", topic, "--partition", "0")
    assert "Valid replica already elected for partitions preferred-0" in again


@pytest.mark.long("stops nodes; test_cli_reassign elects an unclean leader")
def test_an_unclean_leader_is_elected_by_hand(cluster: ClusterUnderTest, tools: KafkaTools) -> None:
    topic = "unclean"
    active = cluster.active_controller()
    first, second = cluster.others(active)
    cluster.create_topic(topic, config={"min.insync.replicas": "1"}, assignment=[[first, second]])
    cluster.stop(second)
    fill(cluster, topic, 0, 3, 100)
    cluster.stop(first)
    cluster.start_node(second)
    cluster.wait_for_brokers(active, second)
    described = run(tools, TOPICS, "--describe", "--topic", topic, "--unavailable-partitions")
    assert re.search(rf"Leader: none\tReplicas: {first},{second}\tIsr: \tElr: {first}\t", described)
    done = run(tools, ELECT, "--election-type", "unclean", "--topic", topic, "--partition", "0")
    assert "Successfully completed leader election (UNCLEAN) for partitions unclean-0" in done
    cluster.eventually(lambda: cluster.leader(topic) == second, what="the other leads")
    with RawConnection(cluster.nodes[second].port) as to:
        eventually(
            lambda: asking.list_offset(to, topic, 0, asking.LATEST).error_code == 0,
            what="the other serves",
        )
        assert asking.fetch_everything(to, topic, 0) == []
    cluster.start_node(first)
    cluster.wait_until_whole(topic)
    # What only the old leader had is gone from it too: both hold the same.
    fill(cluster, topic, 0, 1, 100)
    cluster.eventually(
        lambda: len({
            (cluster.nodes[each].data / "unclean-0" / f"{0:020}.log").read_bytes()
            for each in (first, second)
        }) == 1,
        what="both replicas hold the same",
    )  # fmt: skip


def test_the_quorum_is_described(cluster: ClusterUnderTest, tools: KafkaTools) -> None:
    status = run(tools, QUORUM, "describe", "--status")
    facts = dict(re.findall(r"^(\w+):\s*(.*)$", status, re.MULTILINE))
    active = cluster.active_controller()
    assert facts["ClusterId"] == "MkU3OEVBNTcwNTJENDM2Qg"
    assert int(facts["LeaderId"]) == active
    assert int(facts["HighWatermark"]) > 0
    voters = json.loads(facts["CurrentVoters"])
    assert {voter["id"] for voter in voters} == {1, 2, 3}
    assert json.loads(facts["CurrentObservers"]) == []
    for voter in voters:
        port = cluster.nodes[voter["id"]].advertised["CONTROLLER"]
        assert voter["endpoints"] == [f"CONTROLLER://127.0.0.1:{port}"]
    table = run(tools, QUORUM, "describe", "--replication").splitlines()
    titles = "NodeId DirectoryId LogEndOffset Lag LastFetchTimestamp LastCaughtUpTimestamp Status"
    assert table[0].split() == titles.split()
    assert {(row.split()[0], row.split()[-1]) for row in table[1:]} == {
        (str(node_id), "Leader" if node_id == active else "Follower") for node_id in (1, 2, 3)
    }


def voters_of(cluster: ClusterUnderTest) -> set[int]:
    described = cluster.quorum()
    return {voter.replica_id for voter in described.current_voters} if described else set()


@pytest.mark.long("our own admin does it in test_client_admin_cluster")
def test_a_controller_leaves_the_quorum_and_returns(
    cluster: ClusterUnderTest, tools: KafkaTools
) -> None:
    """Both one that follows and the one that leads: it hands over."""
    for leads in (False, True):
        active = cluster.active_controller()
        leaving = active if leads else cluster.others(active)[0]
        directory = cluster.directory_id(leaving)
        removed = run(tools, QUORUM, "remove-controller", "--controller-id", str(leaving),
                      "--controller-directory-id", directory)  # fmt: skip
        assert f"Removed  KRaft controller {leaving} with directory id {directory}" in removed
        cluster.eventually(
            lambda leaving=leaving: voters_of(cluster) == set(cluster.others(leaving)),
            what=f"{leaving} is no voter",
        )
        if leads:
            cluster.eventually(
                lambda leaving=leaving: cluster.active_controller() != leaving,
                what="another leads",
            )
        # Metadata still reaches it, and can be changed through it.
        with RawConnection(cluster.nodes[leaving].port) as to:
            asking.create_topic(to, f"without-{leaving}")
        added = run(tools, QUORUM, "--command-config", str(cluster.nodes[leaving].config),
                    "add-controller")  # fmt: skip
        assert f"Added controller {leaving} with directory id {directory}" in added
        cluster.eventually(lambda: voters_of(cluster) == {1, 2, 3}, what="all are voters again")
        again = tools.run(QUORUM, "--command-config", str(cluster.nodes[leaving].config),
                          "add-controller")  # fmt: skip
        assert again.status == 1
        assert "DuplicateVoterException" in again.output


def test_configs_of_the_cluster_and_of_one_broker(
    cluster: ClusterUnderTest, tools: KafkaTools
) -> None:
    everywhere = ("--entity-type", "brokers", "--entity-default")
    run(tools, CONFIGS, "--alter", *everywhere, "--add-config", "log.retention.ms=77777777")
    run(tools, CONFIGS, "--alter", "--broker", "2", "--add-config", "log.retention.ms=88888888")

    def in_force() -> list[str]:
        key = "log.retention.ms"
        values = []
        for node_id in (1, 2, 3):
            with RawConnection(cluster.nodes[node_id].port) as to:
                values.append(asking.config(to, asking.BROKER_CONFIG, str(node_id), key)[0] or "")
        return values

    cluster.eventually(
        lambda: in_force() == ["77777777", "88888888", "77777777"], what="configs are in force"
    )
    cluster.stop(2)
    cluster.start_node(2)
    cluster.wait_until_whole()
    assert in_force() == ["77777777", "88888888", "77777777"]
    run(tools, CONFIGS, "--alter", "--broker", "2", "--delete-config", "log.retention.ms")
    run(tools, CONFIGS, "--alter", *everywhere, "--delete-config", "log.retention.ms")
    cluster.eventually(lambda: len(set(in_force())) == 1, what="configs are as before")


def test_what_is_short_of_replicas_is_listed(cluster: ClusterUnderTest, tools: KafkaTools) -> None:
    cluster.create_topic("short", assignment=[[1, 2, 3]], config={"min.insync.replicas": "2"})
    cluster.create_topic("shorter", assignment=[[1, 2]], config={"min.insync.replicas": "2"})
    cluster.create_topic("safe", assignment=[[1, 3]], config={"min.insync.replicas": "1"})
    cluster.create_topic("lone", assignment=[[2]], config={"min.insync.replicas": "1"})
    lists = {
        "--under-replicated-partitions": {"short", "shorter", "lone"},
        "--at-min-isr-partitions": {"short"},
        "--under-min-isr-partitions": {"shorter", "lone"},
        "--unavailable-partitions": {"lone"},
    }
    own = ("short", "shorter", "safe", "lone")
    for option in lists.keys() - {"--at-min-isr-partitions"}:
        output = run(tools, TOPICS, "--describe", option)
        assert not any(f"Topic: {name}\t" in output for name in own), output
    cluster.stop(2)
    cluster.wait_until_fenced(2)
    for option, expected in lists.items():
        output = run(tools, TOPICS, "--describe", option)
        assert {name for name in own if f"Topic: {name}\t" in output} == expected, option


def test_log_folders_of_all_brokers(cluster: ClusterUnderTest, tools: KafkaTools) -> None:
    cluster.create_topic("folders", assignment=[[1, 2], [2, 3]])
    output = run(tools, TOOLS + "LogDirsCommand", "--describe", "--topic-list", "folders")
    described = json.loads(output[output.index("{") :].splitlines()[0])
    found = {
        broker["broker"]: {
            (folder["logDir"], part["partition"])
            for folder in broker["logDirs"]
            for part in folder["partitions"]
        }
        for broker in described["brokers"]
    }
    folder = {node_id: str(node.data) for node_id, node in cluster.nodes.items()}
    assert found == {
        1: {(folder[1], "folders-0")},
        2: {(folder[2], "folders-0"), (folder[2], "folders-1")},
        3: {(folder[3], "folders-1")},
    }


def test_features_are_described_and_changed(cluster: ClusterUnderTest, tools: KafkaTools) -> None:
    def level(feature: str) -> str:
        output = run(tools, TOOLS + "FeatureCommand", "describe")
        return re.search(rf"Feature: {feature}\s.*FinalizedVersionLevel: (\S+)", output)[1]

    assert level("kraft.version") == "1"
    assert level("metadata.version") == "4.3-IV0"
    assert level("transaction.version") == "2"
    feature = "transaction.version"
    run(tools, TOOLS + "FeatureCommand", "downgrade", "--feature", f"{feature}=1")
    eventually(lambda: level(feature) == "1", what="the level is lowered")
    run(tools, TOOLS + "FeatureCommand", "upgrade", "--feature", f"{feature}=2")
    eventually(lambda: level(feature) == "2", what="the level is raised")
    refused = tools.run(TOOLS + "FeatureCommand", "upgrade", "--feature", f"{feature}=99")
    assert refused.status == 1


@pytest.mark.long("restarts a node; the request is in test_cli_cluster")
def test_a_broker_is_unregistered_and_returns(cluster: ClusterUnderTest, tools: KafkaTools) -> None:
    gone = next(each for each in cluster.brokers if each != cluster.active_controller())
    cluster.stop(gone)
    cluster.wait_until_fenced(gone)
    done = tools.run_alone(
        TOOLS + "ClusterTool", "unregister", "--id", str(gone),
        "--bootstrap-server", cluster.bootstrap,
    )  # fmt: skip
    assert done.status == 0, done.output
    assert f"Broker {gone} is no longer registered." in done.output
    listed = tools.run_alone(
        TOOLS + "ClusterTool", "list-endpoints", "--include-fenced-brokers",
        "--bootstrap-server", cluster.bootstrap,
    )  # fmt: skip
    assert listed.status == 0, listed.output
    assert {row.split()[0] for row in listed.output.splitlines()[1:]} == {
        str(each) for each in cluster.others(gone)
    }
    cluster.start_node(gone)
    cluster.wait_until_whole()
    cluster.create_topic("back", assignment=[[gone]], config={"min.insync.replicas": "1"})
    assert write(cluster.bootstrap, [Place("back", 0)], 5)
