"""Names, numbers and orders that differed from Kafka Streams', found by random cases.

tests/conformance/test_streams_random_cases.py compares them with Kafka Streams itself, where it is.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from moldau.streams import (
    EmitStrategy,
    JoinWindows,
    Materialized,
    Processor,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    TopologyError,
    TopologyTestDriver,
    UnlimitedWindows,
)
from moldau.streams.machine.topic_queues import TopicQueues
from moldau.streams.records import Produced

TEXT: dict[str, Any] = {"key_serde": "string", "value_serde": "string"}


def store_number(builder: StreamsBuilder) -> int:
    found = re.search(r"AGGREGATE-STATE-STORE-(\d+)", builder.build().describe())
    assert found is not None
    return int(found[1])


@pytest.mark.parametrize("windows", [None, TimeWindows(size=5), SessionWindows(inactivity_gap=5)])
def test_a_count_with_settings_of_its_store_takes_a_number_more(windows: Any) -> None:
    for store, number in ((None, 1), (Materialized(caching=False), 2)):
        builder = StreamsBuilder()
        grouped = builder.stream("in", **TEXT).group_by_key()
        (grouped if windows is None else grouped.windowed_by(windows)).count(store=store)
        assert store_number(builder) == number


def test_a_count_of_sliding_windows_takes_none() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in", **TEXT).group_by_key()
    windowed = grouped.windowed_by(SlidingWindows(time_difference=5))
    windowed.count(store=Materialized(caching=False))
    assert store_number(builder) == 1


def test_a_stream_that_is_cogrouped_twice_has_the_later_aggregator() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in", **TEXT).group_by_key()
    other = builder.stream("other", **TEXT).group_by_key()
    (
        grouped.cogroup(lambda key, value, total: total + "-")
        .cogroup(other, lambda key, value, total: total + "o")
        .cogroup(grouped, lambda key, value, total: total + value)
        .aggregate(str, store=Materialized(value_serde="string"))
        .to_stream()
        .to("out", **TEXT)
    )
    with TopologyTestDriver(builder.build()) as driver:
        driver.input_topic("in").pipe_input("k", "v")
        driver.input_topic("other").pipe_input("k", "w")
        found = driver.output_topic("out").read_key_values()
    assert found == [("k", "v"), ("k", "vo")]


def test_processors_do_not_count_as_changers_of_keys_for_the_optimiser() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", **TEXT).process(Processor)
    stream.group_by_key(**TEXT).count(store="a")
    stream.group_by_key(**TEXT).count(store="b")
    described = builder.build(optimization="all").describe()
    assert "(topics: [a-repartition])" in described
    assert "(topics: [b-repartition])" in described


def test_an_update_that_is_let_go_still_counts_as_held_for_joins() -> None:
    builder = StreamsBuilder()
    table = builder.table("in", **TEXT).suppress(Suppressed.until_time_limit(0))
    joined = table.left_join(table, lambda one, two: f"{one}-{two}")
    joined.to_stream().to("out", **TEXT)
    with TopologyTestDriver(builder.build(), config={"statestore.cache.max.bytes": 0}) as driver:
        driver.input_topic("in").pipe_input("k", "v", timestamp=5)
        assert driver.output_topic("out").read_key_values() == [("k", "v-None")]


def test_an_empty_name_of_suppress_is_a_name() -> None:
    builder = StreamsBuilder()
    table = builder.table("in", **TEXT).suppress(Suppressed.until_time_limit(0, name=""))
    table.to_stream().to("out", **TEXT)
    topology = builder.build()
    described = topology.describe()
    assert "Processor:  (stores: [-store])" in described
    assert "      --> \n" in described, "the empty name, and not none"
    assert "KTABLE-TOSTREAM-0000000003" in described, "an empty name takes no number"
    with TopologyTestDriver(topology) as driver:
        driver.input_topic("in").pipe_input("k", "v", timestamp=5)
        assert driver.output_topic("out").read_key_values() == [("k", "v")]


def test_children_are_in_the_order_of_a_balanced_tree() -> None:
    builder = StreamsBuilder()
    table = builder.table("left", **TEXT, store=Materialized(name="v0", history=5))
    first = table.left_join(table, max, foreign_key=str, store=Materialized(name="st1", **TEXT))
    joined = table.join(first, max, foreign_key=str, name="name2")
    joined.to_stream().to("out", **TEXT)
    children = (
        "name2-subscription-registration-processor",
        "KTABLE-FK-JOIN-SUBSCRIPTION-PROCESSOR-0000000009",
        "KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000003",
    )
    assert f"--> {', '.join(children)}" in builder.build(optimization="all").describe()


def test_topics_with_the_same_time_come_in_the_order_of_a_java_heap() -> None:
    queues = TopicQueues()
    for topic, time in (("a", 1), ("b", 1), ("c", 1), ("d", 0), ("a", 1), ("b", 2)):
        queues.add(Produced(topic, None, None, time))
    taken = []
    while (record := queues.take()) is not None:
        taken.append((record.topic, record.timestamp))
    assert taken == [("d", 0), ("b", 1), ("c", 1), ("a", 1), ("a", 1), ("b", 2)]


def test_changelogs_of_joins_have_the_headers_of_their_records() -> None:
    """Those of join windows and of subscriptions, and no others."""
    builder = StreamsBuilder()
    windows = JoinWindows(time_difference=10)
    left, right = (builder.stream(name, **TEXT) for name in ("left", "right"))
    left.join(right, lambda one, two: one, windows=windows, store="joined")
    left.group_by_key().count(store="counts")
    rows = builder.table("rows", **TEXT, store="rows")
    others = builder.table("others", **TEXT, store="others")
    rows.join(others, lambda one, two: one, foreign_key=lambda row: row, name="fk")
    config = {"statestore.cache.max.bytes": 0}
    with TopologyTestDriver(builder.build(), application_id="app", config=config) as driver:
        for topic in ("left", "right", "rows"):
            driver.input_topic(topic).pipe_input("a", "b", timestamp=1, headers=[("h", b"1")])
        found = {
            topic: record.headers
            for topic in driver.output_topics
            if topic.endswith("-changelog") and (record := driver.take(topic)) is not None
        }
    with_headers = {topic for topic, headers in found.items() if tuple(headers) == (("h", b"1"),)}
    assert with_headers == {
        "app-joined-this-join-store-changelog",
        "app-joined-other-join-store-changelog",
        "app-fk-subscription-store-changelog",
    }
    assert len(found) > len(with_headers)


def test_a_name_is_checked_before_its_suffixes() -> None:
    builder = StreamsBuilder()
    left, right = (builder.table(name, **TEXT) for name in ("left", "right"))
    for name, text in ((".", 'cannot be "." or ".."'), ("bad name", '"bad name" is illegal')):
        with pytest.raises(TopologyError, match=re.escape(text)):
            left.join(right, lambda one, two: one, foreign_key=lambda row: row, name=name)


def test_what_windows_cannot_do_is_said_in_kafkas_words() -> None:
    grouped = StreamsBuilder().stream("in", **TEXT).group_by_key()
    endless = grouped.windowed_by(UnlimitedWindows(start=0))
    with pytest.raises(ValueError, match="emit strategy cannot be used for UnlimitedWindows"):
        endless.emit_strategy(EmitStrategy.ON_WINDOW_CLOSE).count()
    short = Materialized(name="short", retention=5)
    for windows, text in (
        (TimeWindows(size=10, grace=2), "Got size=[10], grace=[2], retention=[5]"),
        (SlidingWindows(time_difference=10, grace=2), "Got time difference=[10], grace=[2], "),
        (SessionWindows(inactivity_gap=10, grace=2), "Got gap=[10], grace=[2], retention=[5]"),
    ):
        with pytest.raises(ValueError, match=re.escape(text)):
            grouped.windowed_by(windows).count(store=short)


def test_a_name_that_a_global_store_has_is_refused_as_such() -> None:
    builder = StreamsBuilder()
    builder.global_table("left", store="st1")
    builder.table("right", store="st1")
    with pytest.raises(TopologyError, match="A different GlobalStateStore has already been added"):
        builder.build()
