"""Apache Kafka's own command line tools: what their user sees is the same with Moldau and Kafka.

One script of commands runs against both brokers; each command's exit status and output must agree.
What differs by nature (ids drawn at random, clocks, speeds, folders) is masked first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.java import KafkaTools, Outcome
from support.processes import apache_kafka, kafka_missing, moldau
from support.waiting import eventually

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

TOOLS = "org.apache.kafka.tools."
GROUPS = TOOLS + "consumer.group.ConsumerGroupCommand"


@dataclass(frozen=True)
class Step:
    """One command; `until` repeats it while a change is still on its way to the broker."""

    tool: str
    arguments: tuple[str, ...]
    typed: str = ""
    until: Callable[[str], bool] | None = None
    masks: tuple[tuple[str, str], ...] = ()

    def run(self, tools: KafkaTools) -> Outcome:
        if self.until is None:
            outcome = tools.run(self.tool, *self.arguments, typed=self.typed)
        else:
            outcome = eventually(self._probe(tools), what=str(self))
        text = outcome.output
        for pattern, shown in self.masks:
            text = re.sub(pattern, shown, text)
        # Of a failure only the first line is the tool's word to its user; then come stack frames.
        lines = [line for line in text.splitlines() if not line.startswith(("\tat ", "\t... "))]
        return Outcome(outcome.status, "\n".join(lines))

    def _probe(self, tools: KafkaTools) -> Callable[[], Outcome | None]:
        def probe() -> Outcome | None:
            outcome = tools.run(self.tool, *self.arguments, typed=self.typed)
            return outcome if self.until and self.until(outcome.output) else None

        return probe

    def __str__(self) -> str:
        return " ".join([self.tool.rpartition(".")[2], *self.arguments])


def topics(*arguments: str, until: Callable[[str], bool] | None = None) -> Step:
    masks = ((r"TopicId: \S+", "TopicId: ID"),)
    return Step(TOOLS + "TopicCommand", arguments, until=until, masks=masks)


def configs(*arguments: str, until: Callable[[str], bool] | None = None) -> Step:
    masks = (
        (r"127\.0\.0\.1:\d+", "ADDRESS"),
        (r"/\S+/data", "FOLDER"),
        # `moldau start` leaves these two to the operating system.
        (r"(socket\.(?:receive|send)\.buffer\.bytes)=.*", r"\1"),
    )
    return Step("kafka.admin.ConfigCommand", arguments, until=until, masks=masks)


def produce(topic: str, typed: str, *arguments: str) -> Step:
    keyed = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    return Step(TOOLS + "ConsoleProducer", ("--topic", topic, *keyed, *arguments), typed)


def consume(topic: str, *arguments: str) -> Step:
    shown = ["key", "headers", "offset", "partition", "timestamp"]
    properties = [word for name in shown for word in ("--formatter-property", f"print.{name}=true")]
    command = ("--topic", topic, *arguments, *properties, "--timeout-ms", "60000")
    masks = ((r"CreateTime:\d{13}\b", "CreateTime:NOW"),)
    return Step(TOOLS + "consumer.ConsoleConsumer", command, masks=masks)


def groups(*arguments: str) -> Step:
    return Step(GROUPS, arguments)


def offsets(*arguments: str) -> Step:
    return Step(TOOLS + "GetOffsetShell", arguments)


def shows(text: str) -> Callable[[str], bool]:
    return lambda output: text in output


TOPICS = [
    topics("--create", "--topic", "lines", "--config", "retention.ms=60000000"),
    topics("--create", "--topic", "lines"),
    topics("--create", "--topic", "lines", "--if-not-exists"),
    topics("--create", "--topic", "b.c_d", "--replica-assignment", "1,1"),
    topics("--create", "--topic", "b_c_d"),
    topics("--create", "--topic", "bad", "--replication-factor", "2"),
    topics("--create", "--topic", "bad", "--config", "no.such=1"),
    topics("--create", "--topic", "b/d"),
    topics("--alter", "--topic", "b.c_d", "--partitions", "3"),
    topics("--alter", "--topic", "b.c_d", "--partitions", "2"),
    topics("--describe", until=shows("Partition: 2")),
    topics("--describe", "--under-replicated-partitions"),
    topics("--describe", "--unavailable-partitions"),
    topics("--describe", "--at-min-isr-partitions"),
    topics("--describe", "--topics-with-overrides"),
    topics("--describe", "--topic", "none"),
    topics("--delete", "--topic", "b.c_d"),
    topics("--delete", "--topic", "none"),
    topics("--list", until=lambda output: "b.c_d" not in output),
]
DATA = [
    produce("lines", "k1:v1\nk2:v2\nk3:v3\n"),
    produce("lines", "h1:x,h2:y\tk4:v4\n", "--reader-property", "parse.headers=true"),
    *[
        produce("lines", f"codec:{codec}\n" * 3, "--compression-codec", codec)
        for codec in ("none", "gzip", "snappy", "lz4", "zstd")
    ],
    *[
        produce("lines", f"acks:{acks}\n", "--command-property", f"acks={acks}",
                "--command-property", "enable.idempotence=false")
        for acks in ("0", "1", "all")
    ],
    consume("lines", "--from-beginning", "--group", "readers", "--max-messages", "22"),
    consume("lines", "--partition", "0", "--offset", "5", "--max-messages", "3"),
    consume("lines", "--partition", "0", "--offset", "earliest", "--max-messages", "2",
            "--isolation-level", "read_committed"),
    offsets("--topic", "lines"),
    offsets("--topic", "lines", "--time", "earliest"),
    offsets("--topic", "lines", "--time", "max-timestamp"),
    offsets("--topic", "lines", "--time", "1577836800000"),
    offsets("--topic-partitions", "lines:0-3", "--exclude-internal-topics"),
]  # fmt: skip
GROUP_STEPS = [
    groups("--list"),
    groups("--list", "--state"),
    groups("--list", "--type"),
    groups("--describe", "--group", "readers", "--offsets", "--verbose"),
    groups("--describe", "--group", "readers", "--state"),
    groups("--describe", "--group", "readers", "--members", "--verbose"),
    groups("--describe", "--group", "none"),
    *[
        groups("--group", "readers", "--topic", "lines", "--reset-offsets", *how, "--execute")
        for how in (["--to-offset", "7"], ["--shift-by", "-2"], ["--to-latest"],
                    ["--to-datetime", "2020-01-01T00:00:00.000"], ["--by-duration", "PT1H"])
    ],
    consume("lines", "--group", "readers", "--max-messages", "2"),
    groups("--group", "readers", "--delete-offsets", "--topic", "lines"),
    groups("--delete", "--group", "readers"),
    groups("--delete", "--group", "none"),
    groups("--list"),
]  # fmt: skip
CONFIGS = [
    configs("--describe", "--topic", "lines"),
    configs("--alter", "--topic", "lines",
            "--add-config", "retention.ms=70000000,cleanup.policy=[compact,delete]"),
    configs("--describe", "--topic", "lines", "--all", until=shows("retention.ms=70000000")),
    configs("--alter", "--topic", "lines", "--delete-config", "cleanup.policy"),
    configs("--alter", "--topic", "lines", "--add-config", "retention.ms=abc"),
    configs("--alter", "--topic", "none", "--add-config", "retention.ms=1"),
    configs("--describe", "--topic", "none"),
    configs("--describe", "--broker", "1", "--all"),
    configs("--alter", "--entity-type", "brokers", "--entity-default",
            "--add-config", "log.retention.ms=77777777"),
    configs("--alter", "--broker", "1", "--add-config", "message.max.bytes=2000000"),
    configs("--alter", "--broker", "1", "--add-config", "log.dirs=/tmp/x"),
    configs("--alter", "--broker", "1", "--add-config", "num.io.threads=0"),
    configs("--describe", "--entity-type", "brokers", until=shows("message.max.bytes=2000000")),
    configs("--alter", "--entity-type", "broker-loggers", "--entity-name", "1",
            "--add-config", "no.such=DEBUG"),
    configs("--alter", "--client-metrics", "m", "--add-config",
            "metrics=[org.apache.kafka.producer.],interval.ms=30000,match=[client_id=x.*]"),
    configs("--describe", "--entity-type", "client-metrics", until=shows("interval.ms=30000")),
    configs("--alter", "--client-metrics", "m", "--add-config", "interval.ms=1"),
    configs("--alter", "--group", "g", "--add-config", "consumer.session.timeout.ms=50000"),
    configs("--describe", "--group", "g", "--all", until=shows("session.timeout.ms=50000")),
    configs("--describe", "--entity-type", "groups"),
]  # fmt: skip
REST = [
    topics("--create", "--topic", "perf", "--partitions", "2"),
    Step(TOOLS + "ProducerPerformance",
         ("--topic", "perf", "--num-records", "20000", "--record-size", "200", "--throughput",
          "-1"),
         # A line for every five seconds that it takes.
         masks=((r"(?m)^.* ms max latency\.\n", ""), (r"sent, .*", "sent"))),
    Step(TOOLS + "ConsumerPerformance",
         ("--topic", "perf", "--num-records", "20000", "--group", "perf-readers", "--timeout",
          "60000"),
         masks=((r"\d{4}-\S+ \S+, \d{4}-\S+ \S+, ([\d.]+), [\d.]+, (\d+), .*", r"\1 MB \2"),)),
    Step(TOOLS + "EndToEndLatency",
         ("--topic", "perf", "--num-records", "50", "--producer-acks", "all", "--record-size",
          "99"),
         masks=((r"(?s).*Avg latency.*99.9th = \d+", "latencies"),)),
    Step(TOOLS + "LogDirsCommand", ("--describe", "--topic-list", "lines"),
         masks=((r'"size":\d+', '"size":N'), (r'"logDir":"[^"]+"', '"logDir":"FOLDER"'))),
    Step(TOOLS + "LogDirsCommand", ("--describe", "--broker-list", "1,2")),
    Step(TOOLS + "FeatureCommand", ("describe",), masks=((r"Epoch: \d+", "Epoch: N"),)),
    Step(TOOLS + "ClientMetricsCommand", ("--describe",)),
]  # fmt: skip
STEPS = TOPICS + DATA + GROUP_STEPS + CONFIGS + REST


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[KafkaTools, KafkaTools]]:
    ours, kafkas = tmp_path_factory.mktemp("moldau"), tmp_path_factory.mktemp("kafka")
    overrides = ["node.id=1", "group.initial.rebalance.delay.ms=0"]
    with (
        moldau(ours, overrides) as first,
        apache_kafka(kafkas) as second,
        KafkaTools(first.bootstrap) as for_ours,
        KafkaTools(second.bootstrap) as for_kafkas,
    ):
        yield for_ours, for_kafkas


@pytest.fixture(scope="module")
def outcomes(tools: tuple[KafkaTools, KafkaTools]) -> list[tuple[Outcome, ...]]:
    with ThreadPoolExecutor(2) as both:
        scripts = both.map(lambda runner: [step.run(runner) for step in STEPS], tools)
    return list(zip(*scripts, strict=True))


@pytest.mark.parametrize("index", range(len(STEPS)), ids=[str(step) for step in STEPS])
def test_a_tool_shows_the_same_as_with_apache_kafka(
    outcomes: list[tuple[Outcome, Outcome]], index: int
) -> None:
    ours, kafkas = outcomes[index]
    assert ours.status == kafkas.status
    assert ours.output.splitlines() == kafkas.output.splitlines()


def test_records_are_deleted_up_to_an_offset(
    outcomes: list[tuple[Outcome, Outcome]], tools: tuple[KafkaTools, KafkaTools], tmp_path: Path
) -> None:
    wanted = tmp_path / "offsets.json"
    partition = {"topic": "lines", "partition": 0, "offset": 5}
    wanted.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    for runner in tools:
        deleted = runner.run(TOOLS + "DeleteRecordsCommand", "--offset-json-file", str(wanted))
        assert "partition: lines-0\tlow_watermark: 5" in deleted.output
        earliest = offsets("--topic", "lines", "--time", "earliest").run(runner)
        assert earliest.output == "lines:0:5"
