"""`moldau configs` and `client-metrics` beside Apache Kafka's on the same broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cli import Tools
from support.java import KafkaTools
from support.processes import BrokerProcess, kafka_missing

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))


@pytest.fixture(scope="module")
def tools(broker: BrokerProcess) -> Iterator[Tools]:
    with KafkaTools(broker.bootstrap) as kafka:
        tools = Tools(broker.bootstrap, kafka)
        tools.run("topics", "--create", "--topic", "alpha")
        yield tools


def alter(tools: Tools, *words: str) -> str:
    return tools.run("configs", "--alter", *words)


@pytest.mark.parametrize(
    ("entity", "added", "key"),
    [
        ("--topic alpha", "retention.ms=5000,cleanup.policy=[compact,delete]", "retention.ms"),
        ("--entity-type topics --entity-name alpha", "segment.bytes=2000000", "segment.bytes"),
        ("--broker 1", "log.cleaner.threads=2", "log.cleaner.threads"),
        ("--broker-defaults", "log.retention.ms=7000", "log.retention.ms"),
        ("--entity-type brokers --entity-default", "num.io.threads=9", "num.io.threads"),
        ("--group readers", "consumer.session.timeout.ms=46000", "consumer.session.timeout.ms"),
        ("--client-metrics watch", "interval.ms=1000,metrics=[a.,b.]", "metrics"),
    ],
)
def test_what_is_altered_is_described_as_by_kafka(
    tools: Tools, entity: str, added: str, key: str
) -> None:
    words = entity.split()
    done = alter(tools, *words, "--add-config", added)
    assert done == tools.ask_kafka("configs", "--alter", *words, "--add-config", added).output
    described = tools.same("configs", "--describe", *words)
    assert key in described
    assert alter(tools, *words, "--delete-config", key) == done
    assert key not in tools.same("configs", "--describe", *words)
    for other in (part.partition("=")[0] for part in added.split(",") if "=" in part):
        if other != key:
            alter(tools, *words, "--delete-config", other)


def test_values_from_a_file(tools: Tools, tmp_path: Path) -> None:
    file = tmp_path / "new.properties"
    file.write_text("retention.ms=1234\ncleanup.policy=compact,delete\n")
    alter(tools, "--topic", "alpha", "--add-config-file", str(file))
    described = tools.same("configs", "--describe", "--topic", "alpha")
    assert "retention.ms=1234" in described
    assert "cleanup.policy=compact,delete" in described
    alter(tools, "--topic", "alpha", "--delete-config", "retention.ms,cleanup.policy")


@pytest.mark.parametrize(
    "words",
    [
        "--describe --topic alpha",
        "--describe --topic alpha --all",
        "--describe --topic nothing",
        "--describe --entity-type topics",
        "--describe --entity-type brokers",
        "--describe --broker 1 --all",
        "--describe --broker 9",
        "--describe --broker-logger 1",
        "--describe --group nobody",
        "--describe --entity-type groups",
        "--describe --client-metrics nothing",
        "--describe --entity-type client-metrics",
    ],
)
def test_the_same_is_described(tools: Tools, words: str) -> None:
    tools.same("configs", *words.split())


@pytest.mark.parametrize(
    "words",
    [
        "",
        "--alter --describe --topic alpha",
        "--describe",
        "--describe --entity-type topic --entity-name alpha",
        "--describe --entity-type topics --entity-type brokers",
        "--describe --entity-type topics --topic alpha",
        "--describe --topic alpha --entity-name alpha",
        "--describe --broker x",
        "--describe --ip not_a_host!",
        "--describe --entity-type topics --entity-default",
        "--describe --entity-type broker-loggers",
        "--describe --topic alpha --add-config a=b",
        "--alter --entity-type topics --add-config a=b",
        "--alter --entity-type users --add-config a=b",
        "--alter --topic alpha",
        "--alter --topic alpha --add-config a=b --add-config-file f",
        "--alter --topic alpha --add-config a",
        "--alter --topic alpha --add-config a,b=c",
        "--alter --topic alpha --add-config a%b=c",
        "--alter --user alice --add-config no_such=1",
        "--alter --client app --add-config SCRAM-SHA-256=[password=x]",
        "--alter --user alice --add-config SCRAM-SHA-256=[iterations=1,password=x]",
        "--alter --user-defaults --add-config SCRAM-SHA-256=[password=x]",
        "--alter --user alice --add-config SCRAM-SHA-256=[password=x],producer_byte_rate=1",
        "--alter --ip 127.0.0.1 --add-config producer_byte_rate=1",
        "--alter --broker-logger 1 --add-config no.such.logger=INFO",
    ],
)
def test_the_same_is_refused(tools: Tools, words: str) -> None:
    tools.same_failure("configs", *words.split())


def test_what_the_broker_refuses_is_one_line(tools: Tools) -> None:
    ended = tools.ask("configs", "--alter", "--topic", "alpha", "--add-config", "retention.ms=soon")
    assert (ended.status, ended.out) == (1, "")
    assert ended.err.count("\n") == 1
    assert "Error while executing config command" in ended.err
    assert "soon" in ended.err


def test_json(tools: Tools) -> None:
    alter(tools, "--topic", "alpha", "--add-config", "retention.ms=4321")
    (found,) = json.loads(tools.run("configs", "--describe", "--topic", "alpha", "--json"))
    assert found["configs"]["retention.ms"]["value"] == "4321"
    alter(tools, "--topic", "alpha", "--delete-config", "retention.ms")


def test_client_metrics(tools: Tools) -> None:
    words = ["--alter", "--name", "one", "--metrics", "a.,b.", "--match", "client_id=x.*"]
    assert tools.same("client-metrics", *words) == "Altered client metrics config for one.\n"
    assert tools.same("client-metrics", "--list") == "one\n"
    tools.same("client-metrics", "--alter", "--name", "one", "--interval", "1000")
    described = tools.same("client-metrics", "--describe", "--name", "one", ordered=False)
    assert "  interval.ms=1000\n" in described
    assert tools.same("client-metrics", "--describe", ordered=False) == described
    assert "doesn't exist" in tools.same("client-metrics", "--describe", "--name", "two")
    tools.same("client-metrics", "--alter", "--name", "one", "--interval", "")
    tools.same("client-metrics", "--describe", "--name", "one", ordered=False)
    made = tools.run("client-metrics", "--alter", "--generate-name", "--interval", "5000")
    name = made.removeprefix("Altered client metrics config for ").removesuffix(".\n")
    assert len(name) == 22
    assert set(json.loads(tools.run("client-metrics", "--list", "--json"))) == {"one", name}
    for each in ("one", name):
        tools.run("client-metrics", "--delete", "--name", each)
    assert tools.same("client-metrics", "--list") == "\n"


@pytest.mark.parametrize(
    "words",
    [
        "",
        "--list --describe",
        "--list --name a",
        "--delete",
        "--delete --name a --interval 5",
        "--alter",
        "--alter --name a --generate-name",
        "--alter --name a --interval soon",
        "--alter --name a --interval 5",
        "--alter --name a --match nothing=1",
    ],
)
def test_client_metrics_refuse_the_same(tools: Tools, words: str) -> None:
    tools.same_failure("client-metrics", *words.split())
