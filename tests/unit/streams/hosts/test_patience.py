"""How long something that fails is tried again."""

from __future__ import annotations

from moldau.streams.machine.patience import Patience


def test_it_begins_with_the_first_failure() -> None:
    patience = Patience(100)
    assert not patience.is_over(1_000)
    assert not patience.is_over(1_099)
    assert patience.is_over(1_100)


def test_a_success_ends_it() -> None:
    patience = Patience(100)
    assert not patience.is_over(0)
    patience.end()
    assert not patience.is_over(100)
    assert patience.is_over(200)
