"""What the quorum's appends, commits and elections take."""

from __future__ import annotations

import pytest

from moldau.broker.metrics.quorum import QuorumTimes
from moldau.metrics.recent import VALUES_MAX, Recent


def test_a_commit_takes_as_long_as_its_append_waited() -> None:
    now = [100.0]
    times = QuorumTimes(lambda: now[0])
    times.appended(0, 5)
    now[0] = 100.2
    times.appended(5, 6)
    times.committed(5)
    assert times.commit_latency.maximum(now[0]) == pytest.approx(200)
    now[0] = 100.3
    times.committed(6)
    assert times.commit_latency.average(now[0]) == pytest.approx(150)
    assert times.append_rate() == pytest.approx(6 / 60)
    assert times.fetch_rate() == 0
    now[0] = 200.0
    assert (times.append_rate(), times.commit_latency.maximum(now[0])) == (0, 0)


def test_what_another_leader_commits_is_not_measured() -> None:
    times = QuorumTimes(lambda: 1.0)
    times.appended(0, 5)
    times.fetched(5, 9)
    times.committed(9)
    assert times.commit_latency.total == 0
    assert times.fetch_rate() == pytest.approx(4 / 60)


def test_an_election_lasts_from_no_leader_to_the_next() -> None:
    now = [0.0]
    times = QuorumTimes(lambda: now[0])
    times.leader_known(True)
    assert times.election_latency.total == 0
    times.leader_known(False)
    now[0] = 1.0
    times.leader_known(False)
    now[0] = 1.5
    times.leader_known(True)
    assert times.election_latency.maximum(now[0]) == pytest.approx(1500)


def test_a_window_is_bounded_in_time_and_in_number() -> None:
    recent = Recent()
    assert (recent.average(0.0), recent.maximum(0.0), recent.rate(0.0)) == (0, 0, 0)
    for number in range(2 * VALUES_MAX):
        recent.add(number, number / 1_000)
    assert recent.total == 2 * VALUES_MAX
    assert recent.maximum(2.0) == 2 * VALUES_MAX - 1
    assert recent.rate(2.0) == pytest.approx(1_000, rel=0.01)
    assert recent.average(100.0) == 0
