"""A broker is away for longer than `delivery.timeout.ms`: tasks go back to their last commit."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.streams import KafkaStreams, Processor, Record, State, StreamsBuilder, fail_on_error
from support.processes import BrokerProcess, moldau
from support.streams_counting import updates
from support.streams_embedded import Stage
from support.waiting import eventually

TEXT: dict[str, Any] = {"key_serde": "string", "value_serde": "string"}
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
}
#: The words before the broker goes away, and those that are processed meanwhile.
BEFORE = [f"w{number % 7}" for number in range(100)]
MEANWHILE = ["stop", *(f"w{number % 5}" for number in range(200))]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with moldau(tmp_path / "broker", [f"{key}={value}" for key, value in SETTINGS.items()]) as made:
        yield made


class Gate:
    """Holds the application at the record `stop`."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()

    def processor(self) -> Processor:
        gate = self

        class Waiting(Processor):
            def process(self, record: Record[Any, str]) -> None:
                if record.value == "stop":
                    gate.reached.set()
                    gate.open.wait(60)
                self.context.forward(record)

        return Waiting()


def counting(gate: Gate) -> StreamsBuilder:
    builder = StreamsBuilder()
    words = builder.stream("text", **TEXT).process(gate.processor)
    counts = words.group_by(lambda key, word: word, **TEXT).count(store="counts")
    counts.to_stream().to("counts", key_serde="string", value_serde="long")
    return builder


def application(broker: BrokerProcess, builder: StreamsBuilder, **settings: Any) -> KafkaStreams:
    return KafkaStreams(
        builder.build(),
        application_id="app",
        bootstrap_servers=broker.bootstrap,
        commit_interval_ms=100,
        producer_delivery_timeout_ms=1_500,
        producer_request_timeout_ms=1_000,
        producer_linger_ms=0,
        producer_max_block_ms=2_000,
        **settings,
    )


def send(stage: Stage, words: list[str]) -> None:
    for word in words:
        stage.producer.send("text", word.encode())
    stage.producer.flush()


def processed_while_away(
    broker: BrokerProcess, stage: Stage, made: KafkaStreams, gate: Gate
) -> None:
    """Results are made while there is nobody to take them."""
    send(stage, BEFORE)
    updates(broker.bootstrap, "counts", 1, len(BEFORE))
    stage.wait_until_read(made, ["text"])
    send(stage, MEANWHILE)
    assert gate.reached.wait(60)
    broker.kill()
    gate.open.set()


def retry(*_: object) -> str:
    return "retry"


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"processing_guarantee": "at_least_once"}, id="at least once"),
        pytest.param(
            {"processing_guarantee": "at_least_once", "production_exception_handler": retry},
            id="a handler of one's own",
        ),
        pytest.param({"processing_guarantee": "exactly_once_v2"}, id="exactly once"),
    ],
)
def test_no_word_is_lost(
    broker: BrokerProcess,
    tmp_path: Path,
    settings: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage, gate = Stage(broker.bootstrap, tmp_path), Gate()
    stage.create(["text", "counts"])
    made = application(broker, counting(gate), state_dir=str(tmp_path / "state"), **settings)
    with made:
        processed_while_away(broker, stage, made, gate)
        eventually(lambda: "tasks start over" in caplog.text, what="it gives up", seconds_max=60)
        broker.start()
        expected = Counter(BEFORE + MEANWHILE)
        found = updates(broker.bootstrap, "counts", 1, expected.total())
        assert {word: counts[-1] for word, counts in found.items()} == expected
    stage.close()
    assert made.error is None
    assert made.state is State.NOT_RUNNING


def test_a_handler_may_stop_the_application(broker: BrokerProcess, tmp_path: Path) -> None:
    stage, gate = Stage(broker.bootstrap, tmp_path), Gate()
    stage.create(["text", "counts"])
    made = application(
        broker,
        counting(gate),
        state_dir=str(tmp_path / "state"),
        processing_guarantee="at_least_once",
        production_exception_handler=fail_on_error,
    )
    with made:
        processed_while_away(broker, stage, made, gate)
        eventually(lambda: made.error is not None, what="it stops", seconds_max=60)
        assert "a record was not delivered" in str(made.error)
        broker.start()
    stage.close()


def test_a_task_waits_for_a_cluster_that_does_not_answer(
    broker: BrokerProcess, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stage, gate = Stage(broker.bootstrap, tmp_path), Gate()
    stage.create(["text", "counts"])
    made = application(
        broker,
        counting(gate),
        state_dir=str(tmp_path / "state"),
        processing_guarantee="at_least_once",
        main_consumer_default_api_timeout_ms=1_000,
        main_consumer_request_timeout_ms=1_000,
    )
    with made:
        processed_while_away(broker, stage, made, gate)
        # It starts over, and cannot learn from where.
        eventually(lambda: "which is repeated" in caplog.text, what="it asks", seconds_max=60)
        broker.start()
        expected = Counter(BEFORE + MEANWHILE)
        found = updates(broker.bootstrap, "counts", 1, expected.total())
        assert {word: counts[-1] for word, counts in found.items()} == expected
    stage.close()
    assert made.error is None
