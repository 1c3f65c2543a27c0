"""How state batches are combined: against a model that knows every single offset, and by table."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.broker.coordinator.share.machine.combiner import combine
from moldau.broker.coordinator.share.machine.values import StateBatch

batches = st.builds(
    lambda first, size, state, count: StateBatch(first, first + size, state, count),
    st.integers(0, 30),
    st.integers(0, 12),
    st.sampled_from([0, 2, 4]),
    st.integers(1, 3),
)


def per_offset(all_batches: list[StateBatch], start_offset: int) -> dict[int, tuple[int, int]]:
    model: dict[int, tuple[int, int]] = {}
    for batch in all_batches:
        for offset in range(batch.first_offset, batch.last_offset + 1):
            if start_offset == -1 or offset >= start_offset:
                rank = (batch.delivery_count, batch.delivery_state)
                model[offset] = max(model.get(offset, rank), rank)
    return model


@given(st.lists(batches, max_size=6), st.lists(batches, max_size=6), st.integers(-1, 35))
def test_every_offset_keeps_the_most_advanced_state(
    stored: list[StateBatch], new: list[StateBatch], start_offset: int
) -> None:
    combined = combine(stored, new, start_offset)

    assert per_offset(list(combined), -1) == per_offset([*stored, *new], start_offset)
    for lower, upper in itertools.pairwise(combined):
        assert lower.last_offset < upper.first_offset


@given(st.lists(batches, max_size=6), st.integers(-1, 35))
def test_combining_again_changes_nothing_an_offset_would_notice(
    stored: list[StateBatch], start_offset: int
) -> None:
    once = combine(stored, (), start_offset)
    assert per_offset(list(combine(once, once, start_offset)), -1) == per_offset(list(once), -1)


def b(first: int, last: int, state: int = 0, count: int = 1) -> StateBatch:
    return StateBatch(first, last, state, count)


@pytest.mark.parametrize(
    ("stored", "new", "start_offset", "expected"),
    [
        pytest.param([], [], -1, [], id="nothing"),
        pytest.param([b(0, 9)], [], 4, [b(4, 9)], id="cut at the start offset"),
        pytest.param([b(0, 9)], [], 10, [], id="below the start offset"),
        pytest.param([b(0, 4)], [b(5, 9)], -1, [b(0, 9)], id="neighbours in one state"),
        pytest.param([b(0, 4)], [b(5, 9, 2)], -1, [b(0, 4), b(5, 9, 2)], id="neighbours apart"),
        pytest.param([b(0, 4)], [b(6, 9)], -1, [b(0, 4), b(6, 9)], id="a gap stays"),
        pytest.param(
            [b(0, 9)],
            [b(3, 5, 2)],
            -1,
            [b(0, 2), b(3, 5, 2), b(6, 9)],
            id="acknowledged in the middle",
        ),
        pytest.param([b(0, 9, 2)], [b(3, 5, 0)], -1, [b(0, 9, 2)], id="no step back"),
        pytest.param(
            [b(0, 9, 0, 2)], [b(5, 14, 2, 1)], -1, [b(0, 9, 0, 2), b(10, 14, 2, 1)], id="older tail"
        ),
        pytest.param(
            [b(0, 9, 0, 1)], [b(0, 14, 0, 2)], -1, [b(0, 14, 0, 2)], id="swallowed from the start"
        ),
        # Kafka settles batches from left to right and does not look back at settled ones.
        pytest.param(
            [b(0, 4, 0, 2), b(5, 9, 0, 1)],
            [b(5, 12, 0, 2)],
            -1,
            [b(0, 4, 0, 2), b(5, 12, 0, 2)],
            id="settled on the left",
        ),
    ],
)
def test_table(
    stored: list[StateBatch], new: list[StateBatch], start_offset: int, expected: list[StateBatch]
) -> None:
    assert list(combine(stored, new, start_offset)) == expected
