"""`moldau topics` beside Apache Kafka's kafka-topics on the same broker: the same words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from support.cli import Tools
from support.java import KafkaTools
from support.processes import BrokerProcess, kafka_missing

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))


@pytest.fixture(scope="module")
def tools(broker: BrokerProcess) -> Iterator[Tools]:
    with KafkaTools(broker.bootstrap) as kafka:
        tools = Tools(broker.bootstrap, kafka)
        tools.run("topics", "--create", "--topic", "alpha", "--partitions", "3")
        tools.run(
            "topics", "--create", "--topic", "beta", "--partitions", "1", "--replication-factor",
            "1", "--config", "retention.ms=1000", "--config=cleanup.policy=compact",
        )  # fmt: skip
        tools.run("topics", "--create", "--topic", "gamma", "--replica-assignment", "1,1")
        yield tools


@pytest.mark.parametrize(
    "words",
    [
        "--list",
        "--list --topic alpha|beta",
        "--list --topic alpha,gamma",
        "--list --topic nothing",
        "--list --exclude-internal",
        "--describe",
        "--describe --topic alpha",
        "--describe --topic (al|be).*",
        "--describe --topic alpha --partition-size-limit-per-response 1",
        "--describe --topics-with-overrides",
        "--describe --under-replicated-partitions",
        "--describe --unavailable-partitions",
        "--describe --under-min-isr-partitions",
        "--describe --at-min-isr-partitions",
        "--describe --topic nothing --if-exists",
        "--delete --topic nothing --if-exists",
        "--alter --topic nothing --if-exists --partitions 2",
        "--create --topic alpha --if-not-exists",
    ],
)
def test_the_same_is_printed(tools: Tools, words: str) -> None:
    tools.same("topics", *words.split(), ordered="--list" in words)


@pytest.mark.parametrize(
    "words",
    [
        "--describe --topic nothing",
        "--delete --topic nothing",
        "--alter --topic nothing --partitions 2",
        "--alter --topic alpha --partitions 2",
        "--create --topic alpha",
        "--create --topic bad/name",
        "--create --topic delta --partitions 0",
        "--create --topic delta --replication-factor 0",
        "--create --topic delta --replication-factor 5",
        "--create --topic delta --replica-assignment 1:1",
        "--create --topic delta --replica-assignment 1,1:2",
        "--create --topic delta --config no.such=1",
        "--create --topic delta --config retention.ms=soon",
        "--describe --topic-id AAAAAAAAAAAAAAAAAAAAAg",
        # Bad usage.
        "",
        "--list --describe",
        "--list --partitions 3",
        "--create",
        "--alter --topic alpha",
        "--describe --if-exists",
        "--describe --topics-with-overrides --unavailable-partitions",
        "--create --topic a --replica-assignment 1 --partitions 1",
        "--list --if-exists",
        "--delete --topic a --if-not-exists",
        "--create --topic a --exclude-internal",
    ],
)
def test_the_same_is_refused(tools: Tools, words: str) -> None:
    tools.same_failure("topics", *words.split())


def test_a_topic_too_many_deletes_none(tools: Tools) -> None:
    ours, theirs = tools.both("topics", "--delete", "--topic", "alpha", "--topic", "beta")
    assert (ours.status, theirs.status) == (1, 1)
    for each in (ours, theirs):
        assert (
            "Found multiple arguments for option topic, but you asked for only one" in each.output
        )
    assert {"alpha", "beta"} < set(tools.run("topics", "--list").splitlines())


def test_a_topic_of_another_id_is_described_by_its_id(tools: Tools) -> None:
    described = tools.run("topics", "--describe", "--topic", "beta")
    (topic_id,) = re.findall(r"TopicId: (\S+)", described)
    by_id = tools.same("topics", "--describe", "--topic-id", topic_id)
    assert by_id.splitlines()[0] == described.splitlines()[0]


def test_topics_change_as_kafkas_tool_would_change_them(tools: Tools) -> None:
    for ours, name in ((True, "mine"), (False, "theirs")):
        for words in (
            f"--create --topic {name} --partitions 2 --config segment.bytes=2000000",
            f"--alter --topic {name} --partitions 4",
            f"--alter --topic {name} --partitions 6 --replica-assignment 1,1,1,1,1,1",
        ):
            ended = (tools.ask if ours else tools.ask_kafka)("topics", *words.split())
            assert ended.status == 0, ended
    mine = tools.run("topics", "--describe", "--topic", "mine")
    theirs = tools.run("topics", "--describe", "--topic", "theirs")
    assert re.sub(r"TopicId: \S+", "", mine.replace("mine", "theirs")) == re.sub(
        r"TopicId: \S+", "", theirs
    )
    assert "PartitionCount: 6\tReplicationFactor: 1\tConfigs: " in mine
    assert "segment.bytes=2000000" in mine
    assert tools.run("topics", "--delete", "--topic", "mi.e") == ""
    assert "mine" not in tools.run("topics", "--list").splitlines()


def test_json(tools: Tools) -> None:
    assert {"alpha", "beta", "gamma"} <= set(json.loads(tools.run("topics", "--list", "--json")))
    (beta,) = json.loads(tools.run("topics", "--describe", "--topic", "beta", "--json"))
    assert (beta["topic"], beta["partitionCount"], beta["replicationFactor"]) == ("beta", 1, 1)
    assert beta["configs"]["cleanup.policy"] == "compact"
    (partition,) = beta["partitions"]
    assert (partition["leader"], partition["replicas"], partition["isr"]) == (1, [1], [1])
    created = json.loads(tools.run("topics", "--create", "--topic", "zeta", "--json"))
    assert created["topic"] == "zeta"
    assert json.loads(tools.run("topics", "--delete", "--topic", "zeta", "--json")) == {
        "deleted": ["zeta"]
    }
