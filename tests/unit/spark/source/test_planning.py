"""Where queries begin, what batches read, and that no loss goes unsaid."""

from __future__ import annotations

import pytest

from moldau.client.topics import TopicPartition
from moldau.spark.source.machine.offsets import (
    EARLIEST,
    LATEST,
    Offsets,
    offsets_from_json,
    offsets_to_json,
)
from moldau.spark.source.machine.options import AtOffsets, AtTimestamp, AtTimestamps, Place
from moldau.spark.source.machine.planning import (
    PlanError,
    Questions,
    batch_ranges,
    plan_batch,
    questions,
    settled,
)
from moldau.spark.source.machine.ranges import OffsetRange

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


@pytest.mark.parametrize(
    ("place", "known", "asked"),
    [
        (EARLIEST, {}, {A: -2, B: -2}),
        (LATEST, {}, {A: -1, B: -1}),
        (AtTimestamp(77), {}, {A: 77, B: 77}),
        (AtTimestamps({A: 7, B: 8}), {}, {A: 7, B: 8}),
        (AtOffsets({A: 5, B: -1}), {A: 5}, {B: -1}),
    ],
)
def test_what_is_to_be_asked(place: Place, known: Offsets, asked: Offsets) -> None:
    assert questions(place, [A, B], edge="starting") == Questions(known, asked)


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        (AtOffsets({A: 5}), "If startingOffsets contains.*-1 for latest.*not given: b-0"),
        (
            AtTimestamps({A: 5, B: 1, TopicPartition("b", 7): 1}),
            "If startingOffsetsByTimestamp contains.*not there: b-7",
        ),
    ],
)
def test_all_partitions_have_to_be_given(place: Place, problem: str) -> None:
    with pytest.raises(PlanError, match=problem):
        questions(place, [A, B], edge="starting")


def test_a_time_without_records_is_an_error_or_the_end() -> None:
    asked = Questions({B: 3}, {A: 1_000})
    assert settled(asked, {A: 7}, {}, latest_if_no_match=False) == {A: 7, B: 3}
    assert settled(asked, {A: None}, {A: 9}, latest_if_no_match=True) == {A: 9, B: 3}
    with pytest.raises(PlanError, match=r"topic-partition a-0 and timestamp 1000.*Strategy"):
        settled(asked, {A: None}, {A: 9}, latest_if_no_match=False)


def test_a_batch_reads_what_is_between() -> None:
    plan = plan_batch({A: 1}, {A: 5, B: 4}, {B: 0})
    assert plan.ranges == [OffsetRange("a", 0, 1, 5), OffsetRange("b", 0, 0, 4)]
    assert plan.losses == []


@pytest.mark.parametrize(
    ("start", "end", "first", "loss", "left"),
    [
        ({A: 3, B: 1}, {B: 2}, {}, r"deleted: a-0 \(read up to offset 3\)", ["b"]),
        ({A: 3}, {A: 4, B: 9}, {B: 5}, "b-0 starts from 5 instead of 0", ["a", "b"]),
        ({A: 3}, {A: 4, B: 9}, {}, "Cannot find initial offsets for partition b-0", ["a"]),
        ({A: 30}, {A: 4}, {}, "a-0 offset was changed from 30 to 4", []),
    ],
)
def test_losses_are_named(
    start: Offsets, end: Offsets, first: Offsets, loss: str, left: list[str]
) -> None:
    plan = plan_batch(start, end, first)
    [said] = plan.losses
    with pytest.raises(RuntimeError, match=loss):
        raise RuntimeError(said)
    assert [each.topic for each in plan.ranges] == left


def test_a_batch_query_that_would_end_before_it_begins_is_refused() -> None:
    with pytest.raises(PlanError, match="start offset 5 is greater than the resolved end offset 4"):
        batch_ranges({A: 5}, {A: 4})


def test_offsets_have_the_json_of_sparks_kafka_source_in_order() -> None:
    offsets = {TopicPartition("b", 10): 1, TopicPartition("b", 9): 2, A: 3}
    value = offsets_to_json(offsets)
    assert list(value) == ["a", "b"]
    assert list(value["b"]) == ["9", "10"]
    assert offsets_from_json(value) == offsets
