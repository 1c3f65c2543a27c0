"""Tools that ask a cluster about itself, beside Apache Kafka's on the same broker."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cli import Tools, moldau_cli
from support.java import KafkaTools
from support.processes import BrokerProcess, kafka_missing
from support.waiting import eventually

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))


@pytest.fixture(scope="module")
def tools(broker: BrokerProcess) -> Iterator[Tools]:
    with KafkaTools(broker.bootstrap) as kafka:
        yield Tools(broker.bootstrap, kafka)


def test_cluster_id(tools: Tools) -> None:
    shown = tools.same("kafka-cluster", "cluster-id")
    cluster_id = shown.removeprefix("Cluster ID: ").rstrip()
    assert len(cluster_id) == 22
    # `moldau cluster` starts a cluster; with Kafka's words it asks one.
    ended = moldau_cli("cluster", "cluster-id", "-b", tools.bootstrap, "--json")
    assert ended.json == {"clusterId": cluster_id}


def test_endpoints(tools: Tools) -> None:
    shown = tools.same("kafka-cluster", "list-endpoints")
    assert "ENDPOINT_TYPE" in shown
    assert tools.same("kafka-cluster", "list-endpoints", "--include-fenced-brokers") == shown
    (row,) = json.loads(tools.run("kafka-cluster", "list-endpoints", "--json"))
    assert f"{row['host']}:{row['port']}" == tools.bootstrap


def test_unregistering_a_broker_that_is_not_there(tools: Tools) -> None:
    ours, theirs = tools.both("kafka-cluster", "unregister", "--id", "99")
    assert (ours.status, theirs.status) == (1, 1)
    assert ours.output == "Broker ID 99 is not currently registered\n"
    assert ours.output in theirs.output


def test_a_deprecated_option_warns_and_works(tools: Tools, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("client.id=me\n")
    ended = tools.ask("kafka-cluster", "cluster-id", "--config", str(file))
    assert ended.status == 0
    assert ended.out.startswith("Cluster ID: ")
    assert "Option --config is deprecated" in ended.err
    ended = tools.ask("kafka-cluster", "cluster-id", "--config", str(file), f"-c{file}")
    assert ended.status == 1
    assert "--command-config" in ended.err


def test_features(tools: Tools) -> None:
    shown = tools.same("features", "describe")
    assert tools.same("features", "describe", "--node-id", "1") == shown
    rows = json.loads(tools.run("features", "describe", "--json"))
    assert {"metadata.version", "group.version"} <= {row["feature"] for row in rows}


@pytest.mark.parametrize(
    "words",
    [
        "version-mapping",
        "version-mapping --release-version 3.9-IV0",
        "feature-dependencies --feature metadata.version=25 --feature group.version=1",
        "feature-dependencies --feature transaction.version=2",
        "upgrade --feature group.version=1 --dry-run",
        "upgrade --feature no.such=1 --dry-run",
        "upgrade --release-version 4.3-IV0 --dry-run",
        "upgrade --release-version 4.3 --dry-run",
        "downgrade --feature metadata.version=99 --dry-run",
        "downgrade --feature group.version=0",
        "disable --feature no.such --unsafe --dry-run",
        "upgrade",
        "upgrade --feature group.version",
        "upgrade --feature group.version=x",
        "upgrade --feature group.version=1 --feature group.version=1",
        "upgrade --release-version 4.3-IV0 --feature group.version=1",
        "describe --node-id -3",
    ],
)
def test_features_are_changed_in_the_same_words(tools: Tools, words: str) -> None:
    tools.same("features", *words.split())


def test_a_features_level_goes_down_and_up_again(tools: Tools) -> None:
    name = "streams.version"
    done = tools.run("features", "downgrade", "--feature", f"{name}=0", "--unsafe")
    assert done == f"{name} was downgraded to 0.\n"
    assert re.search(rf"{name} .*FinalizedVersionLevel: 0 ", tools.run("features", "describe"))
    done = tools.run("features", "upgrade", "--feature", f"{name}=1")
    assert done == f"{name} was upgraded to 1.\n"
    assert tools.run("features", "disable", "--feature", name) == f"{name} was disabled.\n"
    tools.run("features", "upgrade", "--feature", f"{name}=1")


def test_the_quorum(tools: Tools) -> None:
    shown = tools.same_but_numbers("metadata-quorum", "describe", "--status")
    assert re.search(r"^LeaderId: +1$", shown, re.MULTILINE)
    tools.same_but_numbers("metadata-quorum", "describe", "--replication")
    tools.same_but_numbers("metadata-quorum", "describe", "--replication", "--human-readable")
    status = json.loads(tools.run("metadata-quorum", "describe", "--status", "--json"))
    assert status["leaderId"] == 1
    assert [voter["id"] for voter in status["currentVoters"]] == [1]


@pytest.mark.parametrize(
    "words",
    [
        "describe",
        "describe --status --replication",
        "describe --status --human-readable",
        "add-controller",
        "remove-controller --controller-id -1 --controller-directory-id AAAAAAAAAAAAAAAAAAAAAg",
    ],
)
def test_the_quorums_tool_refuses_the_same(tools: Tools, words: str) -> None:
    tools.same_failure("metadata-quorum", *words.split())


def test_removing_a_controller_only_in_words(tools: Tools) -> None:
    words = "remove-controller -i 7 -d AAAAAAAAAAAAAAAAAAAAAg --dry-run"
    tools.same("metadata-quorum", *words.split())


def test_adding_a_controller_only_in_words(tools: Tools, tmp_path: Path) -> None:
    file = tmp_path / "controller.properties"
    lines = {
        "node.id": "9",
        "process.roles": "controller",
        "listeners": "PLAIN://:9092,CTRL://10.0.0.1:9093,SIX://[::1]:9094",
        "controller.listener.names": "CTRL,six",
        "log.dirs": f"{tmp_path}/log,/other",
    }

    def words() -> list[str]:
        file.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        return ["--command-config", str(file), "add-controller", "--dry-run"]

    # What is missing is told one after the other.
    tools.same_failure("metadata-quorum", *words())
    (tmp_path / "log").mkdir()
    meta = tmp_path / "log" / "meta.properties"
    meta.write_text("version=1\ncluster.id=x\nnode.id=9\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAg\n")
    done = tools.same("metadata-quorum", *words())
    assert "CTRL://10.0.0.1:9093, SIX://[::1]:9094" in done
    for key in ("controller.listener.names", "log.dirs", "process.roles", "node.id"):
        del lines[key]
        tools.same_failure("metadata-quorum", *words())


def test_the_versions_of_requests(tools: Tools) -> None:
    shown = tools.same("broker-api-versions")
    assert re.search(r"\tProduce\(0\): \d+ to \d+ \[usable: \d+\],", shown)
    (node,) = json.loads(tools.run("broker-api-versions", "--json"))
    assert {"key": 18, "name": "ApiVersions", "min": 0, "max": 4} in node["apis"]


def test_log_directories(tools: Tools) -> None:
    tools.run("topics", "--create", "--topic", "held", "--partitions", "2")
    words = ["--describe", "--topic-list", "held"]
    eventually(
        lambda: tools.run("log-dirs", *words).count('"partition":') == 2, what="both are there"
    )
    ours, theirs = tools.both("log-dirs", *words)
    assert ours.output.splitlines()[:2] == theirs.output.splitlines()[:2]
    assert arranged(ours.output) == arranged(theirs.output)
    assert json.loads(tools.run("log-dirs", *words, "--json")) == json.loads(
        ours.output.splitlines()[2]
    )
    tools.same_failure("log-dirs", "--describe", "--broker-list", "1,7")


def arranged(output: str) -> object:
    document = json.loads(output.splitlines()[2])
    for broker in document["brokers"]:
        broker["logDirs"].sort(key=lambda folder: folder["logDir"])
        for folder in broker["logDirs"]:
            folder["partitions"].sort(key=lambda each: each["partition"])
    return document
