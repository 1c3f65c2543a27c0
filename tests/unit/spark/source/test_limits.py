"""A batch reads about as much as it may, from every partition its part."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.client.topics import TopicPartition
from moldau.spark.source.machine.limits import MinimumGate, rate_limited

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
