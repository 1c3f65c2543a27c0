"""Members that come and go while others commit at least once, in a classic group."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from itertools import count
from typing import Any

import pytest

from moldau.client import Consumer, TopicPartition
from moldau.streams import KafkaStreams, State, StreamsBuilder
from support.streams_embedded import Stage
from support.waiting import eventually

PARTITIONS = 4


def copying(prefix: str) -> Any:
    builder = StreamsBuilder()
    stream = builder.stream(f"{prefix}in", key_serde="string", value_serde="string")
    stream.to(f"{prefix}out", key_serde="string", value_serde="string")
    return builder.build()


def test_a_commit_during_a_rebalance_waits_for_its_end(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """A member that left and joined again for it made all others rebalance, and so on."""
    prefix = f"{stage.new_id()}-"
    stage.create([f"{prefix}in", f"{prefix}out"], partitions=PARTITIONS)
    numbers = count()

    def send() -> None:
        for _ in range(50):
            number = next(numbers)
            stage.producer.send(f"{prefix}in", b"%d" % number, partition=number % PARTITIONS)
        stage.producer.flush()

    def member(name: str) -> KafkaStreams:
        return KafkaStreams(
            copying(prefix),
            application_id=f"{prefix}app",
            bootstrap_servers=stage.bootstrap,
            state_dir=str(stage.folder / f"{prefix}{name}"),
            group_protocol="classic",
            processing_guarantee="at_least_once",
            heartbeat_interval_ms=50,
            # Commits all the time, so that some of them fall into each rebalance.
            commit_interval_ms=1,
        )

    def runs(each: KafkaStreams) -> bool:
        send()
        return each.state is State.RUNNING

    with caplog.at_level(logging.WARNING, "moldau.streams"), ExitStack() as stack:
        first = stack.enter_context(member("first"))
        eventually(lambda: runs(first), what="the first runs")
        for number in range(3):
            with member(f"other-{number}") as other:
                eventually(lambda other=other: runs(other) and runs(first), what="both run")
        eventually(lambda: runs(first), what="the first runs alone")
        sent = {b"%d" % number for number in range(next(numbers))}
        found: set[bytes] = set()
        with Consumer(bootstrap_servers=stage.bootstrap, auto_offset_reset="earliest") as reader:
            reader.assign([TopicPartition(f"{prefix}out", index) for index in range(PARTITIONS)])

            def has_all() -> bool:
                found.update(record.value for record in reader.poll(0.2))
                return found == sent

            eventually(has_all, what="every record")
    assert "joins again" not in caplog.text
