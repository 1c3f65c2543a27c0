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
    schedule.committed(100, 130)
    assert not due(schedule, 199)
    assert due(schedule, 200)


def test_a_record_after_a_pause_is_committed_at_once() -> None:
    schedule = CommitSchedule(100, now_ms=0)
    schedule.committed(100, 100)
    assert not due(schedule, 500, has_work=False)
    assert due(schedule, 501)
    assert schedule.wait_ms(501) == 0


def test_the_first_results_are_shown_at_once() -> None:
    schedule = CommitSchedule(100, now_ms=0, commit_shows=True)
    assert schedule.wait_ms(1) == 0
    assert due(schedule, 1)
    schedule.committed(1, 5)
    assert not due(schedule, 80)
    # Where commits show nothing, the first one comes after the interval, too.
    assert not due(CommitSchedule(100, now_ms=0), 99)


def test_a_processor_may_ask_for_a_commit() -> None:
    schedule = CommitSchedule(100, now_ms=0)
    assert schedule.is_due(1, has_work=True, requested=True)


def test_a_thread_with_time_to_spare_commits_earlier_when_a_commit_shows_results() -> None:
    schedule = CommitSchedule(100, now_ms=0, commit_shows=True)
    schedule.committed(100, 110)
    # Records wait 37 ms in the mean, 10 ms for the commit, and are 3 ms on their way: half the
    # interval.
    assert schedule.wait_ms(100) == 74
    assert not due(schedule, 173)
    assert due(schedule, 174)
    assert not schedule.is_due(199, has_work=True, requested=False, busy=True)
    assert schedule.is_due(200, has_work=True, requested=False, busy=True)


def test_slow_commits_come_at_most_twice_as_often() -> None:
    schedule = CommitSchedule(100, now_ms=0, commit_shows=True)
    schedule.committed(100, 190)
    assert not due(schedule, 149)
    assert schedule.wait_ms(100) == 50
    # One that was slow is forgotten.
    for begun_ms in range(200, 5_200, 100):
        schedule.committed(begun_ms, begun_ms + 4)
    assert 84 <= schedule.wait_ms(5_100) <= 86


def test_a_commit_that_was_put_off_is_tried_again_soon() -> None:
    schedule = CommitSchedule(30_000, now_ms=0)
    assert due(schedule, 30_000)
    schedule.put_off(30_000)
    assert not due(schedule, 30_099)
    assert schedule.wait_ms(30_000) == 100
    assert due(schedule, 30_100)
