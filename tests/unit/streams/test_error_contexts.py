"""What error handlers know of the place where something failed."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.streams import (
    ErrorContext,
    Handlers,
    Processor,
    ProcessorContext,
    PunctuationType,
    StreamsBuilder,
    StreamsError,
    TopologyTestDriver,
    UnwrittenRecord,
)
from moldau.streams.machine.error_handlers import Verdict


class Noting:
    """A handler of both kinds."""

    def __init__(self) -> None:
        self.contexts: list[ErrorContext] = []

    def __call__(self, where: ErrorContext, *_: Any) -> str:
        self.contexts.append(where)
        return "continue"


def test_they_know_the_input_record_and_the_node() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", key_serde="string", value_serde="string")
    stream.map_values(int).to("out", value_serde="long")
    noting = Noting()
    handlers = Handlers(deserialization=noting, processing=noting)
    with TopologyTestDriver(builder.build(), handlers=handlers) as driver:
        driver.input_topic("in", value_serde="bytes").pipe_input("a", b"\xff", timestamp=3)
        driver.input_topic("in").pipe_input("b", "x", timestamp=4)
    bad, failed = noting.contexts
    assert (bad.topic, bad.offset, bad.timestamp) == ("in", 0, 3)
    assert (bad.raw_key, bad.raw_value) == (b"a", b"\xff")
    assert (bad.task_id, bad.node) == ("0_0", "KSTREAM-SOURCE-0000000000")
    assert (failed.offset, failed.raw_key, failed.raw_value) == (1, b"b", b"x")
    assert failed.node == "KSTREAM-MAPVALUES-0000000001"


class Failing(Processor):
    def init(self, context: ProcessorContext) -> None:
        context.schedule(10, PunctuationType.WALL_CLOCK_TIME, self.fail)

    def process(self, record: Any) -> None:
        """Nothing: only its punctuation fails."""

    def fail(self, now_ms: int) -> None:
        raise ValueError(now_ms)


def test_a_punctuation_has_no_record() -> None:
    builder = StreamsBuilder()
    builder.stream("in").process(Failing, name="failing")
    noting = Noting()
    with TopologyTestDriver(builder.build(), handlers=Handlers(processing=noting)) as driver:
        driver.advance_wall_clock_time(10)
    (where,) = noting.contexts
    assert (where.topic, where.raw_key, where.raw_value) == ("", None, None)
    assert where.node == "failing"


def test_what_cannot_be_written_knows_the_input_record() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", key_serde="string", value_serde="string")
    stream.map_values(str.upper).to("out", value_serde="long")
    asked: list[tuple[str, UnwrittenRecord]] = []

    def skip(topic: str, record: UnwrittenRecord, error: Exception) -> Verdict:
        asked.append((topic, record))
        return "continue"

    with TopologyTestDriver(builder.build(), handlers=Handlers(production=skip)) as driver:
        driver.input_topic("in").pipe_input("a", "x", timestamp=3)
    ((topic, record),) = asked
    assert (topic, record.key, record.value, record.timestamp) == ("out", "a", "X", 3)
    where = record.where
    assert (where.topic, where.offset, where.raw_value, where.task_id) == ("in", 0, b"x", "0_0")


def test_a_value_that_cannot_be_serialized_is_not_retried() -> None:
    builder = StreamsBuilder()
    builder.stream("in", key_serde="string", value_serde="string").to("out", value_serde="long")
    handlers = Handlers(production=lambda *_: "retry")
    driver = TopologyTestDriver(builder.build(), handlers=handlers)
    with driver, pytest.raises(StreamsError):
        driver.input_topic("in").pipe_input("a", "x")
