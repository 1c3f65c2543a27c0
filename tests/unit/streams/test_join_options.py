"""What can be said about the stores, serdes and partitions of tables and joins."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.streams import (
    JoinWindows,
    KStream,
    Materialized,
    StreamJoined,
    StreamsBuilder,
    StreamsError,
    TimeWindows,
    TopologyTestDriver,
)
from moldau.streams.hosts.planning import plan_of
from moldau.streams.stores.base import StoreBuilder
from moldau.streams.stores.memory import MemoryStorage

TEXT: dict[str, Any] = {"key_serde": "string", "value_serde": "string"}
WINDOWS = JoinWindows(time_difference=10, grace=5)


def pair(one: object, two: object) -> str:
    return f"{one}-{two}"


def streams(**serdes: Any) -> tuple[StreamsBuilder, KStream[Any, Any], KStream[Any, Any]]:
    builder = StreamsBuilder()
    return builder, builder.stream("left", **serdes), builder.stream("right", **serdes)


def join_stores(store: str | StreamJoined, *, left: bool = False) -> dict[str, StoreBuilder]:
    builder, one, two = streams(**TEXT)
    join = one.left_join if left else one.join
    join(two, pair, windows=WINDOWS, store=store).to("out", **TEXT)
    return builder.build().assembly.stores


def test_a_table_says_how_it_is_logged_and_where_its_entries_are() -> None:
    builder = StreamsBuilder()
    place = lambda name: MemoryStorage()  # noqa: E731
    spec = Materialized(name="t", changelog_config={"segment.ms": "9"}, storage=place)
    windowed = Materialized(name="w", changelog_config={"retention.ms": "7"}, logging=True)
    stream = builder.stream("in", **TEXT)
    stream.to_table(store=spec)
    stream.group_by_key().windowed_by(TimeWindows(size=10)).count(store=windowed)
    assembly = builder.build().assembly
    assert assembly.stores["t"].storage is place
    changelogs = plan_of(assembly, "app").subtopologies[0].changelogs
    assert changelogs["t"].config == {"segment.ms": "9"}
    assert changelogs["w"].config == {"retention.ms": "7"}


def test_the_stores_of_a_join_without_changelogs() -> None:
    made = join_stores(StreamJoined(name="j", logging=False, persistent=False), left=True)
    names = ("j-this-join-store", "j-outer-other-join-store", "j-left-shared-join-store")
    assert tuple(made) == names
    assert [each.logging for each in made.values()] == [False] * 3
    assert [each.persistent for each in made.values()] == [False] * 3


def test_the_changelogs_of_a_join_have_settings() -> None:
    made = join_stores(StreamJoined(changelog_config={"segment.ms": "9"}), left=True)
    assert [each.changelog_config for each in made.values()] == [{"segment.ms": "9"}] * 3


def test_each_side_of_a_join_has_a_store_of_its_own() -> None:
    this = Materialized(name="mine", persistent=False)
    made = join_stores(StreamJoined(this=this, logging=False), left=True)
    names = ("mine", "KSTREAM-OUTEROTHER-0000000005-store", "mine-left-shared-join-store")
    assert tuple(made) == names
    assert made["mine"].logging, "the store's own options count"
    assert not made[names[1]].logging


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            StreamJoined(this=Materialized(name="a"), other=Materialized(name="a")),
            "Both StoreSuppliers have the same name",
        ),
        (StreamJoined(this=Materialized(name="a", retention=9)), "Window settings mismatch"),
        (StreamJoined(other=Materialized()), "needs a name"),
    ],
)
def test_stores_that_do_not_fit_a_join_are_refused(wrong: StreamJoined, message: str) -> None:
    with pytest.raises(StreamsError, match=message):
        join_stores(wrong)


def test_a_join_of_streams_has_serdes_of_its_own() -> None:
    builder, one, two = streams()
    one = one.map(lambda key, value: (value, len(value)))
    joined = one.join(
        two,
        lambda number, text: f"{number}-{text}",
        windows=WINDOWS,
        key_serde="string",
        value_serde="long",
        other_value_serde="json",
    )
    joined.to("out", value_serde="string")
    serdes: dict[str, Any] = {"default_key_serde": "string", "default_value_serde": "string"}
    with TopologyTestDriver(builder.build(), **serdes) as driver:
        driver.input_topic("left").pipe_input("x", "k", timestamp=1)
        driver.input_topic("right").pipe_input("k", "v", timestamp=2)
        assert driver.output_topic("out", key_serde="string").read_key_values() == [("k", "1-v")]


def test_a_join_with_a_table_has_serdes_for_its_repartition() -> None:
    builder, stream, _ = streams(**TEXT)
    table = builder.table("table", **TEXT)
    keyed = stream.map(lambda key, value: (value, len(value)))
    keyed.join(table, pair, key_serde="string", value_serde="long").to("out", **TEXT)
    with TopologyTestDriver(builder.build()) as driver:
        driver.input_topic("table").pipe_input("k", "row")
        driver.input_topic("left").pipe_input("x", "k")
        assert driver.output_topic("out").read_key_values() == [("k", "1-row")]


def test_a_join_by_foreign_key_partitions_as_its_tables_do() -> None:
    asked: list[tuple[str, object, object]] = []

    def mine(topic: str, key: object, value: object, count: int) -> int:
        asked.append(("mine", key, value))
        return 0

    def theirs(topic: str, key: object, value: object, count: int) -> set[int]:
        asked.append(("theirs", key, value))
        return {0}

    builder = StreamsBuilder()
    left, right = builder.table("left", **TEXT), builder.table("right", **TEXT)
    joined = left.join(
        right, pair, foreign_key=lambda row: row[0], partitioner=mine, other_partitioner=theirs
    )
    joined.to_stream().to("out", **TEXT)
    with TopologyTestDriver(builder.build()) as driver:
        driver.input_topic("right").pipe_input("f", "row")
        driver.input_topic("left").pipe_input("k", "foreign")
        assert driver.output_topic("out").read_key_values() == [("k", "foreign-row")]
    assert asked == [("theirs", "f", None), ("mine", "k", None)]


def test_a_join_by_foreign_key_goes_to_one_partition() -> None:
    builder = StreamsBuilder()
    left, right = builder.table("left", **TEXT), builder.table("right", **TEXT)
    left.join(right, pair, foreign_key=str, other_partitioner=lambda *what: {0, 1})
    with (
        TopologyTestDriver(builder.build()) as driver,
        pytest.raises(Exception, match="Exception caught in process") as raised,
    ):
        driver.input_topic("left").pipe_input("k", "f")
    assert "should be a singleton set" in str(raised.value.__cause__)
