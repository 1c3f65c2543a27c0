"""A batch reads about as much as it may, from every partition its part."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.client.topics import TopicPartition
from moldau.spark.source.machine.limits import LIMIT_MAX, AdaptiveLimit, MinimumGate, rate_limited

A, B, C = (TopicPartition("t", index) for index in range(3))


@pytest.mark.parametrize(
    ("limit", "latest", "end"),
    [
        pytest.param(100, {A: 60, B: 40}, {A: 60, B: 40}, id="all fits"),
        pytest.param(10, {A: 60, B: 40}, {A: 6, B: 4}, id="in proportion"),
        pytest.param(10, {A: 999, B: 1}, {A: 9, B: 1}, id="small ones are not starved"),
        pytest.param(1, {A: 5, B: 5, C: 0}, {A: 1, B: 1, C: 0}, id="at least one each"),
        pytest.param(5, {A: 0, B: 0}, {A: 0, B: 0}, id="nothing to read"),
    ],
)
def test_rate_limit(
    limit: int, latest: dict[TopicPartition, int], end: dict[TopicPartition, int]
) -> None:
    assert rate_limited(limit, dict.fromkeys(latest, 0), latest) == end


def test_a_partition_without_beginning_is_left_alone() -> None:
    assert rate_limited(4, {A: 10}, {A: 20, B: 7}) == {A: 14, B: 7}


@given(
    st.integers(1, 10**6),
    st.lists(st.tuples(st.integers(0, 2**62), st.integers(0, 10**9)), min_size=1, max_size=5),
)
def test_rate_limit_stays_between(limit: int, sizes: list[tuple[int, int]]) -> None:
    start = {TopicPartition("t", index): each[0] for index, each in enumerate(sizes)}
    latest = {TopicPartition("t", index): sum(each) for index, each in enumerate(sizes)}
    end = rate_limited(limit, start, latest)
    assert all(start[key] <= end[key] <= latest[key] for key in start)
    assert all(end[key] > start[key] for key in start if latest[key] > start[key])
    assert sum(end[key] - start[key] for key in start) <= limit + len(sizes)


def test_the_gate_opens_for_enough_records_or_after_its_time() -> None:
    gate = MinimumGate(10, 1_000)
    assert gate.opens(1, 0)
    assert not gate.opens(9, 999)
    assert gate.opens(10, 999)
    assert not gate.opens(9, 1_500)
    assert gate.opens(1, 1_999)
    assert not gate.opens(1, 2_000)


class Worked:
    """Batches of a backlog, `cost_ms` each and one for every `rows_per_ms` rows, in played time."""

    def __init__(self, target_ms: int, *, cost_ms: int = 100, interval_ms: int = 0) -> None:
        self.limit = AdaptiveLimit(target_ms)
        self.cost_ms = cost_ms
        self.interval_ms = interval_ms
        self.now_ms = 0

    def batches(self, count: int, rows_per_ms: float) -> list[tuple[int, float]]:
        """The rows of each and how long it worked."""
        found = []
        for _ in range(count):
            rows = self.limit.limit
            self.limit.handed_out(rows, is_full=True, now_ms=self.now_ms)
            took_ms = self.cost_ms + rows / rows_per_ms
            self.now_ms += int(max(took_ms, self.interval_ms))
            self.limit.done(self.now_ms)
            found.append((rows, took_ms))
        return found


@pytest.mark.parametrize("rows_per_ms", [1.0, 10.0, 60.0])
def test_batches_of_a_backlog_take_about_as_long_as_wanted(rows_per_ms: float) -> None:
    worked = Worked(5_000)
    worked.batches(8, rows_per_ms)
    assert all(4_000 <= took <= 6_000 for _, took in worked.batches(20, rows_per_ms))


def test_a_pipeline_that_becomes_slow_gets_smaller_batches() -> None:
    worked = Worked(5_000)
    worked.batches(8, 100.0)
    worked.batches(8, 2.0)
    assert all(took <= 6_000 for _, took in worked.batches(10, 2.0))


def test_a_batch_that_waits_for_its_trigger_does_not_look_slow() -> None:
    worked = Worked(60_000, interval_ms=60_000)
    worked.batches(30, 10.0)
    assert all(48_000 <= took <= 72_000 for _, took in worked.batches(10, 10.0))


def test_the_limit_is_bounded_both_ways() -> None:
    fast, slow = Worked(5_000, cost_ms=1), Worked(5_000, cost_ms=90_000)
    assert max(rows for rows, _ in fast.batches(50, 1e9)) == LIMIT_MAX
    assert min(rows for rows, _ in slow.batches(50, 1.0)) == 1_000


def test_a_batch_that_had_all_there_was_says_nothing_about_more() -> None:
    limit = AdaptiveLimit(5_000)
    before = limit.limit
    limit.handed_out(10, is_full=False, now_ms=0)
    limit.done(100)
    limit.done(10_000_000)
    assert limit.limit == before
