"""When a stream thread commits."""

from __future__ import annotations

from moldau.streams.machine.commit_schedule import CommitSchedule


def due(schedule: CommitSchedule, now_ms: int, *, has_work: bool = True) -> bool:
    return schedule.is_due(now_ms, has_work=has_work, requested=False)


def test_commits_begin_once_per_interval_however_long_they_take() -> None:
    schedule = CommitSchedule(100, now_ms=0)
    assert not due(schedule, 99)
    assert schedule.wait_ms(40) == 60
    assert due(schedule, 100)
    # It ends at 130, which does not put off the next one.
    schedule.begun(100)
    assert not due(schedule, 199)
    assert due(schedule, 200)


def test_a_record_after_a_pause_is_committed_at_once() -> None:
    schedule = CommitSchedule(100, now_ms=0)
    schedule.begun(100)
    assert not due(schedule, 500, has_work=False)
    assert due(schedule, 501)
    assert schedule.wait_ms(501) == 0


def test_a_processor_may_ask_for_a_commit() -> None:
    schedule = CommitSchedule(100, now_ms=0)
    assert schedule.is_due(1, has_work=True, requested=True)
