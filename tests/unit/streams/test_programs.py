"""What programs rely on beside the cases: processors, handlers, serdes, errors, optimisation."""

from __future__ import annotations

import re
from typing import Any

import pytest

from moldau.streams import (
    DeadLetter,
    ErrorResponse,
    Handlers,
    JoinWindows,
    Materialized,
    ProcessingError,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    StreamsBuilder,
    StreamsError,
    Suppressed,
    Topology,
    TopologyError,
    TopologyTestDriver,
    key_value_store,
    skip_on_error,
)

TEXT: dict[str, Any] = {"key_serde": "string", "value_serde": "string"}


def driver(topology: Topology, **options: Any) -> TopologyTestDriver:
    return TopologyTestDriver(
        topology, default_key_serde="string", default_value_serde="string", **options
    )


class Route(Processor):
    def process(self, record: Record[Any, Any]) -> None:
        self.context.forward(record, "long" if len(record.value) > 3 else "short")


def test_a_topology_by_hand_forwards_to_named_children() -> None:
    topology = (
        Topology()
        .add_source("in", ["text"], **TEXT)
        .add_processor("route", Route, "in")
        .add_sink("long", "long-out", "route", **TEXT)
        .add_sink("short", "short-out", "route", **TEXT)
    )
    with driver(topology) as run:
        run.input_topic("text").pipe_key_values([("a", "word"), ("b", "it")])
        assert run.output_topic("long-out").read_key_values() == [("a", "word")]
        assert run.output_topic("short-out").read_key_values() == [("b", "it")]


def test_forwarding_to_an_unknown_child_says_so() -> None:
    topology = Topology().add_source("in", ["text"], **TEXT).add_processor("route", Route, "in")
    with driver(topology) as run, pytest.raises(ProcessingError, match="processor=route") as error:
        run.input_topic("text").pipe_input("a", "it")
    assert "Unknown downstream node: short" in str(error.value.__cause__)


class UsesStore(Processor):
    def init(self, context: ProcessorContext) -> None:
        context.state_store("seen")


def test_a_store_that_is_not_connected_is_refused() -> None:
    topology = Topology().add_source("in", ["text"], **TEXT).add_processor("p", UsesStore, "in")
    topology.add_state_store(key_value_store("seen", **TEXT))
    with pytest.raises(StreamsError, match="Processor p has no access to StateStore seen"):
        driver(topology)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda t: t.add_source("in", ["x"]), "Processor in is already added."),
        (lambda t: t.add_source("y", ["text"]), "Topic text has already been registered"),
        (lambda t: t.add_source("y", []), "topics cannot be empty"),
        (lambda t: t.add_processor("p", Route), "predecessorNames cannot be empty"),
        (lambda t: t.add_processor("p", Route, "q"), "Parent node q is unknown."),
        (lambda t: t.add_sink("s", "out"), "predecessorNames cannot be empty"),
        (
            lambda t: t.connect_processor_and_state_stores("in", "seen"),
            "StateStore seen is not added yet.",
        ),
        (
            lambda t: t.add_state_store(key_value_store("seen", **TEXT), "in"),
            "cannot connect a state store seen to a source node or a sink node.",
        ),
    ],
)
def test_wrong_topologies_are_refused(build: Any, message: str) -> None:
    topology = Topology().add_source("in", ["text"], **TEXT)
    with pytest.raises(TopologyError, match=re.escape(f"Invalid topology: {message}")):
        build(topology)


def failing(value: str) -> str:
    if value == "bad":
        raise ValueError("no")
    return value


def failing_program() -> Topology:
    builder = StreamsBuilder()
    builder.stream("in", **TEXT).map_values(failing).to("out", **TEXT)
    return builder.build()


def test_an_error_of_a_function_names_the_operator_and_the_record() -> None:
    with driver(failing_program()) as run:
        run.input_topic("in").pipe_input("a", "good")
        with pytest.raises(ProcessingError) as error:
            run.input_topic("in").pipe_input("a", "bad")
    assert error.value.processor == "KSTREAM-MAPVALUES-0000000001"
    assert str(error.value).endswith("topic=in, partition=0, offset=1")
    assert isinstance(error.value.__cause__, ValueError)


def test_a_handler_can_skip_records_that_fail() -> None:
    handlers = Handlers(processing=skip_on_error)
    with driver(failing_program(), handlers=handlers) as run:
        run.input_topic("in").pipe_key_values([("a", "bad"), ("a", "good")])
        assert run.output_topic("out").read_key_values() == [("a", "good")]
        assert run.dropped_records == 1


def test_a_record_that_fails_goes_to_the_dead_letter_topic_as_it_came() -> None:
    handlers = Handlers(processing=skip_on_error, dead_letter_topic="errors")
    with driver(failing_program(), handlers=handlers) as run:
        run.input_topic("in").pipe_input("a", "bad", timestamp=7, headers=(("h", b"1"),))
        letter = run.output_topic("errors").read_record()
    assert (letter.key, letter.value, letter.timestamp) == ("a", "bad", 7)
    found = list(letter.headers)
    name, trace = found.pop(3)
    assert name == "__streams.errors.stacktrace"
    assert re.fullmatch(rb"(?s)Traceback .*, in failing\nValueError: no\n", trace or b"")
    # In the order of Kafka Streams.
    assert found == [
        ("h", b"1"),
        ("__streams.errors.exception", b"ValueError"),
        ("__streams.errors.message", b"no"),
        ("__streams.errors.topic", b"in"),
        ("__streams.errors.partition", b"0"),
        ("__streams.errors.offset", b"0"),
    ]


def test_a_handler_can_write_dead_letters_of_its_own() -> None:
    def to_errors(where: Any, record: Any, node: str, error: Exception) -> ErrorResponse:
        letters = [DeadLetter(each, value=record.value.encode()) for each in ("one", "two")]
        return ErrorResponse("continue", letters)

    handlers = Handlers(processing=to_errors, dead_letter_topic="unused")
    with driver(failing_program(), handlers=handlers) as run:
        run.input_topic("in").pipe_input("a", "bad", timestamp=7)
        for topic in ("one", "two"):
            letter = run.output_topic(topic, **TEXT).read_record()
            assert (letter.key, letter.value, letter.timestamp) == (None, "bad", 7)
        assert "unused" not in run.output_topics


def test_what_is_no_answer_of_a_handler_stops_the_application() -> None:
    handlers = Handlers(processing=lambda *_: None)  # type: ignore[arg-type]
    with (
        driver(failing_program(), handlers=handlers) as run,
        pytest.raises(StreamsError, match="returned None"),
    ):
        run.input_topic("in").pipe_input("a", "bad")


def test_a_partitioner_can_choose_several_partitions_or_none() -> None:
    builder = StreamsBuilder()
    chosen: dict[str, Any] = {"all": [0, 0], "one": 0, "any": None, "none": ()}
    builder.stream("in", **TEXT).to(
        "out", partitioner=lambda topic, key, value, count: chosen[value], **TEXT
    )
    with driver(builder.build()) as run:
        run.input_topic("in").pipe_values(list(chosen))
        assert run.output_topic("out").read_values() == ["all", "all", "one", "any"]


def test_a_wrong_reset_policy_is_refused() -> None:
    for policy in ("none", "by_duration:PT1H", "latest"):
        StreamsBuilder().stream("in", offset_reset=policy)
    for policy in ("first", "by_duration:", "by_duration:1h"):
        builder = StreamsBuilder()
        builder.stream("in", offset_reset=policy)
        with pytest.raises(TopologyError, match="offset_reset is"):
            builder.build()


def test_a_handler_can_skip_records_that_cannot_be_read_or_written() -> None:
    builder = StreamsBuilder()
    builder.stream("in", key_serde="string", value_serde="long").to("out", value_serde="short")
    handlers = Handlers(deserialization=skip_on_error, production=skip_on_error)
    topology = builder.build()
    with driver(topology, handlers=handlers) as run:
        run.input_topic("in", value_serde="string").pipe_input("a", "x")
        run.input_topic("in").pipe_key_values([("b", 2**40), ("c", 3)])
        assert run.output_topic("out").read_key_values() == [("c", 3)]
        assert run.dropped_records == 2
    with driver(topology) as run, pytest.raises(StreamsError, match="topic=in, partition=0"):
        run.input_topic("in", value_serde="string").pipe_input("a", "x")


def test_a_step_without_a_serde_says_which() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    with (
        TopologyTestDriver(builder.build()) as run,
        pytest.raises(StreamsError, match="no key serde for in: pass key_serde"),
    ):
        run.input_topic("in").pipe_input("a", "b")
    with pytest.raises(ValueError, match="no serde is called 'text'"):
        builder.stream("in2", key_serde="text")


def test_a_timestamp_extractor_sets_the_time_and_negative_times_are_dropped() -> None:
    builder = StreamsBuilder()
    builder.stream(
        "in", **TEXT, timestamp_extractor=lambda where, value, before: int(value)
    ).to("out", **TEXT)
    with driver(builder.build()) as run:
        run.input_topic("in").pipe_key_values([("a", "7"), ("a", "-1")])
        assert [record.timestamp for record in run.output_topic("out").read_records()] == [7]
        assert run.dropped_records == 1


def test_a_topic_is_chosen_for_each_record_and_patterns_are_read() -> None:
    builder = StreamsBuilder()
    builder.stream(re.compile("in-.*"), **TEXT).to(lambda key, value, where: f"out-{value}", **TEXT)
    with driver(builder.build()) as run:
        run.input_topic("in-1").pipe_input("a", "x")
        run.input_topic("in-2").pipe_input("a", "y")
        assert run.output_topics == ["out-x", "out-y"]
        with pytest.raises(StreamsError, match="Unknown topic: other"):
            run.input_topic("other")


def test_aggregates_that_change_in_place_do_not_change_old_values() -> None:
    builder = StreamsBuilder()

    def append(key: str, value: str, all_: list[str]) -> list[str]:
        all_.append(value)
        return all_

    sizes = (
        builder.stream("in", **TEXT)
        .group_by_key()
        .aggregate(list, append, store=Materialized(name="lists", value_serde="json"))
        .group_by(lambda key, all_: (str(len(all_)), key), **TEXT)
        .count(store="sizes")
    )
    assert sizes.queryable_store_name == "sizes"
    with driver(builder.build()) as run:
        run.input_topic("in").pipe_key_values([("a", "1"), ("a", "2"), ("b", "1")])
        rows = {key: found.value for key, found in run.state_store("sizes").all()}
    assert rows == {"1": 1, "2": 1}


def optimised_program() -> StreamsBuilder:
    builder = StreamsBuilder()
    keyed = builder.stream("in", **TEXT).select_key(lambda key, value: value)
    keyed.group_by_key(**TEXT).count(store="counts")
    keyed.group_by_key(**TEXT).reduce(lambda a, b: a + b, store="texts")
    windows = JoinWindows(time_difference=10)
    keyed.join(keyed, lambda a, b: a + b, windows=windows).to("pairs", **TEXT)
    builder.table("rows", **TEXT, store="rows")
    return builder


@pytest.mark.parametrize("optimization", ["none", "all"])
def test_optimisation_changes_topics_and_not_results(optimization: str) -> None:
    topology = optimised_program().build(optimization=optimization)
    with driver(topology) as run:
        run.input_topic("in").pipe_key_values([("1", "x"), ("2", "x"), ("3", "y")])
        run.input_topic("rows").pipe_input("k", "v")
        assert dict(run.state_store("counts").all()) == {"x": (2, 0), "y": (1, 0)}
        assert dict(run.state_store("texts").all()) == {"x": ("xx", 0), "y": ("y", 0)}
        assert len(run.output_topic("pairs").read_records()) == 5
        repartitions = [name for name in run.output_topics if name.endswith("-repartition")]
        assert len(repartitions) == (1 if optimization == "all" else 3)
        assert ("test-rows-changelog" in run.output_topics) is (optimization == "none")


def test_partition_counts_of_a_join_must_agree() -> None:
    builder = StreamsBuilder()
    left = builder.stream("l", **TEXT).repartition(name="left", partitions=2)
    right = builder.stream("r", **TEXT).repartition(name="right", partitions=3)
    left.join(right, lambda a, b: a, windows=JoinWindows(time_difference=1))
    message = "same number of partitions: [{left-repartition=2, right-repartition=3}]"
    with pytest.raises(TopologyError, match=re.escape(message)):
        builder.build()


def test_suppress_needs_windows() -> None:
    table = StreamsBuilder().table("in", **TEXT)
    with pytest.raises(TopologyError, match="only defined for windowed computations"):
        table.suppress(Suppressed.until_window_closes())


class Ticks(Processor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._schedule = context.schedule(10, PunctuationType.WALL_CLOCK_TIME, self._on_tick)

    def _on_tick(self, now_ms: int) -> None:
        self.context.forward(Record("tick", str(now_ms), now_ms))
        if now_ms >= 20:
            self._schedule.cancel()

    def process(self, record: Record[Any, Any]) -> None:
        self.context.forward(record)


def test_a_punctuation_can_be_cancelled() -> None:
    builder = StreamsBuilder()
    builder.stream("in", **TEXT).process(Ticks).to("out", **TEXT)
    with driver(builder.build()) as run:
        for _ in range(4):
            run.advance_wall_clock_time(10)
        assert run.output_topic("out").read_key_values() == [("tick", "10"), ("tick", "20")]


class Rename(Processor):
    def process(self, record: Record[Any, Any]) -> None:
        self.context.forward(record.with_key("other"))


def test_process_values_must_keep_the_key() -> None:
    builder = StreamsBuilder()
    builder.stream("in", **TEXT).process_values(Rename, name="rename").to("out", **TEXT)
    with driver(builder.build()) as run, pytest.raises(ProcessingError) as error:
        run.input_topic("in").pipe_input("a", "b")
    assert "process_values in rename changed the key 'a'" in str(error.value.__cause__)


@pytest.mark.parametrize("method", ["join", "left_join", "outer_join"])
@pytest.mark.parametrize("optimization", ["none", "single.store.self.join"])
def test_a_topic_joined_with_itself_has_the_same_results_through_one_store(
    method: str, optimization: str
) -> None:
    builder = StreamsBuilder()
    left, right = builder.stream("in", **TEXT), builder.stream("in", **TEXT)
    windows = JoinWindows(time_difference=10)
    getattr(left, method)(right, lambda a, b: f"{a}{b}", windows=windows).to("out", **TEXT)
    with driver(builder.build(optimization=optimization)) as run:
        run.input_topic("in").pipe_input("k", "x", timestamp=0)
        run.input_topic("in").pipe_input("k", "y", timestamp=5)
        run.input_topic("in").pipe_input("k", "z", timestamp=50)
        pairs = sorted(str(value) for _, value in run.output_topic("out").read_key_values())
        changelogs = [name for name in run.output_topics if name.endswith("-store-changelog")]
    assert pairs == ["xx", "xy", "yx", "yy", "zz"]
    if optimization != "none":
        assert len(changelogs) == 1


def test_an_unknown_optimisation_is_refused() -> None:
    with pytest.raises(ValueError, match="not 'some'"):
        StreamsBuilder().build(optimization="some")
