"""Which record a task processes next."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from moldau.streams.machine.inputs import Inputs

A, B = ("a", 0), ("b", 0)


class Row(NamedTuple):
    timestamp: int


def rows(*timestamps: int) -> list[Row]:
    return [Row(each) for each in timestamps]


def inputs(*keys: tuple[str, int], idle_ms: int = 0, buffered_max: int = 10) -> Inputs[Row]:
    return Inputs(keys, idle_ms=idle_ms, buffered_max=buffered_max)


def caught_up(key: tuple[str, int]) -> int:
    return 0


def test_the_smallest_timestamp_comes_first() -> None:
    found = inputs(A, B)
    found.add(A, rows(1, 5, 9))
    found.add(B, rows(3, 4))
    assert found.ready(0, caught_up)
    # It ends where a partition is empty.
    assert found.take(10) == rows(1, 3, 4)
    assert not found.ready(0, lambda key: 1)
    assert found.ready(0, caught_up)
    assert found.take(1) == rows(5)


def test_order_within_a_partition_is_kept() -> None:
    found = inputs(A)
    found.add(A, rows(9, 1, 5))
    assert found.take(2) == rows(9, 1)
    assert found.take(2) == rows(5)
    assert not found.ready(0, caught_up)


@pytest.mark.parametrize(
    ("idle_ms", "lag", "ready_at_ms"),
    [
        pytest.param(-1, None, 0, id="never waits"),
        pytest.param(0, 0, 0, id="caught up"),
        pytest.param(0, 3, None, id="records are on the way"),
        pytest.param(0, None, None, id="the end is not known"),
        pytest.param(50, 0, 50, id="waits for a while"),
    ],
)
def test_waiting_for_an_empty_partition(
    idle_ms: int, lag: int | None, ready_at_ms: int | None
) -> None:
    found = inputs(A, B, idle_ms=idle_ms)
    found.add(A, rows(1))
    times = [now for now in range(0, 100, 10) if found.ready(now, lambda key: lag)]
    assert (times[0] if times else None) == ready_at_ms


def test_nothing_to_process() -> None:
    assert not inputs(A, B, idle_ms=-1).ready(0, caught_up)


def test_partitions_pause_while_they_are_full() -> None:
    found = inputs(A, buffered_max=2)
    assert not found.add(A, rows(1, 2))
    assert found.add(A, rows(3))
    assert not found.add(A, rows(4)), "it is paused already"
    assert found.to_resume() == []
    found.take(2)
    assert found.to_resume() == [A]
    assert found.to_resume() == []
