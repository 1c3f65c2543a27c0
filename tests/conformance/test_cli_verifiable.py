"""The verifiable tools tell what happens as JSON, line by line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from moldau.client.admin import Admin, NewTopic
from moldau.client.topics import TopicPartition
from support.cli import Tools
from support.processes import BrokerProcess

Event = dict[str, Any]


@pytest.fixture(scope="module")
def tools(broker: BrokerProcess) -> Tools:
    with Admin({"bootstrap.servers": broker.bootstrap}) as admin:
        admin.create_topics([NewTopic("numbers", 2), NewTopic("endless", 1), NewTopic("keyed", 1)])
    return Tools(broker.bootstrap)


def told(out: str) -> list[Event]:
    events = [json.loads(line) for line in out.splitlines()]
    assert all(list(event)[:2] == ["timestamp", "name"] for event in events)
    return events


def names(events: list[Event]) -> list[str]:
    return [event["name"] for event in events]


def named(events: list[Event], name: str) -> list[Event]:
    return [event for event in events if event["name"] == name]


def test_producer_tells_of_every_message(tools: Tools) -> None:
    words = "--topic numbers --max-messages 10 --value-prefix 7 --throughput 1000"
    events = told(tools.run("verifiable-producer", *words.split()))
    assert names(events) == [
        "startup_complete",
        *["producer_send_success"] * 10,
        "shutdown_complete",
        "tool_data",
    ]
    sent = named(events, "producer_send_success")
    assert sorted(event["value"] for event in sent) == [f"7.{number}" for number in range(10)]
    assert {event["key"] for event in sent} == {None}
    assert {event["topic"] for event in sent} == {"numbers"}
    assert events[-1]["sent"] == events[-1]["acked"] == 10
    assert events[-1]["target_throughput"] == 1000


def test_keys_come_again_and_times_are_chosen(tools: Tools) -> None:
    words = "--topic keyed --max-messages 5 --repeating-keys 2 --message-create-time 5000 --acks 1"
    events = told(tools.run("verifiable-producer", *words.split()))
    sent = named(events, "producer_send_success")
    assert [event["key"] for event in sent] == ["0", "1", "0", "1", "0"]
    assert [event["offset"] for event in sent] == [0, 1, 2, 3, 4]
    words = "--topic keyed --group-id times --max-messages 1 --verbose"
    (record,) = named(told(tools.run("verifiable-consumer", *words.split())), "record_data")
    assert (record["key"], record["value"], record["offset"]) == ("0", "0", 0)


def test_a_message_that_is_refused_is_told(tools: Tools) -> None:
    words = "--topic bad/name --max-messages 1"
    events = told(tools.run("verifiable-producer", *words.split()))
    (failed,) = named(events, "producer_send_error")
    assert failed["exception"] == "class org.apache.kafka.common.errors.InvalidTopicException"
    assert (failed["topic"], failed["value"]) == ("bad/name", "0")
    assert events[-1]["acked"] == 0


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_consumer_tells_of_everything(tools: Tools, protocol: str) -> None:
    words = f"--topic numbers --group-id group-{protocol} --group-protocol {protocol}"
    events = told(tools.run("verifiable-consumer", *words.split(), "--max-messages", "7"))
    assert names(events)[0] == "startup_complete"
    assert names(events)[-1] == "shutdown_complete"
    (assigned,) = named(events, "partitions_assigned")
    assert assigned["partitions"] == [
        {"topic": "numbers", "partition": 0},
        {"topic": "numbers", "partition": 1},
    ]
    summaries = [
        each for event in named(events, "records_consumed") for each in event["partitions"]
    ]
    assert sum(each["count"] for each in summaries) == 7
    assert all(each["maxOffset"] >= each["minOffset"] >= 0 for each in summaries)
    committed = named(events, "offsets_committed")
    assert committed
    assert all(event["success"] and "error" not in event for event in committed)
    with Admin({"bootstrap.servers": tools.bootstrap}) as admin:
        found = admin.list_consumer_group_offsets(f"group-{protocol}")[f"group-{protocol}"]
    assert sum(each.offset for each in found.values() if each) == 7


def test_two_consumers_share_and_a_signal_ends_them(tools: Tools, tmp_path: Path) -> None:
    settings = tmp_path / "consumer.properties"
    settings.write_text("heartbeat.interval.ms=100\n")
    words = ["--topic", "numbers", "--group-id", "pair", "--session-timeout", "10000"]
    words += ["--command-config", str(settings)]
    with running(tools, "verifiable-consumer", *words) as (first, read_first):
        read_first(lambda event: event["name"] == "partitions_assigned")
        with running(tools, "verifiable-consumer", *words) as (second, read_second):
            event = read_second(
                lambda event: event["name"] == "partitions_assigned" and event["partitions"]
            )
            assert len(event["partitions"]) == 1
            revoked = read_first(lambda event: event["name"] == "partitions_revoked")
            assert len(revoked["partitions"]) == 2
            second.send_signal(signal.SIGTERM)
            read_second(lambda event: event["name"] == "shutdown_requested")
            read_second(lambda event: event["name"] == "shutdown_complete")
            assert second.wait(60) == 128 + signal.SIGTERM
        first.send_signal(signal.SIGINT)
        read_first(lambda event: event["name"] == "shutdown_complete")


def test_a_producer_without_end_stops_in_order(tools: Tools) -> None:
    words = ["--topic", "endless", "--throughput", "500"]
    with running(tools, "verifiable-producer", *words) as (process, read):
        read(lambda event: event["name"] == "producer_send_success" and event["offset"] == 20)
        process.send_signal(signal.SIGTERM)
        data = read(lambda event: event["name"] == "tool_data")
        assert data["sent"] == data["acked"] > 20
    with Admin({"bootstrap.servers": tools.bootstrap}) as admin:
        from moldau.client.admin import OffsetSpec

        partition = TopicPartition("endless", 0)
        end = admin.list_offsets({partition: OffsetSpec.latest()})[partition].offset
    assert end == data["acked"]


Read = Callable[[Callable[[Event], Any]], Event]


@contextmanager
def running(tools: Tools, tool: str, *words: str) -> Iterator[tuple[subprocess.Popen[str], Read]]:
    """The tool as a process, and a function that reads its events until one that fits."""
    command = [sys.executable, "-m", "moldau.cli", tool]
    command += ["--bootstrap-server", tools.bootstrap, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        output = process.stdout
        assert output is not None

        def read(fits: Callable[[Event], Any]) -> Event:
            for line in output:
                event: Event = json.loads(line)
                if fits(event):
                    return event
            raise AssertionError(f"{tool} ended")

        try:
            yield process, read
        finally:
            process.terminate()
