"""`moldau configs` for quotas and SCRAM credentials, beside Apache Kafka's own tool.

The broker is Apache Kafka, which serves both.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from support.cli import Tools
from support.java import KafkaTools
from support.processes import apache_kafka, kafka_missing
from support.waiting import eventually

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    with (
        apache_kafka(tmp_path_factory.mktemp("kafka")) as broker,
        KafkaTools(broker.bootstrap) as kafka,
    ):
        yield Tools(broker.bootstrap, kafka)


def alter(tools: Tools, *words: str) -> str:
    return tools.run("configs", "--alter", *words)


@pytest.mark.parametrize(
    ("entity", "added", "key"),
    [
        ("--user alice", "producer_byte_rate=12345678", "producer_byte_rate"),
        ("--user-defaults", "consumer_byte_rate=1024", "consumer_byte_rate"),
        ("--client app", "request_percentage=50", "request_percentage"),
        ("--user alice --client app", "consumer_byte_rate=1e3", "consumer_byte_rate"),
        (
            "--entity-type users --entity-name bob --entity-type clients --entity-default",
            "controller_mutation_rate=0.5",
            "controller_mutation_rate",
        ),
        ("--ip 127.0.0.1", "connection_creation_rate=10", "connection_creation_rate"),
        ("--ip-defaults", "connection_creation_rate=20", "connection_creation_rate"),
    ],
)
def test_quotas(tools: Tools, entity: str, added: str, key: str) -> None:
    words = entity.split()
    done = alter(tools, *words, "--add-config", added)
    assert done == tools.ask_kafka("configs", "--alter", *words, "--add-config", added).output
    eventually(
        lambda: key in tools.ask_kafka("configs", "--describe", *words).output,
        what=f"{added} is set",
    )
    assert key in tools.same("configs", "--describe", *words)
    assert alter(tools, *words, "--delete-config", key) == done
    eventually(
        lambda: key not in tools.run("configs", "--describe", *words), what=f"{key} is not set"
    )
    assert tools.same("configs", "--describe", *words) == ""


def test_credentials(tools: Tools) -> None:
    other = "SCRAM-SHA-512=[password=other]"
    alter(tools, "--user", "carol", "--add-config", other)
    added = "SCRAM-SHA-256=[iterations=8192,password=secret]"
    done = alter(tools, "--user", "carol", "--add-config", added)
    assert done == "Completed updating config for user carol.\n"
    assert "secret" not in done
    eventually(
        lambda: "8192" in tools.run("configs", "--describe", "--user", "carol"), what="it is known"
    )
    shown = tools.same("configs", "--describe", "--user", "carol")
    assert shown == (
        "SCRAM credential configs for user-principal 'carol' are SCRAM-SHA-256=iterations=8192, "
        "SCRAM-SHA-512=iterations=4096\n"
    )
    assert shown == tools.same("configs", "--describe", "--entity-type", "users")
    ended = tools.ask("configs", "--alter", "--user", "carol", "--add-config", f"{added},{other}")
    assert ended.status == 1
    assert "cannot be altered twice in the same request" in ended.err
    assert "secret" not in ended.err
    for name in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        alter(tools, "--user", "carol", "--delete-config", name)
    eventually(
        lambda: not tools.run("configs", "--describe", "--entity-type", "users"), what="it is gone"
    )
    tools.same("configs", "--describe", "--user", "carol")


def test_all_entities_of_a_type(tools: Tools) -> None:
    for name in ("erin", "frank"):
        alter(tools, "--user", name, "--add-config", "producer_byte_rate=1000")
    eventually(
        lambda: tools.run("configs", "--describe", "--entity-type", "users").count("\n") == 2,
        what="both have a quota",
    )
    tools.same("configs", "--describe", "--entity-type", "users", ordered=False)
    assert (
        tools.same("configs", *["--describe", "--entity-type", "users", "--entity-type", "clients"])
        == ""
    )
    assert tools.same("configs", "--describe", "--entity-type", "ips") == ""
    found = json.loads(tools.run("configs", "--describe", "--user", "erin", "--json"))
    assert found["quotas"] == [{"entity": {"user": "erin"}, "values": {"producer_byte_rate": 1000}}]
    for name in ("erin", "frank"):
        alter(tools, "--user", name, "--delete-config", "producer_byte_rate")


@pytest.mark.parametrize(
    "words",
    [
        "--alter --user alice --add-config producer_byte_rate=many",
        "--alter --user alice --delete-config producer_byte_rate",
    ],
)
def test_the_same_is_refused(tools: Tools, words: str) -> None:
    tools.same_failure("configs", *words.split())
