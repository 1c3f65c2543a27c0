"""Apache Kafka's controller, and the state of ours in its words, so that they can be compared."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple
from uuid import UUID

from moldau.broker.metadata.machine.model import Broker, Partition
from moldau.wire.message import Message
from moldau.wire.messages import (
    ElectLeadersResponse,
    ListPartitionReassignmentsResponse,
)
from support.java import JAVA
from support.processes import KAFKA_JARS


class Answer(NamedTuple):
    error: str
    response: bytes | None
    state: list[str]


class KafkaIsBroken(Exception):
    """Who left a partition while the ISR was below its minimum stays eligible, although it has
    deleted what it had. There is nothing to compare from there on."""


class KafkaController:
    """Apache Kafka's controller classes in a process of their own."""

    def __init__(self, classes: Path) -> None:
        command = [*JAVA[:-1], f"{classes}:{KAFKA_JARS}/*"]
        self._process = subprocess.Popen(
            [*command, "org.apache.kafka.controller.ControllerDecisions"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, line: str) -> Answer:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(line + "\n")
        stdin.flush()
        lines = []
        while (read := stdout.readline()) != ".\n":
            assert read, f"the controller ended at {line}"
            # Its log goes to the same place.
            if read.startswith(("broker ", "partition ")) or not lines:
                lines.append(read.rstrip("\n"))
        error, _, response = lines[0].partition(" ")
        return Answer(error, bytes.fromhex(response) if response else None, lines[1:])

    def __enter__(self) -> KafkaController:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()


def sorted_answer(message: Message) -> str:
    """Kafka goes through its topics in the order of their hashes."""
    if isinstance(message, ElectLeadersResponse):
        message.replica_election_results.sort(key=lambda each: each.topic)
    if isinstance(message, ListPartitionReassignmentsResponse):
        message.topics.sort(key=lambda each: each.name)
        for topic in message.topics:
            topic.partitions.sort(key=lambda each: each.partition_index)
    return repr(message)


def remembers_former_replica(line: str) -> bool:
    words = line.split()
    return words[0] == "partition" and not set(members(words[9])) <= set(members(words[7]))


def members(text: str) -> list[str]:
    return [each for each in text[1:-1].split(",") if each]


def broker_line(broker: Broker) -> str:
    return (
        f"broker {broker.id} {broker.epoch} {flag(broker.fenced)}"
        f" {flag(broker.in_controlled_shutdown)} {ids(broker.log_dirs)}"
    )


def partition_line(topic_id: UUID, index: int, partition: Partition) -> str:
    lists = (
        partition.replicas,
        partition.isr,
        partition.elr,
        partition.last_known_elr,
        partition.adding_replicas,
        partition.removing_replicas,
    )
    return (
        f"partition {topic_id.hex} {index} {partition.leader} {partition.leader_epoch}"
        f" {partition.partition_epoch} {int(partition.leader_recovery_state)} "
        + " ".join(f"[{','.join(map(str, each))}]" for each in lists)
        + f" {ids(partition.directories)}"
    )


def flag(value: bool) -> str:
    return "true" if value else "false"


def ids(values: Sequence[UUID]) -> str:
    return f"[{','.join(each.hex for each in values)}]"
