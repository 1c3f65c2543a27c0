"""The performance tools: the lines of Apache Kafka's, with figures that are true."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client.admin import Admin, NewTopic
from moldau.client.consumer import Consumer
from moldau.client.topics import TopicPartition
from support.cli import Tools, same_refusal
from support.java import KafkaTools
from support.processes import BrokerProcess, kafka_missing

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

NUMBER = re.compile(r"-?\d+(\.\d+)?|NaN|-?Infinity")


@pytest.fixture(scope="module")
def tools(broker: BrokerProcess) -> Iterator[Tools]:
    with Admin({"bootstrap.servers": broker.bootstrap}) as admin:
        admin.create_topics([NewTopic(name, 1) for name in ("perf", "kafkas", "latency", "paid")])
    with KafkaTools(broker.bootstrap) as kafka:
        yield Tools(broker.bootstrap, kafka)


def lines(text: str) -> list[str]:
    """Without those that a producer prints every five seconds, if it takes so long."""
    return [line for line in text.splitlines() if not line.endswith(" ms max latency.")]


def shapes(text: str) -> list[str]:
    """The lines with all figures masked."""
    return [NUMBER.sub("N", line) for line in lines(text)]


def values(tools: Tools, topic: str) -> list[bytes]:
    found: list[bytes] = []
    with Consumer({"bootstrap.servers": tools.bootstrap}) as consumer:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning()
        end = consumer.end_offsets([partition])[partition]
        while consumer.position(partition) < end:
            found += [record.value for record in consumer.poll(1.0)]
    return found


def test_producer_lines_are_kafkas(tools: Tools) -> None:
    words = "--num-records 600 --record-size 50 --throughput -1 --warmup-records 100 --topic"
    out = tools.run("producer-perf-test", *words.split(), "perf")
    theirs = tools.ask_kafka("producer-perf-test", *words.split(), "kafkas").output
    assert shapes(out) == shapes(theirs)
    assert lines(out)[1].startswith("600 records sent, ")
    assert lines(out)[2].startswith("500 steady state records sent, ")
    sent = values(tools, "perf")
    assert len(sent) == 600
    assert all(re.fullmatch(rb"[A-Z]{50}", value) for value in sent)
    # Random, and not one text again and again.
    assert len(set(sent)) == 600


def test_payloads_of_a_file_and_numbers_at_a_limited_rate(tools: Tools, tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_text("red;green;blue;")
    before = len(values(tools, "perf"))
    words = f"--topic perf --num-records 30 --payload-file {file} --payload-delimiter ;"
    out = tools.run("producer-perf-test", *words.split(), "--throughput", "100")
    assert out.splitlines()[:2] == [f"Reading payloads from: {file}", "Number of records read: 3"]
    rate = float(out.splitlines()[2].split()[3])
    assert rate < 150
    sent = values(tools, "perf")[before:]
    assert len(sent) == 30
    assert set(sent) <= {b"red", b"green", b"blue"}
    words = "--topic perf --num-records 3 --payload-monotonic --throughput -1"
    tools.run("producer-perf-test", *words.split(), "--command-property", "acks=1", "linger.ms=0")
    assert values(tools, "perf")[-3:] == [b"0", b"1", b"2"]


def test_transactions_and_metrics(tools: Tools) -> None:
    words = "--topic paid --num-records 20 --payload-monotonic --throughput 1000 --print-metrics"
    out = tools.run(
        "producer-perf-test", *words.split(), "--transaction-duration-ms", "5"
    ).splitlines()
    assert out[0].startswith("20 records sent, ")
    assert out[1] == ""
    assert out[2].split() == ["Metric", "Name", "Value"]
    total = "producer-metrics:record-send-total:{client-id=perf-producer-client}"
    (line,) = [line for line in out if line.startswith(total)]
    assert line.split(" : ")[1] == "20.000"
    # Every transaction ends in a marker, which takes an offset.
    with Consumer({"bootstrap.servers": tools.bootstrap}) as consumer:
        partition = TopicPartition("paid", 0)
        assert consumer.end_offsets([partition])[partition] > 20


@pytest.mark.parametrize("words", ["", "--show-detailed-stats --reporting-interval 1"])
def test_consumer_lines_are_kafkas(tools: Tools, words: str) -> None:
    words = f"--topic kafkas --num-records 600 --timeout 60000 {words}"
    out = tools.run("consumer-perf-test", *words.split())
    theirs = tools.ask_kafka("consumer-perf-test", *words.split()).output
    # How many reports there are depends on how fast it was.
    assert set(shapes(theirs)[:2]) >= set(shapes(out)[:2])
    if "detailed" not in words:
        row = out.splitlines()[1].split(", ")
        assert (row[2], row[4]) == ("0.0286", "600")
        assert len(row) == len(out.splitlines()[0].split(", "))


def test_a_consumer_that_waits_too_long_says_so(tools: Tools) -> None:
    words = "--topic kafkas --num-records 700 --hide-header --group again --timeout"
    # Long enough to join the group and to read what there is.
    out = tools.run("consumer-perf-test", *words.split(), "5000").splitlines()
    assert out[0].startswith(
        "WARNING: Exiting before consuming the expected number of records: timeout (5000 ms)"
    )
    assert out[1].split(", ")[4] == "600"
    # The group has read everything: there is nothing left for a second run.
    out = tools.run("consumer-perf-test", *words.split(), "300").splitlines()
    assert out[1].split(", ")[4] == "0"


def test_latency_lines_are_kafkas(tools: Tools) -> None:
    words = "--topic latency --num-records 5 --producer-acks all --record-size 20"
    words += " --record-key-size 3 --num-headers 2 --record-header-key-size 4"
    words += " --record-header-size 5"
    out = tools.run("e2e-latency", *words.split())
    theirs = tools.ask_kafka("e2e-latency", *words.split()).output
    # Java prints very short times with an exponent.
    assert shapes(out) == shapes(theirs.replace("E-", ""))


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("producer-perf-test", "--topic t --num-records 0 --record-size 1 --throughput 1"),
        ("producer-perf-test", "--topic t --num-records 1 --record-size 0 --throughput 1"),
        (
            "producer-perf-test",
            "--topic t --num-records 5 --record-size 1 --throughput 1 --warmup-records 5",
        ),
        ("consumer-perf-test", "--topic t --include u --num-records 1"),
        ("e2e-latency", "--topic t --num-records 1 --producer-acks 0 --record-size 1"),
        ("e2e-latency", "--topic t --num-records 0 --producer-acks 1 --record-size 1"),
        ("share-consumer-perf-test", "--num-records 1"),
    ],
)
def test_bad_usage_is_refused_in_kafkas_words(tools: Tools, tool: str, words: str) -> None:
    if tool == "producer-perf-test":
        # Its parser puts the usage in front.
        ours, theirs = tools.both(tool, *words.split())
        assert (ours.status, theirs.status) == (1, 1)
        said = theirs.output.splitlines()[-1].removeprefix("kafka-producer-perf-test: error: ")
        assert said in ours.output
    else:
        same_refusal(tools, tool, words)
