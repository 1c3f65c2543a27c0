"""The garbage collector while an application runs as a program."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from moldau.collecting import collecting_rarely


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[tuple[int, int, int]]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield gc.get_threshold()
    gc.set_threshold(*before)


def test_garbage_is_looked_for_rarely_while_it_runs(thresholds: tuple[int, int, int]) -> None:
    with collecting_rarely():
        assert gc.get_threshold()[0] > thresholds[0]
        assert gc.get_freeze_count() > 0
    assert gc.get_threshold() == thresholds
    assert gc.get_freeze_count() == 0


def test_who_has_chosen_keeps_the_choice() -> None:
    gc.set_threshold(1_000, 5, 5)
    with collecting_rarely():
        assert gc.get_threshold() == (1_000, 5, 5)
        assert gc.get_freeze_count() == 0
