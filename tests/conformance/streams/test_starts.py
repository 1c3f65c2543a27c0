"""How soon an application works: what its start waits for."""

from __future__ import annotations

import time
from typing import Any

import pytest

from moldau.client import AlterConfigOp, ConfigResource
from moldau.client.errors import KafkaTimeoutError
from moldau.streams import KafkaStreams, Processor, ProcessorContext, State, StreamsBuilder
from support.streams_counting import recomputed, updates, word_count
from support.streams_embedded import Stage
from support.waiting import eventually

#: The longest that a broker allows.
INTERVAL_MS = 15_000


def counting(stage: Stage, prefix: str, **settings: Any) -> KafkaStreams:
    return KafkaStreams(
        word_count(prefix),
        {"group.protocol": "streams"} | settings,
        application_id=f"{prefix}app",
        bootstrap_servers=stage.bootstrap,
        state_dir=str(stage.folder / prefix),
    )


@pytest.mark.parametrize("delay", ["streams.assignment", "streams.initial.rebalance"])
def test_tasks_that_come_late_are_not_waited_for_until_the_next_heartbeat(
    stage: Stage, delay: str
) -> None:
    """The coordinator gives no tasks at first: it has assigned just now, or waits for others."""
    prefix = f"{stage.new_id()}-"
    stage.create([f"{prefix}text", f"{prefix}counts"])
    name = f"{delay}.interval.ms" if delay == "streams.assignment" else f"{delay}.delay.ms"
    changes = {
        "streams.heartbeat.interval.ms": INTERVAL_MS,
        "streams.session.timeout.ms": 45_000,
        name: 1_000,
    }
    group = ConfigResource.group(f"{prefix}app")
    operations = [AlterConfigOp(key, str(value)) for key, value in changes.items()]
    stage.admin.incremental_alter_configs({group: operations})
    made: list[str] = []
    for line in ("one two", "two three"):
        made.append(line)
        stage.producer.send(f"{prefix}text", line.encode())
        stage.producer.flush()
        began = time.monotonic()
        with counting(stage, prefix) as running:
            updates(stage.bootstrap, f"{prefix}counts", 1, sum(recomputed(made).values()))
            eventually(lambda: running.threads[0].tasks.active, what="its tasks")
        assert time.monotonic() - began < INTERVAL_MS / 1000


@pytest.mark.parametrize("protocol", ["streams", "classic"])
def test_a_poll_that_brings_tasks_waits_for_no_records(stage: Stage, protocol: str) -> None:
    """They come after the stores are restored, which is the next thing to do."""
    prefix = f"{stage.new_id()}-"
    stage.create([f"{prefix}text", f"{prefix}counts"])
    stage.producer.send(f"{prefix}text", b"one")
    stage.producer.flush()
    with counting(stage, prefix, **{"group.protocol": protocol, "poll.ms": 3_600_000}):
        updates(stage.bootstrap, f"{prefix}counts", 1, 1)


def test_a_processor_that_gets_no_answer_at_its_start_stops_the_application(stage: Stage) -> None:
    """Its task has begun to start, so it cannot be prepared once more."""

    class Asks(Processor):
        def init(self, context: ProcessorContext) -> None:
            raise KafkaTimeoutError("no answer")

    name = stage.new_id()
    stage.create([name])
    builder = StreamsBuilder()
    builder.stream(name).process(Asks)
    made = KafkaStreams(
        builder.build(),
        application_id=f"{name}-app",
        bootstrap_servers=stage.bootstrap,
        state_dir=str(stage.folder / name),
    )
    with made:
        eventually(lambda: made.state is State.ERROR, what="the application stops")
    assert "no answer" in str(made.error)
