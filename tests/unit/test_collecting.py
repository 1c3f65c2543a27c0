"""The garbage collector while an application runs as a program."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from moldau.collecting import collecting_rarely, keeping_all


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


def test_what_is_imported_is_not_looked_at_afterwards() -> None:
    looks = []
    with keeping_all():
        kept = [[number] for number in range(5_000)]
        gc.callbacks.append(lambda phase, info: looks.append(info["generation"]))
    try:
        assert gc.isenabled()
        assert gc.get_freeze_count() == 0
        assert gc.get_count()[0] < 700
        oldest = {id(each) for each in gc.get_objects(generation=2)}
        assert all(id(each) in oldest for each in kept)
        assert looks == []
    finally:
        gc.callbacks.pop()


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    try:
        with keeping_all():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_is_frozen_stays_frozen() -> None:
    gc.freeze()
    try:
        with keeping_all():
            pass
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
