"""The console producer and consumer beside Apache Kafka's on the same broker."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.broker.coordinator.machine.hashing import partition_for
from moldau.cli.console.reader import LineMessageReader, LineRecord
from moldau.client.admin import Admin, NewTopic
from moldau.client.consumer import Consumer
from moldau.client.producer import Producer
from moldau.client.topics import TopicPartition
from support.cli import CLASSES, Ended, Tools, moldau_console, same_refusal
from support.java import KafkaTools
from support.processes import ROOT, BrokerProcess, kafka_missing
from support.waiting import eventually

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

# Kafka's tool advertises the new protocol.
NOISE = re.compile(r"The consumer rebalance protocol .*\n")
STRING = "org.apache.kafka.common.serialization.StringDeserializer"


class Console:
    """Both sides' console tools on one broker."""

    def __init__(self, bootstrap: str, kafka: KafkaTools) -> None:
        self.bootstrap = bootstrap
        self.kafka = kafka

    def run(self, tool: str, words: str | list[str], typed: str = "") -> Ended:
        """Ours, in this process, with bytes as standard input and output."""
        listed = words.split() if isinstance(words, str) else words
        address = ("--bootstrap-server", self.bootstrap)
        return moldau_console(tool, *address, *listed, typed=typed)

    def produce(self, words: str, typed: str) -> None:
        ended = self.run("console-producer", words, typed)
        assert (ended.status, ended.out) == (0, ""), ended

    def consume(self, words: str | list[str]) -> str:
        ended = self.run("console-consumer", words)
        assert ended.status == 0, ended
        assert "Processed a total of " in ended.err
        return ended.out

    def kafkas(self, tool: str, words: str | list[str], typed: str = "") -> str:
        listed = words.split() if isinstance(words, str) else words
        outcome = self.kafka.run(CLASSES[tool], *listed, typed=typed)
        assert outcome.status == 0, outcome
        return NOISE.sub("", outcome.output)


@pytest.fixture(scope="module")
def console(broker: BrokerProcess) -> Iterator[Console]:
    with Admin({"bootstrap.servers": broker.bootstrap}) as admin:
        admin.create_topics([NewTopic(name, 1) for name in ("shown", "lines", "loop", "many")])
    with Producer({"bootstrap.servers": broker.bootstrap}) as producer:
        headers = [("a", b"1"), ("b", None)]
        producer.send("shown", b"v1", key=b"k1", timestamp=1000, headers=headers)
        producer.send("shown", None, key=b"k2", timestamp=2000)
        producer.send("shown", "grün".encode(), timestamp=3000)
    with KafkaTools(broker.bootstrap) as kafka:
        yield Console(broker.bootstrap, kafka)


ALL = " ".join(
    f"--formatter-property print.{part}=true"
    for part in ("timestamp", "partition", "offset", "delivery", "headers", "key", "value")
)


@pytest.mark.parametrize(
    "words",
    [
        "",
        "--formatter-property print.key=true --formatter-property key.separator==",
        ALL,
        f"{ALL} --formatter-property null.literal=NONE --formatter-property headers.separator=;",
        "--formatter-property print.value=false --formatter-property print.key=true",
        f"--value-deserializer {STRING} --formatter-property print.key=true",
        "--formatter org.apache.kafka.tools.consumer.LoggingMessageFormatter",
    ],
)
def test_records_are_printed_alike(console: Console, words: str) -> None:
    words = f"--topic shown --partition 0 --offset earliest --max-messages 3 {words}"
    theirs = console.kafkas("console-consumer", words)
    assert theirs.endswith("Processed a total of 3 messages\n")
    assert console.consume(words) == theirs.removesuffix("Processed a total of 3 messages\n")


def test_the_start_is_chosen(console: Console) -> None:
    key = "--formatter-property print.key=true"
    one = "--topic shown --partition 0 --max-messages 1"
    assert console.consume(f"{one} --offset 1 {key}") == "k2\tnull\n"
    assert console.consume(f"{one} --from-beginning {key}") == "k1\tv1\n"
    ended = console.run("console-consumer", f"{one} --timeout-ms 100")
    # Nothing comes after the end, and that is no failure.
    assert (ended.status, ended.out) == (0, "")
    assert ended.err.endswith("Processed a total of 0 messages\n")
    assert console.consume("--include sho.* --from-beginning --max-messages 1") == "v1\n"


PARSE = "--reader-property parse.key=true --reader-property parse.headers=true"
TYPED = "h:1,i:2\tk1\tv1\nh:\tk2\tv2 with\ttab\n"


@pytest.mark.parametrize(
    "words",
    [
        "--sync --timeout 0",
        "--compression-codec --timeout 0",
        "--request-required-acks 1 --message-send-max-retries 0 --batch-size 100 --timeout 0",
    ],
)
def test_lines_are_sent_and_kafkas_consumer_reads_them(console: Console, words: str) -> None:
    console.produce(f"--topic lines {PARSE} {words}", TYPED)
    shown = "--formatter-property print.key=true --formatter-property print.headers=true"
    read = f"--topic lines --partition 0 --offset {_end(console, 'lines') - 2} --max-messages 2"
    theirs = console.kafkas("console-consumer", f"{read} {shown}")
    assert theirs.splitlines()[:2] == ["h:1,i:2\tk1\tv1", "h:\tk2\tv2 with\ttab"]
    assert console.consume(f"{read} {shown}").splitlines() == theirs.splitlines()[:2]


def test_what_kafkas_producer_sends_is_the_same(console: Console) -> None:
    words = f"--topic lines {PARSE} --reader-property null.marker=NULL"
    typed = "h:NULL\tNULL\tNULL\n"
    console.produce(words, typed)
    console.kafkas("console-producer", words, typed)
    with Consumer({"bootstrap.servers": console.bootstrap}) as consumer:
        partition = TopicPartition("lines", 0)
        consumer.assign([partition])
        consumer.seek(partition, _end(console, "lines") - 2)
        records = eventually(lambda: list(consumer.poll(1.0)), what="both records")
    assert [(each.key, each.value, each.headers) for each in records] == [
        (None, None, (("h", None),))
    ] * 2


def test_a_bad_line_ends_the_producer_after_the_good_ones(console: Console) -> None:
    before = _end(console, "lines")
    words = "--topic lines --reader-property parse.key=true"
    ended = console.run("console-producer", words, "k\tgood\nbad\nk\tnever\n")
    assert ended.status == 1
    assert ended.err == "No key separator found on line number 2: 'bad'\n"
    assert _end(console, "lines") == before + 1
    words += " --reader-property ignore.error=true"
    console.produce(words, "bad\n")
    assert _end(console, "lines") == before + 2


def _end(console: Console, topic: str, index: int = 0) -> int:
    with Consumer({"bootstrap.servers": console.bootstrap}) as consumer:
        partition = TopicPartition(topic, index)
        return consumer.end_offsets([partition])[partition]


def test_only_what_was_printed_is_committed(console: Console) -> None:
    console.produce("--topic many", "".join(f"{number}\n" for number in range(10)))
    words = "--topic many --group careful --from-beginning --max-messages"
    assert console.consume(f"{words} 3").split() == ["0", "1", "2"]
    assert console.consume(f"{words} 2").split() == ["3", "4"]
    theirs = console.kafkas("console-consumer", f"{words} 2")
    assert theirs.split()[:2] == ["5", "6"]


class Picky:
    """A formatter that does not like fives."""

    def configure(self, settings: dict[str, str]) -> None:
        pass

    def write_to(self, record: Any, output: Any) -> None:
        if record.value == b"5":
            raise ValueError("five")
        output.write(record.value + b",")

    def close(self) -> None:
        pass


def test_a_record_that_cannot_be_printed_ends_it_or_is_passed_over(console: Console) -> None:
    words = f"--topic many --partition 0 --offset 4 --max-messages 3 --formatter {__name__}.Picky"
    ended = console.run("console-consumer", words)
    assert (ended.status, ended.out) == (1, "4,")
    assert "Unknown error when running consumer: ValueError: five" in ended.err
    ended = console.run("console-consumer", f"{words} --skip-message-on-error")
    assert (ended.status, ended.out) == (0, "4,6,")
    assert "Error processing message, skipping this message: ValueError: five" in ended.err


def test_uncommitted_transactions_are_hidden_on_request(console: Console) -> None:
    with Admin({"bootstrap.servers": console.bootstrap}) as admin:
        admin.create_topics([NewTopic("paid", 1)])
    settings = {"bootstrap.servers": console.bootstrap, "transactional.id": "console"}
    with Producer(settings) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("paid", b"aborted").result()
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send("paid", b"committed")
        producer.commit_transaction()
    words = "--topic paid --partition 0 --from-beginning --max-messages 1 --isolation-level"
    assert console.consume(f"{words} read_uncommitted") == "aborted\n"
    assert console.consume(f"{words} read_committed") == "committed\n"
    _same_state(console, "__transaction_state", "TransactionLogMessageFormatter", "console")


def test_committed_offsets_and_groups_are_printed_as_json(console: Console) -> None:
    printed = _same_state(console, "__consumer_offsets", "OffsetsMessageFormatter", "careful")
    assert "careful" in {each["key"]["data"]["group"] for each in printed}
    name = "org.apache.kafka.tools.consumer.GroupMetadataMessageFormatter"
    words = _partition_words(console, "__consumer_offsets", "careful")
    out = console.consume(f"{words} --formatter {name}")
    assert {json.loads(each)["key"]["type"] for each in _objects(out)} == {2}


def _same_state(console: Console, topic: str, formatter: str, key: str) -> list[dict[str, Any]]:
    """What both print of the partition that holds `key`."""
    words = _partition_words(console, topic, key)
    words += f" --formatter org.apache.kafka.tools.consumer.{formatter}"
    ours = console.consume(words)
    theirs = console.kafkas("console-consumer", words)
    theirs = theirs[: theirs.rindex("}") + 1]
    assert sorted(_objects(ours)) == sorted(_objects(theirs))
    printed = [json.loads(each) for each in _objects(ours)]
    assert printed
    return printed


def _partition_words(console: Console, topic: str, key: str) -> str:
    """Up to the present end of the partition: what a coordinator writes later is not compared."""
    partition = partition_for(key, 50)
    count = _end(console, topic, partition)
    return f"--topic {topic} --partition {partition} --from-beginning --max-messages {count}"


def _objects(text: str) -> list[str]:
    """The JSON objects, which stand one behind the other."""
    return text.replace("}{", "}\n{").split("\n")


def test_an_interrupt_ends_it_cleanly(console: Console) -> None:
    command = [sys.executable, "-m", "moldau.cli", "console-consumer", "--topic", "loop"]
    command += ["--bootstrap-server", console.bootstrap, "--group", "stopped"]
    command += ["--from-beginning", "--enable-systest-events"]
    console.produce("--topic loop", "first\n")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "first\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert out == "shutdown_complete\n"
    assert err == "Processed a total of 1 messages\n"
    with Admin({"bootstrap.servers": console.bootstrap}) as admin:
        # It has left its group, and committed what it printed.
        group = admin.describe_consumer_groups(["stopped"])["stopped"]
        assert not group.members
        offsets = admin.list_consumer_group_offsets("stopped")["stopped"]
    committed = offsets[TopicPartition("loop", 0)]
    assert committed is not None
    assert committed.offset == 1


class TellingReader(LineMessageReader):
    """Tells on stderr of each record that was taken."""

    def read_records(self, input_stream: Any) -> Iterator[LineRecord]:
        for record in super().read_records(input_stream):
            yield record
            print("taken", file=sys.stderr, flush=True)


def test_an_interrupted_producer_sends_what_was_typed(console: Console) -> None:
    before = _end(console, "loop")
    command = [sys.executable, "-m", "moldau.cli", "console-producer", "--topic", "loop"]
    command += ["--line-reader", f"{Path(__file__).stem}.TellingReader"]
    # Records would wait for others much longer than this test runs.
    command += ["--bootstrap-server", console.bootstrap, "--timeout", "60000"]
    folders = [str(ROOT / "tests"), str(Path(__file__).parent)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write("typed\nmore\n")
        process.stdin.flush()
        assert [process.stderr.readline() for _ in range(2)] == ["taken\n"] * 2
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "")
    assert _end(console, "loop") == before + 2


def test_a_closed_pipe_ends_it_cleanly(console: Console) -> None:
    command = [sys.executable, "-m", "moldau.cli", "console-consumer", "--topic", "many"]
    command += ["--bootstrap-server", console.bootstrap, "--partition", "0", "--from-beginning"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        console.produce("--topic many", "more\n")
        assert process.wait(60) == 0
        assert process.stderr is not None
        err = process.stderr.read().decode()
    assert "Unable to write to standard out, closing consumer." in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("console-consumer", "--topic a --include b"),
        ("console-consumer", "--topic a --offset 1"),
        ("console-consumer", "--include a --partition 1"),
        ("console-consumer", "--topic a --partition 1 --offset 1 --from-beginning"),
        ("console-consumer", "--topic a --partition 1 --offset -5"),
        ("console-consumer", "--topic a --partition 1 --group g"),
        ("console-consumer", "--topic a --group g --command-property group.id=h"),
        (
            "console-consumer",
            "--topic a --from-beginning --command-property auto.offset.reset=latest",
        ),
        ("console-producer", "--sync"),
        ("console-share-consumer", "--group g"),
        ("console-share-consumer", "--topic a --reject --release"),
    ],
)
def test_bad_usage_is_refused_in_kafkas_words(console: Console, tool: str, words: str) -> None:
    same_refusal(Tools(console.bootstrap, console.kafka), tool, words)


def test_files_and_deprecated_names(console: Console, tmp_path: Path) -> None:
    reader = tmp_path / "reader.properties"
    reader.write_text("parse.key=true\nkey.separator=:\n")
    settings = tmp_path / "client.properties"
    settings.write_text("client.id=from-file\n")
    words = f"--topic lines --reader-config {reader} --producer.config {settings}"
    ended = console.run("console-producer", words, "file-key:file-value\n")
    assert ended.status == 0
    assert "--producer.config is deprecated" in ended.err
    formatter = tmp_path / "formatter.properties"
    formatter.write_text("print.key=true\nkey.separator=!\n")
    read = f"--topic lines --partition 0 --offset {_end(console, 'lines') - 1} --max-messages 1"
    out = console.consume(f"{read} --formatter-config {formatter} --property key.separator=?")
    assert out == "file-key?file-value\n"
