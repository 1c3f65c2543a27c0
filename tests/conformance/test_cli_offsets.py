"""`moldau get-offsets`, `delete-records` and `groups` beside Apache Kafka's on the same broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client import Admin, OffsetAndMetadata, Producer, TopicPartition
from support.cli import Tools
from support.java import KafkaTools
from support.processes import BrokerProcess, kafka_missing
from support.waiting import eventually

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))


@pytest.fixture(scope="module")
def tools(broker: BrokerProcess) -> Iterator[Tools]:
    with KafkaTools(broker.bootstrap) as kafka:
        tools = Tools(broker.bootstrap, kafka)
        tools.run("topics", "--create", "--topic", "one", "--partitions", "11")
        tools.run("topics", "--create", "--topic", "two", "--partitions", "2")
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            for number in range(30):
                producer.send("one", b"x", partition=number % 3, timestamp=1000 * number)
            producer.send("two", b"y", partition=1, timestamp=5000)
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            for group in ("readers", "others"):
                admin.alter_consumer_group_offsets(
                    group, {TopicPartition("one", 0): OffsetAndMetadata(3)}
                )
        yield tools


@pytest.mark.parametrize(
    "words",
    [
        "",
        "--topic one",
        "--topic one|two --exclude-internal-topics",
        "--topic one --partitions 0,2,10",
        "--topic-partitions one:0,two",
        "--topic-partitions one:1-3,two:-1",
        "--topic-partitions :1",
        "--topic-partitions t.*:0-,one:9-",
        "--topic one --time -1",
        "--topic one --time earliest",
        "--topic one --time -2",
        "--topic one --time max-timestamp",
        "--topic one --time -3",
        "--topic one --time earliest-local",
        "--topic one --time -4",
        "--topic one --time latest-tiered",
        "--topic one --time -5",
        "--topic one --time earliest-pending-upload",
        "--topic one --time 7000",
        "--topic one --time 999999999",
    ],
)
def test_the_same_offsets(tools: Tools, words: str) -> None:
    tools.same("get-offsets", *words.split())


@pytest.mark.parametrize(
    "words",
    [
        "--topic none",
        "--topic one --time soon",
        "--topic one --partitions a,b",
        "--topic-partitions one:0 --topic two",
        "--topic one --partitions 99",
    ],
)
def test_offsets_are_refused_in_the_same_words(tools: Tools, words: str) -> None:
    tools.same_failure("get-offsets", *words.split())


def test_offsets_as_json(tools: Tools) -> None:
    words = ["--topic", "two", "--time", "latest", "--json"]
    assert json.loads(tools.run("get-offsets", *words)) == [
        {"topic": "two", "partition": 0, "offset": 0},
        {"topic": "two", "partition": 1, "offset": 1},
    ]


def written(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_records_are_deleted(tools: Tools, tmp_path: Path) -> None:
    entries = [
        {"topic": "one", "partition": 0, "offset": 4},
        {"topic": "one", "partition": 1, "offset": -1},
        {"topic": "one", "partition": 2, "offset": 999},
    ]
    file = written(tmp_path / "f.json", json.dumps({"partitions": entries, "version": 1}))
    shown = tools.run("delete-records", "--offset-json-file", file)
    assert shown.splitlines()[:4] == [
        "Executing records delete operation",
        "Records delete operation completed:",
        "partition: one-0\tlow_watermark: 4",
        "partition: one-1\tlow_watermark: 10",
    ]
    assert shown.splitlines()[4].startswith("partition: one-2\terror: ")
    entries.pop()
    written(tmp_path / "f.json", json.dumps({"partitions": entries}))
    tools.same("delete-records", "--offset-json-file", file, ordered=False)
    offsets = tools.run("get-offsets", "--topic-partitions", "one:0-3", "--time", "earliest")
    assert offsets.splitlines() == ["one:0:4", "one:1:10", "one:2:0"]
    (first, _) = json.loads(tools.run("delete-records", "--offset-json-file", file, "--json"))
    assert first == {"topic": "one", "partition": 0, "lowWatermark": 4}


@pytest.mark.parametrize(
    "text",
    [
        "no json",
        '{"version": 1}',
        '{"version": 2, "partitions": []}',
        '{"partitions": [{"topic": "a", "partition": 0, "offset": 1}, '
        '{"topic": "a", "partition": 0, "offset": 2}]}',
    ],
)
def test_bad_files_are_refused_in_the_same_words(tools: Tools, text: str, tmp_path: Path) -> None:
    tools.same_failure("delete-records", "--offset-json-file", written(tmp_path / "f", text))


@pytest.mark.parametrize(
    "text",
    ["[]", '{"partitions": 1}', '{"partitions": [1]}', '{"partitions": [{"topic": "a"}]}',
     '{"partitions": [{"topic": "a", "partition": "0", "offset": 1}]}',
     '{"partitions": [{"topic": "a", "partition": 99999999999, "offset": 1}]}'],
)  # fmt: skip
def test_other_bad_files_are_one_line(tools: Tools, text: str, tmp_path: Path) -> None:
    ended = tools.ask("delete-records", "--offset-json-file", written(tmp_path / "f", text))
    assert (ended.status, ended.out, ended.err.count("\n")) == (1, "", 1)


@pytest.mark.parametrize(
    "words",
    [
        "--list",
        "--list --consumer",
        "--list --share",
        "--list --streams",
        "--list --group-type classic",
        "--list --group-type Consumer",
        "--list --protocol consumer",
    ],
)
def test_the_same_groups(tools: Tools, words: str) -> None:
    shown = tools.same("groups", *words.split(), ordered=False)
    assert shown.startswith("GROUP ")


def test_groups_as_json(tools: Tools) -> None:
    found = json.loads(tools.run("groups", "--list", "--json"))
    assert {"group": "readers", "type": "Classic", "protocol": ""} in found


@pytest.mark.parametrize(
    "words", ["", "--list --group-type odd", "--list --share --consumer", "--consumer --protocol a"]
)
def test_groups_are_refused_in_the_same_words(tools: Tools, words: str) -> None:
    tools.same_failure("groups", *words.split())


def test_an_unreachable_broker_is_one_line(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    from moldau.cli.support import connecting

    monkeypatch.setattr(connecting, "REACHABLE_SECONDS_MAX", 1.0)
    nobody = Tools("127.0.0.1:1")
    for tool, words in (("get-offsets", []), ("groups", ["--list"]), ("topics", ["--list"])):
        ended = nobody.ask(tool, *words)
        assert (ended.status, ended.out) == (1, "")
        assert ended.err.count("\n") == 1
        assert "127.0.0.1:1: connection refused" in ended.err
    eventually(lambda: tools.ask("groups", "--list").status == 0, what="the other one answers")
