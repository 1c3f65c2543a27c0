"""Which offsets a reset gives, and plans as CSV."""

from __future__ import annotations

import pytest

from moldau.cli.groups.machine.offsets import (
    OffsetPlanError,
    clamp,
    export_csv,
    parse_csv_plan,
    parse_datetime_ms,
    parse_duration_argument_ms,
    parse_topic_argument,
    partitions_of,
    shift,
    to_current,
    to_time,
)
from moldau.client.topics import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("orders", ("orders", None)),
        ("orders:3", ("orders", (3,))),
        ("orders:0,2", ("orders", (0, 2))),
    ],
)
def test_topic_argument(text: str, parsed: tuple[str, tuple[int, ...] | None]) -> None:
    assert parse_topic_argument(text) == parsed


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a:b:1", "Invalid topic arg 'a:b:1', expected topic name and partitions"),
        ("a:", "Invalid topic arg 'a:', expected topic name and partitions"),
        ("a:x", "Invalid partition 'x' specified in topic arg 'a:x''"),
        ("a:0,-1", "Invalid partition '-1' specified in topic arg 'a:0,-1''"),
    ],
)
def test_bad_topic_argument_names_the_argument(text: str, problem: str) -> None:
    with pytest.raises(OffsetPlanError) as raised:
        parse_topic_argument(text)
    assert str(raised.value) == problem


def test_whole_topics_have_all_their_partitions_and_no_partition_comes_twice() -> None:
    found = partitions_of(["t:1", "u", "t:1,0"], {"u": [0, 1]})
    assert found == [B, TopicPartition("u", 0), TopicPartition("u", 1), A]


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("1970-01-01T00:00:00.000", 0),
        ("1970-01-01T00:00:01.234Z", 1234),
        ("1970-01-01T02:00:00.000+02", 0),
        ("1970-01-01T02:30:00.000+02:30", 0),
        ("1969-12-31T23:00:00.000-01:00", 0),
        # Milliseconds are a number, not a fraction: Java reads them so.
        ("1970-01-01T00:00:00.5", 5),
    ],
)
def test_datetime(text: str, millis: int) -> None:
    assert parse_datetime_ms(text) == millis


@pytest.mark.parametrize(
    "text", ["2026-01-31", "2026-13-01T00:00:00.000", "2026-01-31T00:00:00", "now", "T"]
)
def test_bad_datetime(text: str) -> None:
    with pytest.raises(OffsetPlanError):
        parse_datetime_ms(text)


def test_duration() -> None:
    assert parse_duration_argument_ms("P1DT2H3M4.5S") == 93784500
    assert parse_duration_argument_ms("pt1m") == 60_000
    assert parse_duration_argument_ms("-PT1S") == -1000
    with pytest.raises(OffsetPlanError, match="PnDTnHnMnS"):
        parse_duration_argument_ms("1 day")


def test_clamp_stays_inside_the_log_and_says_so() -> None:
    planned = clamp({A: 100, B: 1}, {A: 0, B: 5}, {A: 10, B: 10})
    assert planned.offsets == {A: 10, B: 5}
    assert planned.warnings == (
        "New offset (100) is higher than latest offset for topic partition t-0. "
        "Value will be set to 10",
        "New offset (1) is lower than earliest offset for topic partition t-1. "
        "Value will be set to 5",
    )
    assert clamp({A: 0, B: 10}, {A: 0, B: 5}, {A: 10, B: 10}).warnings == ()


def test_shift_needs_a_committed_offset() -> None:
    planned = shift([A, B], -3, {A: 5, B: 1}, {A: 0, B: 0}, {A: 10, B: 10})
    assert planned.offsets == {A: 2, B: 0}
    with pytest.raises(OffsetPlanError, match="Cannot shift offset for partition t-1"):
        shift([A, B], 1, {A: 5}, {A: 0, B: 0}, {A: 10, B: 10})


def test_to_current_falls_back_to_the_end() -> None:
    assert to_current([A, B], {A: 3}, {B: 9}).offsets == {A: 3, B: 9}


def test_to_time_falls_back_to_the_end_where_no_record_is_that_young() -> None:
    planned = to_time([A, B], {A: 4, B: -1}, {B: 9})
    assert planned.offsets == {A: 4, B: 9}
    assert planned.warnings == (
        "Partition 1 from topic t is empty. Falling back to latest known offset.",
    )


def test_export_is_what_import_reads() -> None:
    plan = {"g": {A: 1, TopicPartition('with "quote", comma', 2): 3}, "h": {B: 4}}
    several = export_csv(plan, with_group=True)
    assert several.splitlines()[0] == "g,t,0,1"
    assert parse_csv_plan(several, ["g", "h"]) == plan
    assert parse_csv_plan(several, ["g"]) == plan
    one = export_csv({"g": plan["g"]}, with_group=False)
    assert one.splitlines()[0] == "t,0,1"
    assert parse_csv_plan(one, ["g"]) == {"g": plan["g"]}


@pytest.mark.parametrize(
    ("text", "groups", "problem"),
    [
        ("", ["g"], "empty"),
        ("t,0,1\nt,x,1\n", ["g"], "Line 2 .* is 't,x,1', not topic,partition,offset"),
        ("t,0,1\n", ["g", "h"], "not group,topic,partition,offset"),
    ],
)
def test_bad_plan_names_the_line(text: str, groups: list[str], problem: str) -> None:
    with pytest.raises(OffsetPlanError, match=problem):
        parse_csv_plan(text, groups)
