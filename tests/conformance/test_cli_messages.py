"""What tools say about things that a broker does not have: in a user's words, in one line."""

from __future__ import annotations

import pytest

from moldau.client import Admin
from moldau.client.admin import NewTopic
from support.cli import moldau_cli, moldau_console
from support.processes import BrokerProcess


@pytest.mark.parametrize(
    ("words", "feature"),
    [
        ("acls --list", "ACLs."),
    ],
)
def test_a_feature_that_the_broker_does_not_support(
    broker: BrokerProcess, words: str, feature: str
) -> None:
    tool, *rest = words.split()
    ended = moldau_cli(tool, "--bootstrap-server", broker.bootstrap, *rest)
    said = ended.out + ended.err
    assert ended.status == 1
    assert f"does not support {feature}" in said
    assert said.count("\n") == 1
    assert "node -1" not in said
    assert "versions" not in said


def test_a_partition_that_the_topic_does_not_have(broker: BrokerProcess) -> None:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic("narrow", 1), NewTopic("wide", 3)])
    for topic, line in (
        ("narrow", "topic narrow has no partition 7: it has only partition 0"),
        ("wide", "topic wide has no partition 7: it has partitions 0 to 2"),
    ):
        ended = moldau_console(
            "console-consumer", "--bootstrap-server", broker.bootstrap, "--topic", topic,
            "--partition", "7", "--timeout-ms", "30000",
        )  # fmt: skip
        assert ended.status == 1
        assert line in ended.err.splitlines()


def test_the_broker_of_the_environment(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOLDAU_BOOTSTRAP_SERVERS", broker.bootstrap)
    for words in (
        "topics --create --topic unaddressed",
        "topics --describe --topic unaddressed",
        "get-offsets --topic unaddressed",
        "cluster cluster-id",
        "features describe",
        "consumer-groups --list",
        "metadata-quorum describe --status",
        "transactions list",
    ):
        ended = moldau_cli(*words.split())
        assert ended.status == 0, ended
