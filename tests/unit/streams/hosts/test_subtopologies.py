"""Which tasks and internal topics a topology has."""

from __future__ import annotations

import re
from typing import Any

import pytest

from moldau.streams import (
    JoinWindows,
    Materialized,
    StreamsBuilder,
    TimeWindows,
    Topology,
    TopologyError,
)
from moldau.streams.errors import MissingSourceTopicError
from moldau.streams.hosts.planning import check_names, plan_of
from moldau.streams.machine.subtopologies import (
    ChangelogTopic,
    Plan,
    TaskId,
    changelog_config,
    partition_counts,
    repartition_config,
)


def plan(topology: Topology) -> Plan:
    return plan_of(topology.assembly, "app")


def word_count() -> Topology:
    builder = StreamsBuilder()
    words = builder.stream("text", key_serde="string", value_serde="string")
    words.group_by(lambda key, word: word).count(store="counts").to_stream().to("out")
    return builder.build()


def test_a_repartition_topic_has_as_many_partitions_as_its_input() -> None:
    counts = partition_counts(plan(word_count()), {"text": 5, "out": 2})
    assert counts == {"app-counts-repartition": 5, "app-counts-changelog": 5}


def test_tasks_are_sub_topologies_by_partitions() -> None:
    tasks = plan(word_count()).tasks({"text": 2, "app-counts-repartition": 2})
    assert tasks == {
        TaskId(0, 0): {("text", 0)},
        TaskId(0, 1): {("text", 1)},
        TaskId(1, 0): {("app-counts-repartition", 0)},
        TaskId(1, 1): {("app-counts-repartition", 1)},
    }


def joined(left_count: int | None = None, **options: Any) -> Topology:
    builder = StreamsBuilder()
    left, right = builder.stream("left"), builder.stream("right")
    if left_count is not None:
        left = left.repartition(partitions=left_count, name="by")
    left.join(right, lambda a, b: a, windows=JoinWindows(time_difference=10), **options).to("out")
    return builder.build()


def test_joined_topics_have_the_same_count() -> None:
    with pytest.raises(TopologyError, match=r"Topics not co-partitioned: left=2, right=3"):
        partition_counts(plan(joined()), {"left": 2, "right": 3})
    with pytest.raises(TopologyError, match=r"\[4\] of repartition topic"):
        partition_counts(plan(joined(4)), {"left": 2, "right": 3})
    assert partition_counts(plan(joined(3)), {"left": 2, "right": 3})["app-by-repartition"] == 3


def test_a_repartition_topic_takes_the_count_of_what_it_is_joined_with() -> None:
    builder = StreamsBuilder()
    left = builder.stream("left").select_key(lambda key, value: value)
    table = builder.table("right")
    left.join(table, lambda a, b: a, name="enrich").to("out")
    counts = partition_counts(plan(builder.build()), {"left": 2, "right": 7})
    assert counts["app-enrich-repartition"] == 7


def test_missing_inputs_are_named() -> None:
    with pytest.raises(MissingSourceTopicError, match="left, right"):
        partition_counts(plan(joined()), {"other": 1})


def test_tasks_of_a_pattern() -> None:
    builder = StreamsBuilder()
    builder.stream(re.compile("orders-.*")).to("out")
    made = plan(builder.build())
    tasks = made.tasks({"orders-a": 1, "orders-b": 2, "out": 9})
    assert tasks == {
        TaskId(0, 0): {("orders-a", 0), ("orders-b", 0)},
        TaskId(0, 1): {("orders-b", 1)},
    }


def test_optimised_tables_use_their_topic_as_changelog() -> None:
    builder = StreamsBuilder()
    builder.table("prices", store="prices")
    made = plan(builder.build(optimization="all"))
    assert made.subtopologies[0].changelogs == {"prices": ChangelogTopic("prices", is_source=True)}
    assert partition_counts(made, {"prices": 3}) == {}


def test_changelogs_know_how_long_their_store_keeps() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key()
    grouped.windowed_by(TimeWindows(size=1000, grace=500)).count(store="windowed")
    builder.table("t", store=Materialized(name="versioned", history=60_000))
    found = {
        name: changelog
        for each in plan(builder.build()).subtopologies
        for name, changelog in each.changelogs.items()
    }
    assert found["windowed"].retention_ms == 1500
    assert found["versioned"].history_ms == 60_000


@pytest.mark.parametrize(
    ("changelog", "expected"),
    [
        pytest.param(ChangelogTopic("t"), {"cleanup.policy": "compact"}, id="key value"),
        pytest.param(
            ChangelogTopic("t", retention_ms=1500),
            {"cleanup.policy": "compact,delete", "retention.ms": "1600"},
            id="windowed",
        ),
        pytest.param(
            ChangelogTopic("t", retention_ms=2**63 - 1),
            {"cleanup.policy": "compact,delete", "retention.ms": str(2**63 - 1)},
            id="windowed for ever",
        ),
        pytest.param(
            ChangelogTopic("t", history_ms=5),
            {"cleanup.policy": "compact", "min.compaction.lag.ms": "86400005"},
            id="versioned",
        ),
        pytest.param(
            ChangelogTopic("t", retention_ms=5, config={"retention.ms": "9", "segment.ms": "8"}),
            {"cleanup.policy": "compact,delete", "retention.ms": "9", "segment.ms": "8"},
            id="of the program",
        ),
    ],
)
def test_configuration_of_changelogs(changelog: ChangelogTopic, expected: dict[str, str]) -> None:
    config = changelog_config(changelog, {"segment.ms": "7"}, additional_retention_ms=100)
    assert config == {"message.timestamp.type": "CreateTime", "segment.ms": "7", **expected}


def test_settings_of_all_topics_do_not_shorten_what_windows_need() -> None:
    everywhere = {"retention.ms": "7", "min.compaction.lag.ms": "7"}
    windowed = changelog_config(
        ChangelogTopic("t", retention_ms=1500), everywhere, additional_retention_ms=100
    )
    assert windowed["retention.ms"] == "1600"
    versioned = changelog_config(
        ChangelogTopic("t", history_ms=5), everywhere, additional_retention_ms=100
    )
    assert versioned["min.compaction.lag.ms"] == "86400005"


def test_configuration_of_repartition_topics() -> None:
    assert repartition_config({}) == {
        "message.timestamp.type": "CreateTime",
        "cleanup.policy": "delete",
        "segment.bytes": "52428800",
        "retention.ms": "-1",
    }


def test_names_that_change_with_the_program_are_found() -> None:
    def program(*, named: bool) -> Topology:
        builder = StreamsBuilder()
        text: dict[str, Any] = {"key_serde": "string", "value_serde": "string"}
        left, right = builder.stream("left", **text), builder.stream("right", **text)
        grouped = left.group_by(lambda key, value: value, name="by-value" if named else None)
        grouped.count(store="counts" if named else None)
        names: dict[str, Any] = {"name": "joined", "store": "pairs"} if named else {}
        windows = JoinWindows(time_difference=5)
        left.join(right, lambda one, two: one, windows=windows, **names)
        builder.table("rows", store="rows" if named else None).group_by(
            lambda key, value: (value, key), name="rows-by-value" if named else None
        ).count(store="rows-counts" if named else None)
        return builder.build()

    check_names(program(named=True).assembly)
    with pytest.raises(TopologyError) as error:
        check_names(program(named=False).assembly)
    logs, stores, topics = str(error.value).splitlines()
    assert logs.startswith("Invalid topology: Following changelog topic(s) has not been named: ")
    assert re.search(r"KSTREAM-JOINTHIS-\d{10}-store-changelog", logs)
    assert "KSTREAM-AGGREGATE-STATE-STORE-" in stores
    assert "rows-STATE-STORE-" in stores
    assert "KSTREAM-AGGREGATE-STATE-STORE-0000000003-repartition" in topics
