"""When processors are called by time, in which order, and what happens when such a call fails."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from moldau.streams import (
    Handlers,
    ProcessingError,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    StreamsBuilder,
    Topology,
    TopologyTestDriver,
    skip_on_error,
)

STREAM, WALL = PunctuationType.STREAM_TIME, PunctuationType.WALL_CLOCK_TIME


class Scheduling(Processor):
    """Calls what a test gives it."""

    def __init__(self, on_init: Callable[[ProcessorContext], object]) -> None:
        self._on_init = on_init

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._on_init(context)

    def process(self, record: Record[Any, Any]) -> None:
        self.context.forward(record)


def scheduled(on_init: Callable[[ProcessorContext], object]) -> Topology:
    builder = StreamsBuilder()
    stream = builder.stream("in", key_serde="string", value_serde="string")
    stream.process(lambda: Scheduling(on_init)).to("out", key_serde="string", value_serde="string")
    return builder.build()


def test_what_the_wall_clock_forwards_leaves_the_cache_at_once() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", key_serde="string", value_serde="string")

    def on_init(context: ProcessorContext) -> None:
        context.schedule(10, WALL, lambda now: context.forward(Record("k", str(now), now)))

    table = stream.process(lambda: Scheduling(on_init)).to_table(store="kept")
    table.to_stream().to("out")
    with TopologyTestDriver(
        builder.build(), default_key_serde="string", default_value_serde="string"
    ) as driver:
        driver.advance_wall_clock_time(10)
        assert driver.output_topic("out").read_key_values() == [("k", "10")]


def test_what_is_scheduled_by_a_punctuation_and_due_fires_with_it() -> None:
    fired: list[tuple[str, int]] = []

    def on_init(context: ProcessorContext) -> None:
        def first(now: int) -> None:
            fired.append(("first", now))
            outer.cancel()
            context.schedule(10, STREAM, lambda now: fired.append(("second", now)))

        outer = context.schedule(10, STREAM, first)

    with TopologyTestDriver(scheduled(on_init)) as driver:
        driver.input_topic("in").pipe_input("a", "b", timestamp=7)
        assert fired == [("first", 7), ("second", 7)]


def test_punctuations_of_one_time_fire_in_the_order_of_a_java_heap() -> None:
    fired: list[str] = []

    def on_init(context: ProcessorContext) -> None:
        for name in "abcde":
            context.schedule(10, STREAM, partial(_note, fired, name))

    with TopologyTestDriver(scheduled(on_init)) as driver:
        for time in (7, 24, 25, 34, 36):
            driver.input_topic("in").pipe_input("a", "b", timestamp=time)
        # As Kafka Streams 4.3 calls them.
        assert "".join(fired) == "aebdc" + "dceab" + "abcde"


@pytest.mark.parametrize(
    ("start", "times", "expected"),
    [
        pytest.param(25, [7, 24, 25, 34, 36], [25, 36], id="not before its start"),
        pytest.param(0, [7, 9, 12], [7, 12], id="at once where it has begun"),
    ],
)
def test_a_start_time_anchors_stream_time(
    start: int, times: list[int], expected: list[int]
) -> None:
    fired: list[int] = []
    topology = scheduled(lambda context: context.schedule(10, STREAM, fired.append, start=start))
    with TopologyTestDriver(topology) as driver:
        for time in times:
            driver.input_topic("in").pipe_input("a", "b", timestamp=time)
        assert fired == expected


def test_a_start_time_in_the_past_keeps_its_grid() -> None:
    fired: list[int] = []
    topology = scheduled(lambda context: context.schedule(10, WALL, fired.append, start=3))
    with TopologyTestDriver(topology, wall_clock_ms=20) as driver:
        for _ in range(6):
            driver.advance_wall_clock_time(2)
        assert fired == [24]  # 23 and 33 are the grid.


def test_a_start_time_is_not_negative() -> None:
    topology = scheduled(lambda context: context.schedule(10, WALL, print, start=-1))
    with pytest.raises(ValueError, match=r"minimum supported start time"):
        TopologyTestDriver(topology)


def _note(fired: list[str], name: str, now: int) -> None:
    fired.append(name)


def _fails(now: int) -> None:
    raise KeyError(now)


def test_a_failed_punctuation_is_for_the_handler() -> None:
    asked: list[tuple[Any, ...]] = []

    def handler(where: Any, record: Any, node: str, error: Exception) -> str:
        asked.append((where.topic, where.offset, where.timestamp, record, node, repr(error)))
        return "continue"

    topology = scheduled(lambda context: context.schedule(10, WALL, _fails))
    handlers = Handlers(processing=handler)  # type: ignore[arg-type]
    with TopologyTestDriver(topology, handlers=handlers) as driver:
        driver.advance_wall_clock_time(10)
        assert asked == [("", -1, 10, None, "KSTREAM-PROCESSOR-0000000001", "KeyError(10)")]
        assert driver.dropped_records == 1


def test_a_failed_punctuation_has_a_dead_letter_without_a_record() -> None:
    topology = scheduled(lambda context: context.schedule(10, WALL, _fails))
    handlers = Handlers(processing=skip_on_error, dead_letter_topic="letters")
    with TopologyTestDriver(topology, handlers=handlers) as driver:
        driver.advance_wall_clock_time(10)
        letter = driver.take("letters")
    assert letter is not None
    assert (letter.key, letter.value, letter.timestamp) == (None, None, 10)
    headers = dict(letter.headers)
    assert headers["__streams.errors.topic"] is None
    assert headers["__streams.errors.offset"] == b"-1"


def test_a_failed_punctuation_stops_the_application_otherwise() -> None:
    topology = scheduled(lambda context: context.schedule(10, WALL, _fails))
    with (
        TopologyTestDriver(topology) as driver,
        pytest.raises(ProcessingError, match=r"punctuate\. taskId=0_0, processor=KSTREAM-PROC"),
    ):
        driver.advance_wall_clock_time(10)
