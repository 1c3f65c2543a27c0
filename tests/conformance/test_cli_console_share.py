"""The tools that consume in a share group: console, performance and verifiable."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.client.admin import Admin, AlterConfigOp, ConfigResource, ConfigResourceType, NewTopic
from moldau.client.producer import Producer
from support.cli import Ended, Tools, moldau_console
from support.either import either_broker
from support.processes import BrokerProcess
from support.waiting import eventually

# A member hears of its partitions with a heartbeat; by default these come every five seconds, and
# partitions are given out once a second.
SETTINGS = {
    "group.share.assignment.interval.ms": "0",
    "group.share.min.assignment.interval.ms": "0",
    "group.share.heartbeat.interval.ms": "100",
    "group.share.min.heartbeat.interval.ms": "100",
}


@pytest.fixture(scope="module")
def share_broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    with either_broker(request, tmp_path_factory.mktemp("broker"), SETTINGS) as process:
        yield process


@pytest.fixture(scope="module")
def admin(share_broker: BrokerProcess) -> Iterator[Admin]:
    with Admin({"bootstrap.servers": share_broker.bootstrap}) as admin:
        yield admin


@pytest.fixture
def topic(request: pytest.FixtureRequest, share_broker: BrokerProcess, admin: Admin) -> str:
    """Three records in a topic, and a group of its name that begins at the first."""
    name = request.node.name.replace("[", "-").replace("]", "")
    admin.create_topics([NewTopic(name, 1)])
    group = ConfigResource(ConfigResourceType.GROUP, name)
    change = AlterConfigOp.set("share.auto.offset.reset", "earliest")
    admin.incremental_alter_configs({group: [change]})
    with Producer({"bootstrap.servers": share_broker.bootstrap}) as producer:
        for value in ("one", "two", "three"):
            producer.send(name, value)
    return name


def consume(broker: BrokerProcess, topic: str, *words: str) -> Ended:
    where = ("--bootstrap-server", broker.bootstrap, "--topic", topic, "--group", topic)
    shown = ("--formatter-property", "print.delivery=true")
    return moldau_console("console-share-consumer", *where, *shown, *words)


def test_released_records_come_again_and_accepted_ones_do_not(
    share_broker: BrokerProcess, topic: str
) -> None:
    ended = consume(share_broker, topic, "--max-messages", "3", "--release")
    assert (ended.status, ended.err) == (0, "Processed a total of 3 messages\n")
    assert ended.out.splitlines() == [
        "Delivery:1\tone",
        "Delivery:1\ttwo",
        "Delivery:1\tthree",
    ]
    ended = consume(share_broker, topic, "--max-messages", "3")
    assert ended.out.splitlines() == [
        "Delivery:2\tone",
        "Delivery:2\ttwo",
        "Delivery:2\tthree",
    ]
    ended = consume(share_broker, topic, "--timeout-ms", "500")
    assert (ended.status, ended.out) == (0, "")


def test_rejected_records_do_not_come_again(share_broker: BrokerProcess, topic: str) -> None:
    ended = consume(share_broker, topic, "--max-messages", "3", "--reject")
    assert len(ended.out.splitlines()) == 3
    ended = consume(share_broker, topic, "--timeout-ms", "500")
    assert (ended.status, ended.out) == (0, "")


def test_a_record_that_cannot_be_printed_is_rejected_on_request(
    share_broker: BrokerProcess, topic: str
) -> None:
    # None of the texts is a number of four bytes.
    words = ("--max-messages", "3", "--value-deserializer", "integer")
    ended = consume(share_broker, topic, *words)
    assert (ended.status, ended.out) == (1, "")
    assert "Unknown error when running consumer" in ended.err
    ended = consume(share_broker, topic, *words, "--reject-message-on-error")
    assert (ended.status, ended.out) == (0, "")
    assert ended.err.count("rejecting this message") == 3


def test_an_interrupt_ends_it_cleanly(
    share_broker: BrokerProcess, admin: Admin, topic: str
) -> None:
    command = [sys.executable, "-m", "moldau.cli", "console-share-consumer"]
    command += ["--bootstrap-server", share_broker.bootstrap, "--topic", topic]
    command += ["--group", topic, "--enable-systest-events"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(3)] == ["one\n", "two\n", "three\n"]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert (out, err) == ("shutdown_complete\n", "Processed a total of 3 messages\n")
    assert not admin.describe_share_groups([topic])[topic].members


def test_an_interrupted_measurement_ends_at_once(
    share_broker: BrokerProcess, admin: Admin, topic: str
) -> None:
    """And not when its consumers have waited in vain."""
    command = [sys.executable, "-m", "moldau.cli", "share-consumer-perf-test"]
    command += ["--bootstrap-server", share_broker.bootstrap, "--topic", topic, "--group", topic]
    command += ["--num-records", "1000", "--threads", "2", "--timeout", "600000"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:

        def members() -> int:
            described = admin.describe_share_groups([topic], check=False)
            return len(described[topic].members) if topic in described.values_by_key else 0

        try:
            eventually(lambda: members() == 2, what="both have joined")
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 128 + signal.SIGINT
        finally:
            process.kill()


def test_performance_of_two_consumers(share_broker: BrokerProcess, topic: str) -> None:
    tools = Tools(share_broker.bootstrap)
    words = f"--topic {topic} --group {topic} --num-records 3 --threads 2 --show-consumer-stats"
    words += " --timeout 60000"
    out = tools.run("share-consumer-perf-test", *words.split()).splitlines()
    assert out[0] == (
        "start.time, end.time, data.consumed.in.MB, MB.sec, nMsg.sec, data.consumed.in.nMsg, "
        "fetch.time.ms"
    )
    for number in (1, 2):
        client = f"perf-share-consumer-client-{number}"
        assert out[number].startswith(
            f"Share consumer {number} having client id {client} consumption metrics- "
        )
    assert out[3].split(", ")[5] == "3"
    words = f"--topic {topic} --group {topic} --num-records 1 --timeout 200 --hide-header"
    out = tools.run("share-consumer-perf-test", *words.split()).splitlines()
    assert out[0].startswith("WARNING: Exiting before consuming the expected number of records")


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_verifiable_consumer_tells_what_it_acknowledged(
    share_broker: BrokerProcess, topic: str, mode: str
) -> None:
    tools = Tools(share_broker.bootstrap)
    words = f"--topic {topic} --group-id {mode} --max-messages 3 --acknowledgement-mode {mode}"
    words += " --offset-reset-strategy earliest --verbose"
    out = tools.run("verifiable-share-consumer", *words.split())
    events: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines()]
    names = [event["name"] for event in events]
    assert names[:2] == ["startup_complete", "offset_reset_strategy_set"]
    assert names[-1] == "shutdown_complete"
    assert [event["value"] for event in events if event["name"] == "record_data"] == [
        "one",
        "two",
        "three",
    ]
    acknowledged = [event for event in events if event["name"] == "offsets_acknowledged"]
    assert all(event["success"] for event in acknowledged)
    offsets = [o for event in acknowledged for each in event["partitions"] for o in each["offsets"]]
    assert offsets == [0, 1, 2]
