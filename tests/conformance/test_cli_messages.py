"""What tools say about things that a broker does not have: in a user's words, in one line."""

from __future__ import annotations

import pytest

from moldau.client import Admin
from moldau.client.admin import NewTopic
from support.cli import moldau_cli, moldau_console
from support.processes import BrokerProcess


def test_acls_without_an_authorizer(broker: BrokerProcess) -> None:
    ended = moldau_cli("acls", "--bootstrap-server", broker.bootstrap, "--list")
    assert ended.status == 1
    assert ended.out + ended.err == (
        "Error while executing ACL command: No Authorizer is configured on the broker\n"
    )


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
