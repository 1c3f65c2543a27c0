"""Moldau's command line in this process, and the same command given to it and to Kafka's tools."""

from __future__ import annotations

import io
import json
import re
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

import pytest

from moldau.cli.main import main
from support.java import KafkaTools, Outcome

TOOLS = "org.apache.kafka.tools."
# The class behind each of Kafka's scripts.
CLASSES = {
    "topics": TOOLS + "TopicCommand",
    "configs": "kafka.admin.ConfigCommand",
    "groups": TOOLS + "GroupsCommand",
    "kafka-cluster": TOOLS + "ClusterTool",
    "features": TOOLS + "FeatureCommand",
    "metadata-quorum": TOOLS + "MetadataQuorumCommand",
    "broker-api-versions": TOOLS + "BrokerApiVersionsCommand",
    "get-offsets": TOOLS + "GetOffsetShell",
    "delete-records": TOOLS + "DeleteRecordsCommand",
    "log-dirs": TOOLS + "LogDirsCommand",
    "client-metrics": TOOLS + "ClientMetricsCommand",
    "storage": "kafka.tools.StorageTool",
    "consumer-groups": TOOLS + "consumer.group.ConsumerGroupCommand",
    "share-groups": TOOLS + "consumer.group.ShareGroupCommand",
    "streams-groups": TOOLS + "streams.StreamsGroupCommand",
    "streams-application-reset": TOOLS + "StreamsResetter",
    "console-producer": TOOLS + "ConsoleProducer",
    "console-consumer": TOOLS + "consumer.ConsoleConsumer",
    "console-share-consumer": TOOLS + "consumer.ConsoleShareConsumer",
    "producer-perf-test": TOOLS + "ProducerPerformance",
    "consumer-perf-test": TOOLS + "ConsumerPerformance",
    "share-consumer-perf-test": TOOLS + "ShareConsumerPerformance",
    "e2e-latency": TOOLS + "EndToEndLatency",
}


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def moldau_cli(*words: str) -> Ended:
    """`moldau WORDS` in a pipe."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            status = main(words)
        except SystemExit as exit_:
            status = int(exit_.code or 0)
    assert "Traceback" not in err.getvalue(), err.getvalue()
    return Ended(status, out.getvalue(), err.getvalue())


def moldau_console(*words: str, typed: str = "") -> Ended:
    """`moldau WORDS` in a pipe, for tools that read and write bytes."""
    out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed.encode())))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        try:
            status = main(words)
        except SystemExit as exit_:
            status = int(exit_.code or 0)
        out.flush()
    assert isinstance(out.buffer, io.BytesIO)
    return Ended(status, out.buffer.getvalue().decode(), err.getvalue())


class Tools:
    """Moldau's tools pointed at one broker; with Kafka's beside them, both can be asked the same.

    Options of the command line's own parser come before a subcommand, as in Kafka's tools.
    """

    def __init__(self, bootstrap: str, kafka: KafkaTools | None = None) -> None:
        self.bootstrap = bootstrap
        self.kafka = kafka

    def ask(self, tool: str, *words: str) -> Ended:
        return moldau_cli(tool, *self._addressed(tool, words))

    def run(self, tool: str, *words: str) -> str:
        """What a tool that must succeed prints."""
        ended = self.ask(tool, *words)
        assert ended.status == 0, ended
        return ended.out

    def ask_kafka(self, tool: str, *words: str) -> Outcome:
        """What Kafka's tool says."""
        assert self.kafka is not None
        outcome = self.kafka.run_alone(CLASSES[tool], *self._addressed(tool, words))
        return Outcome(outcome.status, self._hidden(outcome.output))

    def both(self, tool: str, *words: str) -> tuple[Outcome, Outcome]:
        """What Moldau's tool and Kafka's print and how they end; the address becomes BROKER."""
        ended = self.ask(tool, *words)
        ours = Outcome(ended.status, self._hidden(ended.out + ended.err))
        return ours, self.ask_kafka(tool, *words)

    def same(self, tool: str, *words: str, ordered: bool = True) -> str:
        """What both print, which must be the same, but for the order if that is Java's hashing."""
        ours, theirs = self.both(tool, *words)
        arrange = list if ordered else sorted
        shown = f"ours:\n{ours.output}\nKafka's:\n{theirs.output}"
        assert ours.status == theirs.status, shown
        assert arrange(ours.output.splitlines()) == arrange(theirs.output.splitlines()), shown
        return ours.output

    def same_but_numbers(self, tool: str, *words: str, ordered: bool = True) -> str:
        """What we print, where both print the same but for offsets and times that go on."""
        ours, theirs = self.both(tool, *words)
        shown = f"ours:\n{ours.output}\nKafka's:\n{theirs.output}"
        assert ours.status == theirs.status, shown
        arrange = list if ordered else sorted
        hidden = [
            arrange(re.sub(r"([0-9]+ ms ago|[0-9]{2,}) *", "N ", each.output).splitlines())
            for each in (ours, theirs)
        ]
        assert hidden[0] == hidden[1], shown
        return ours.output

    def same_failure(self, tool: str, *words: str) -> str:
        """The first line of both, which refuse in the same words."""
        ours, theirs = self.both(tool, *words)
        assert (ours.status, theirs.status) == (1, 1), (ours, theirs)
        line = theirs.output.splitlines()[0]
        assert ours.output.count("\n") == 1, ours
        assert line.rstrip(".") in ours.output, (ours, theirs)
        return line

    def _addressed(self, tool: str, words: tuple[str, ...]) -> tuple[str, ...]:
        address = ("--bootstrap-server", self.bootstrap)
        # The cluster's tool wants it after the subcommand, the others take it before.
        return (words[0], *address, *words[1:]) if tool == "kafka-cluster" else (*address, *words)

    def _hidden(self, text: str) -> str:
        # In which order Java's tool shows settings is a matter of hashing.
        text = re.sub(r"(?<=\tConfigs: )\S+", _sorted_list, text)
        return text.replace(self.bootstrap, "BROKER")


# What Java prints behind the tool's own words.
_STACK = re.compile(r"\t|Caused by|\w+(\.\w+)+(Exception|Error)\b")


def same_lines(tools: Tools, tool: str, words: str) -> list[str]:
    """The lines that both print, in whatever order Java's maps give them, without stack traces."""
    ours, theirs = tools.both(tool, *words.split())
    # Kafka's tool writes this one to its log.
    lines = [line for line in ours.output.splitlines() if not line.startswith("WARN New offset")]
    kafkas = [line for line in theirs.output.splitlines() if not _STACK.match(line)]
    shown = "\n".join(["ours:", *lines, "Kafka's:", *kafkas])
    assert ours.status == theirs.status, shown
    assert sorted(lines) == sorted(kafkas), shown
    return lines


def same_refusal(tools: Tools, tool: str, words: str) -> str:
    """The line of ours, which has all words of Kafka's first line: Java's sets shuffle them."""
    ours, theirs = tools.both(tool, *words.split())
    assert (ours.status, theirs.status) == (1, 1), (ours, theirs)
    assert ours.output.count("\n") == 1, ours
    wanted = re.findall(r"\w+", theirs.output.splitlines()[0])
    assert set(wanted) <= set(re.findall(r"\w+", ours.output)), (ours, theirs)
    return ours.output


def _sorted_list(match: re.Match[str]) -> str:
    return ",".join(sorted(match[0].split(",")))
