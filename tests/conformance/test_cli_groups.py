"""`moldau consumer-groups` beside Apache Kafka's kafka-consumer-groups on the same broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client.admin import Admin, NewTopic
from moldau.client.consumer import Consumer
from moldau.client.producer import Producer
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from support.cli import Tools, same_lines, same_refusal
from support.java import KafkaTools
from support.processes import BrokerProcess, kafka_missing
from support.waiting import eventually

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

START_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def tools(broker: BrokerProcess) -> Iterator[Tools]:
    with Admin({"bootstrap.servers": broker.bootstrap}) as admin:
        admin.create_topics([NewTopic("orders", 3), NewTopic("a-topic-with-a-long-name", 1)])
        with Producer({"bootstrap.servers": broker.bootstrap}) as producer:
            for number in range(30):
                producer.send("orders", b"v", partition=number % 3, timestamp=START_MS + number)
        admin.alter_consumer_group_offsets(
            "idle",
            {
                TopicPartition("orders", 0): OffsetAndMetadata(4, "note", 0),
                TopicPartition("orders", 1): OffsetAndMetadata(10),
                TopicPartition("a-topic-with-a-long-name", 0): OffsetAndMetadata(0),
            },
        )
        with KafkaTools(broker.bootstrap) as kafka:
            yield Tools(broker.bootstrap, kafka)


@pytest.fixture(scope="module")
def members(broker: BrokerProcess, tools: Tools) -> Iterator[None]:
    """Two members of a classic group, one of them static, and one of the new protocol."""
    common = {
        "bootstrap.servers": broker.bootstrap,
        "auto.offset.reset": "earliest",
        # Nobody polls while the tools are run.
        "max.poll.interval.ms": 3_600_000,
    }
    classic = common | {"group.id": "busy", "client.id": "reader", "heartbeat.interval.ms": 100}
    new = common | {"group.id": "modern", "group.protocol": "consumer"}
    with (
        Consumer(classic) as one,
        Consumer(classic | {"group.instance.id": "static-1"}) as two,
        Consumer(new) as three,
    ):
        for consumer in (one, two, three):
            consumer.subscribe(["orders"])

        def is_settled() -> bool:
            for consumer in (one, two, three):
                consumer.poll(0.05)
            sizes = [len(each.assignment()) for each in (one, two, three)]
            return sum(sizes[:2]) == 3 and 0 not in sizes

        eventually(is_settled, what="all partitions are assigned")
        one.commit_sync()
        two.commit_sync()
        # They stay members while others are asked, by heartbeats of their own.
        yield


def same(tools: Tools, words: str) -> list[str]:
    return same_lines(tools, "consumer-groups", words)


@pytest.mark.parametrize(
    "words",
    [
        "--list",
        "--list --state",
        "--list --state empty",
        "--list --type",
        "--list --type classic --state Stable,empty",
        "--list --type consumer --state",
        "--describe --group idle",
        "--describe --group idle --verbose",
        "--describe --group idle --members",
        "--describe --group idle --members --verbose",
        "--describe --group idle --state",
        "--describe --group idle --state --verbose",
        "--describe --group busy",
        "--describe --group busy --offsets --verbose",
        "--describe --group busy --members",
        "--describe --group busy --members --verbose",
        "--describe --group busy --state",
        "--describe --group modern --members --verbose",
        "--describe --group modern --state --verbose",
        "--describe --group modern",
        "--describe --all-groups --state",
        "--describe --group nobody",
        "--describe --group nobody --members",
        "--validate-regex a.*",
        "--validate-regex a(b",
        "--validate-regex a(?=b)",
        "--validate-regex *a",
        "--validate-regex [a",
        "--validate-regex (a)\\1",
    ],
)
@pytest.mark.usefixtures("members")
def test_groups_are_shown_alike(tools: Tools, words: str) -> None:
    assert same(tools, words)


RESET = "--reset-offsets --dry-run --group idle "


@pytest.mark.parametrize(
    ("words", "offsets"),
    [
        ("--topic orders --to-offset 5", {0: 5, 1: 5, 2: 5}),
        ("--topic orders:0,2 --to-offset 99", {0: 10, 2: 10}),
        ("--topic orders:1 --to-offset -3", {1: 0}),
        ("--topic orders --to-earliest", {0: 0, 1: 0, 2: 0}),
        ("--topic orders --to-latest", {0: 10, 1: 10, 2: 10}),
        ("--topic orders --to-current", {0: 4, 1: 10, 2: 10}),
        ("--topic orders:0,1 --shift-by -3", {0: 1, 1: 7}),
        ("--topic orders:0 --shift-by 100", {0: 10}),
        ("--topic orders --to-datetime 2023-11-14T22:13:20.012", {0: 4, 1: 4, 2: 4}),
        ("--topic orders:0 --to-datetime 2023-11-15T00:13:20.001+02:00", {0: 1}),
        ("--topic orders:0 --by-duration PT0S", {0: 10}),
        ("--topic orders:0 --by-duration P10000D", {0: 0}),
    ],
)
def test_resets_are_planned_alike(tools: Tools, words: str, offsets: dict[int, int]) -> None:
    lines = same(tools, RESET + words)
    rows = [line.split() for line in lines if line.startswith("idle ")]
    assert {int(row[2]): int(row[3]) for row in rows} == offsets


@pytest.mark.parametrize(
    "words",
    [
        RESET + "--all-topics --to-latest",
        RESET + "--all-topics --to-current --export",
        "--reset-offsets --group idle --topic orders:0 --to-earliest",
        "--reset-offsets --dry-run --group unborn --topic orders --to-latest",
        "--reset-offsets --dry-run --group idle --group unborn --topic orders:0 --to-latest",
        "--reset-offsets --dry-run --group idle --group unborn --topic orders:0 --to-latest "
        "--export",
        RESET + "--topic orders:7 --to-latest",
        "--reset-offsets --execute --group busy --topic orders --to-latest",
    ],
)
@pytest.mark.usefixtures("members")
def test_other_resets_print_alike(tools: Tools, words: str) -> None:
    assert same(tools, words)


@pytest.mark.parametrize(
    "words",
    [
        "--list --describe --all-groups",
        "--describe --group a --all-groups",
        "--list --group a",
        "--list --state Sleepy",
        "--list --type share",
        "--describe --group idle --state Empty",
        "--delete --group idle --topic orders",
        "--reset-offsets --group idle --topic orders --dry-run --execute --to-latest",
        "--reset-offsets --group idle --dry-run --to-latest",
        "--reset-offsets --group idle --topic orders --dry-run --to-latest --to-earliest",
        RESET + "--topic orders:x --to-latest",
        RESET + "--topic orders:2 --shift-by 1",
        "--topic orders --list",
    ],
)
def test_bad_usage_is_refused_in_kafkas_words(tools: Tools, words: str) -> None:
    same_refusal(tools, "consumer-groups", words)


def test_exported_offsets_are_imported(tools: Tools, tmp_path: Path) -> None:
    def committed() -> dict[str, str]:
        out = tools.run("consumer-groups", "--describe", "--group", "traveller")
        rows = [line.split() for line in out.splitlines()[2:]]
        return {f"{row[1]}-{row[2]}": row[3] for row in rows}

    reset = ("--reset-offsets", "--group", "traveller")
    tools.run("consumer-groups", *reset, "--topic", "orders", "--to-offset", "3", "--execute")
    before = committed()
    assert before == {"orders-0": "3", "orders-1": "3", "orders-2": "3"}
    export = (*reset, "--all-topics", "--to-current", "--dry-run", "--export")
    ours, theirs = tools.both("consumer-groups", *export)
    assert sorted(ours.output.splitlines()) == sorted(theirs.output.splitlines())
    plan = tmp_path / "plan.csv"
    # What Kafka's tool exported is imported by ours.
    plan.write_text(theirs.output.strip() + "\n")
    tools.run("consumer-groups", *reset, "--topic", "orders", "--to-latest", "--execute")
    assert set(committed().values()) == {"10"}
    dry = same(tools, f"--reset-offsets --group traveller --from-file {plan} --dry-run")
    assert len(dry) == 5
    assert set(committed().values()) == {"10"}
    tools.run("consumer-groups", *reset, "--from-file", str(plan), "--execute")
    assert committed() == before
    other = tools.run(
        "consumer-groups", "--reset-offsets", "--group", "other", "--from-file", str(plan),
        "--dry-run", "--json",
    )  # fmt: skip
    assert '"group": "other"' in other


def test_offsets_and_groups_are_deleted(tools: Tools) -> None:
    for group in ("doomed", "doomed-too", "doomed-by-kafka"):
        tools.run(
            "consumer-groups", "--reset-offsets", "--group", group, "--topic", "orders",
            "--to-latest", "--execute",
        )  # fmt: skip
    delete = "--delete-offsets --group doomed --topic orders:0 --topic missing"
    out = tools.run("consumer-groups", *delete.split())
    theirs = tools.ask_kafka("consumer-groups", *delete.replace(":0", ":1").split()).output
    # A trailing number is the only difference between the two partitions.
    assert out == theirs.replace("1          Successful", "0          Successful")
    left = tools.run("consumer-groups", "--describe", "--group", "doomed").split("\n")
    assert [line.split()[2] for line in left if line.startswith("doomed")] == ["2"]
    out = tools.run("consumer-groups", "--delete", "--group", "doomed", "--group", "doomed-too")
    assert out == (
        "Deletion of requested consumer groups ('doomed', 'doomed-too') was successful.\n"
    )
    assert "doomed-too" not in tools.run("consumer-groups", "--list").split()
    theirs = tools.ask_kafka("consumer-groups", "--delete", "--group", "doomed-by-kafka").output
    assert theirs == "Deletion of requested consumer groups ('doomed-by-kafka') was successful.\n"


@pytest.mark.parametrize(
    "words",
    [
        "--delete --group nobody",
        "--delete --group busy",
        "--delete-offsets --group nobody --topic orders:0",
        "--delete-offsets --group busy --topic orders",
    ],
)
@pytest.mark.usefixtures("members")
def test_what_cannot_be_deleted_is_told_alike(tools: Tools, words: str) -> None:
    assert same(tools, words)


def test_json_and_an_unreachable_broker(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = tools.ask("consumer-groups", "--describe", "--group", "idle", "--json")
    (group,) = ended.json
    assert group["state"] == "Empty"
    assert {(row["topic"], row["partition"], row["lag"]) for row in group["offsets"]} == {
        ("orders", 0, 6),
        ("orders", 1, 0),
        ("a-topic-with-a-long-name", 0, 0),
    }
    monkeypatch.setattr("moldau.cli.support.connecting.REACHABLE_SECONDS_MAX", 0.1)
    nobody = Tools("127.0.0.1:1").ask("consumer-groups", "--list")
    assert nobody.status == 1
    assert len(nobody.err.splitlines()) == 1
    assert "127.0.0.1:1" in nobody.err
