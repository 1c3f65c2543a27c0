"""Every tool that talks to a cluster does so to a secured one, with nothing but --command-config.

A table has a line for each of them; a tool that is added without a line, or without the option,
fails.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.cli.catalogue import TOOLS, find_tool
from moldau.cli.main import parser_of
from moldau.cli.support.arguments import Parser
from support.cli import moldau_cli, moldau_console
from support.pasted import consecutive_ports, started

# What each prints of a cluster whose topic `seen` has the records 1 to 19. FOLDER is the test's.
TABLE: dict[str, tuple[str, str]] = {
    "topics": ("--describe --topic seen", "Topic: seen\t"),
    "get-offsets": ("--topic seen", "seen:0:"),
    "delete-records": ("--offset-json-file FOLDER/delete.json", "low_watermark: 1"),
    "console-producer": ("--topic typed", ""),
    "console-consumer": ("--topic seen --group c --from-beginning --max-messages 1", "1\n"),
    "console-share-consumer": ("--topic seen --group shared --max-messages 1", "1\n"),
    "groups": ("--list", "GROUP"),
    "consumer-groups": ("--list", ""),
    "share-groups": ("--list", ""),
    "streams-groups": ("--list", ""),
    "streams-application-reset": ("--application-id a --input-topics seen", ""),
    "transactions": ("list", "TransactionalId"),
    "configs": ("--describe --entity-type topics --entity-name seen", "Dynamic configs"),
    "client-metrics": ("--list", ""),
    "kafka-cluster": ("cluster-id", "Cluster ID: "),
    "features": ("describe", "Feature: metadata.version"),
    "metadata-quorum": ("describe --status", "LeaderId:"),
    "broker-api-versions": ("", "Produce(0): "),
    "log-dirs": ("--describe", '"brokers":[{"broker":1,'),
    "reassign-partitions": ("--list", "No partition reassignments found."),
    "leader-election": ("--election-type preferred --all-topic-partitions", ""),
    "replica-verification": ("", "verification process is started"),
    "acls": ("--list", "principal=User:client"),
    "delegation-tokens": ("--describe", "Calling describe token operation"),
    "producer-perf-test": (
        "--topic perf --num-records 10 --record-size 10 --throughput -1", "10 records sent",
    ),
    "consumer-perf-test": ("--topic seen --num-records 5 --timeout 30000", "start.time"),
    "share-consumer-perf-test": (
        "--topic seen --group shared-perf --num-records 5 --timeout 30000", "start.time",
    ),
    "e2e-latency": (
        "--topic latency --num-records 3 --producer-acks all --record-size 20", "Percentiles",
    ),
    "verifiable-producer": ("--topic verified --max-messages 2", '"acked":2'),
    "verifiable-consumer": (
        "--topic seen --group-id v --max-messages 2 --reset-policy earliest", "shutdown_complete",
    ),
    "verifiable-share-consumer": (
        "--topic seen --group-id w --max-messages 2 --offset-reset-strategy earliest",
        "shutdown_complete",
    ),
    "doctor": ("", "of the broker's"),
    "balance": ("status", ""),
    "streams": ("list", ""),
}  # fmt: skip
# Tools of a single machine or of brokers without security, and those whose clusters are those of
# pipelines (tests/spark has them).
WITHOUT = {
    "start", "cluster", "server-start", "server-stop", "storage", "pipelines", "spark", "security",
    "dump-log", "metadata-shell", "profile", "completion", "learn", "status", "stop", "logs",
    "destroy",
}  # fmt: skip
# Services have the settings of their clients in their own file.
SERVICES = {"connect", "console", "mirror", "monitor", "mqtt", "registry", "rest", "sql", "up"}
# These talk to a Schema Registry, too (tests/conformance/schemas), or to a port of metrics.
OF_OTHERS = {
    "avro-console-consumer", "avro-console-producer", "json-schema-console-consumer",
    "json-schema-console-producer", "protobuf-console-consumer", "protobuf-console-producer",
    "schemas", "metrics",
}  # fmt: skip
# The names that Kafka's tools had for the option.
FORMER = {
    "console-producer": "--producer.config",
    "console-consumer": "--consumer.config",
    "producer-perf-test": "--producer.config",
    "consumer-perf-test": "--consumer.config",
    "share-consumer-perf-test": "--consumer.config",
    "verifiable-producer": "--producer.config",
    "verifiable-consumer": "--consumer.config",
    "leader-election": "--admin.config",
    "streams-application-reset": "--config-file",
    "kafka-cluster": "--config",
}
# These end by a signal.
ENDLESS = {"replica-verification"}


def parsers(parser: Parser) -> Iterator[Parser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from parsers(each)


def test_the_table_is_complete() -> None:
    assert set(TABLE) | WITHOUT | SERVICES | OF_OTHERS == set(TOOLS)
    assert not set(TABLE) & (WITHOUT | SERVICES | OF_OTHERS)


@pytest.mark.parametrize("name", [each for each in TOOLS if each not in SERVICES])
def test_whoever_takes_an_address_takes_settings(name: str) -> None:
    options = [set(each._option_string_actions) for each in parsers(parser_of(TOOLS[name]))]
    for each in options:
        assert "--bootstrap-server" not in each or "--command-config" in each
    if name in TABLE:
        assert any("--command-config" in each for each in options)
    if name in FORMER:
        assert any(FORMER[name] in each for each in options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("secured")
    made = moldau_cli(
        "security", "init", "--directory", str(folder / "made"), "--port", str(consecutive_ports(2))
    )
    assert made.status == 0, made.err
    file = folder / "made" / "node-1.properties"
    with file.open("a") as config:
        # Without it there are no tokens.
        config.write("delegation.token.secret.key=a secret of the nodes\n")
    (folder / "delete.json").write_text(
        json.dumps({"partitions": [{"topic": "seen", "partition": 0, "offset": 1}], "version": 1})
    )
    with started(f"{sys.executable} -m moldau.cli server-start {file}", folder=folder):
        admin = ["--command-config", str(folder / "made" / "admin.properties")]
        created = moldau_cli("topics", "--create", "--topic", "seen", "--partitions", "1", *admin)
        assert created.status == 0, created.err
        for group in ("shared", "shared-perf"):
            altered = moldau_cli(
                "configs", "--alter", "--entity-type", "groups", "--entity-name", group,
                "--add-config", "share.auto.offset.reset=earliest", *admin,
            )  # fmt: skip
            assert altered.status == 0, altered.err
        numbers = "".join(f"{number}\n" for number in range(20))
        produced = moldau_console("console-producer", "--topic", "seen", *admin, typed=numbers)
        assert produced.status == 0, produced.err
        yield folder


@pytest.mark.parametrize("name", [name for name in TABLE if name not in ENDLESS])
def test_a_tool_with_the_settings_in_a_file(folder: Path, name: str) -> None:
    words, shown = TABLE[name]
    config = str(folder / "made" / "admin.properties")
    given = words.replace("FOLDER", str(folder)).split()
    ended = moldau_console(name, *given, "--command-config", config, typed="typed\n")
    assert ended.status == 0, ended.out + ended.err
    assert shown in ended.out
    assert find_tool([name]) is TOOLS[name]


@pytest.mark.parametrize("name", sorted(ENDLESS))
def test_an_endless_tool_with_the_settings_in_a_file(folder: Path, name: str) -> None:
    config = str(folder / "made" / "admin.properties")
    command = [sys.executable, "-m", "moldau.cli", name, "--command-config", config]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert TABLE[name][1] in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM


@pytest.mark.parametrize("name", ["topics", "console-consumer", "producer-perf-test", "doctor"])
def test_without_the_settings_a_tool_fails_in_one_line(folder: Path, name: str) -> None:
    config = dict(
        line.split("=", 1)
        for line in (folder / "made" / "admin.properties").read_text().splitlines()[1:]
    )
    words = TABLE[name][0].split()
    ended = moldau_console(name, *words, "--bootstrap-server", config["bootstrap.servers"])
    assert ended.status != 0
    assert "Traceback" not in ended.err
