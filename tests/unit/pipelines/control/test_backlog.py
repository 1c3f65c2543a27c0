"""How much of a backlog is done, and how long the rest takes."""

from __future__ import annotations

from moldau.pipelines.control.machine.backlog import Backlog
from moldau.pipelines.machine.records import ProgressRecord


def batch(number: int, lag: int | None, rows: int = 100) -> ProgressRecord:
    return ProgressRecord(batch_id=number, input_rows=rows, lag_records=lag)


def test_the_rest_is_estimated_from_how_the_lag_shrinks() -> None:
    backlog = Backlog()
    first = backlog.seen(batch(0, 1000), 0.0)
    assert (first.backlog_done, first.seconds_left) == (0.0, None)
    # 100 records are read each second, and 20 arrive.
    second = backlog.seen(batch(1, 920), 1.0)
    assert (second.backlog_done, second.seconds_left) == (0.08, 11.5)
    half = backlog.seen(batch(2, 500), 6.0)
    assert (half.backlog_done, half.seconds_left) == (0.5, 6.0)


def test_the_same_batch_seen_again_changes_nothing() -> None:
    backlog = Backlog()
    backlog.seen(batch(0, 1000), 0.0)
    once = backlog.seen(batch(1, 900), 1.0)
    assert backlog.seen(batch(1, 900), 30.0) == once


def test_one_that_grows_has_no_end() -> None:
    backlog = Backlog()
    backlog.seen(batch(0, 1000), 0.0)
    grown = backlog.seen(batch(1, 1500), 1.0)
    assert (grown.backlog_done, grown.seconds_left) == (0.0, None)


def test_what_one_batch_takes_is_no_backlog_and_ends_one() -> None:
    backlog = Backlog()
    backlog.seen(batch(0, 1000), 0.0)
    assert backlog.seen(batch(1, 100), 1.0) == batch(1, 100)
    assert backlog.seen(batch(2, None), 2.0) == batch(2, None)
    # The next backlog has a beginning of its own.
    assert backlog.seen(batch(3, 400), 3.0).backlog_done == 0.0


def test_only_the_last_minute_counts() -> None:
    backlog = Backlog()
    backlog.seen(batch(0, 100_000), 0.0)
    backlog.seen(batch(1, 50_000), 1.0)
    backlog.seen(batch(2, 49_000), 62.0)
    slow = backlog.seen(batch(3, 48_000), 122.0)
    # 1000 in 60 s, not 52000 in 122 s.
    assert slow.seconds_left == 48_000 * 60 / 1000
