"""Ranges are cut in Spark's proportions, and nothing is read twice or left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.spark.source.machine.ranges import OffsetRange, cut


def ranges(*sizes: int) -> list[OffsetRange]:
    return [OffsetRange("t", index, 10, 10 + size) for index, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "min_partitions", "max_records", "cut_sizes"),
    [
        pytest.param((5, 0, 7), None, None, [5, 7], id="one each, empty ones none"),
        pytest.param((5, 7), 2, None, [5, 7], id="enough already"),
        pytest.param((10,), 3, None, [3, 3, 4], id="the last takes what is left over"),
        pytest.param((100, 1), 4, None, [33, 33, 34, 1], id="small ones stay whole"),
        pytest.param((150, 150, 2), 6, None, [50, 50, 50, 50, 50, 50, 2], id="half up"),
        pytest.param((2,), 5, None, [1, 1], id="no empty parts"),
        pytest.param((10, 3), None, 4, [3, 3, 4, 3], id="at most so many"),
        pytest.param((10, 3), 3, 4, [3, 3, 4, 3], id="at most so many are enough"),
        pytest.param((8,), 4, 4, [2, 2, 2, 2], id="at most so many, then more"),
        pytest.param((), 4, 4, [], id="nothing"),
    ],
)
def test_cut(
    sizes: tuple[int, ...],
    min_partitions: int | None,
    max_records: int | None,
    cut_sizes: list[int],
) -> None:
    found = cut(ranges(*sizes), min_partitions=min_partitions, max_records=max_records)
    assert [each.size for each in found] == cut_sizes


@given(
    st.lists(st.integers(0, 5000), max_size=6),
    st.none() | st.integers(1, 40),
    st.none() | st.integers(100, 5000),
)
def test_all_is_covered_once(
    sizes: list[int], min_partitions: int | None, max_records: int | None
) -> None:
    whole = ranges(*sizes)
    found = cut(whole, min_partitions=min_partitions, max_records=max_records)
    assert all(each.size > 0 for each in found)
    if max_records is not None:
        assert all(each.size <= max_records for each in found)
    for partition, each in enumerate(whole):
        parts = [part for part in found if part.partition == partition]
        edges = [each.start, *(part.end for part in parts)]
        assert edges[-1] == each.end
        assert [part.start for part in parts] == edges[:-1]
