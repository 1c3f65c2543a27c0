"""The figures of the performance tools."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import pytest

from moldau.cli.perf.machine.statistics import (
    ConsumerWindow,
    ProducerStats,
    Throttle,
    consumed_summary,
    consumer_detail_line,
    consumer_total_line,
    share_progress_line,
    share_total_line,
)
from moldau.cli.support.machine.java_dates import DateFormat


@pytest.fixture
def in_utc() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def test_producer_total_line_is_kafkas() -> None:
    stats = ProducerStats(4, 5000, 0)
    for latency in (1, 2, 3, 10):
        assert stats.record(latency, 524288, 1000) is None
    assert stats.total_line(2000) == (
        "4 records sent, 2.000000 records/sec (1.00 MB/sec), 4.00 ms avg latency, "
        "10.00 ms max latency, 3 ms 50th, 10 ms 95th, 10 ms 99th, 10 ms 99.9th."
    )


def test_producer_reports_each_interval_and_starts_again() -> None:
    stats = ProducerStats(100, 1000, 0)
    assert stats.record(4, 1048576, 500) is None
    assert stats.record(8, 1048576, 2000) == [
        "2 records sent, 1.0 records/sec (1.00 MB/sec), 6.0 ms avg latency, 8.0 ms max latency."
    ]
    assert stats.record(2, 1048576, 3000) == [
        "1 records sent, 1.0 records/sec (1.00 MB/sec), 2.0 ms avg latency, 2.0 ms max latency."
    ]


def test_steady_state_is_announced_once_and_named_in_the_total() -> None:
    stats = ProducerStats(10, 1000, 0, steady=True)
    first = stats.record(1, 1, 1000)
    assert first is not None
    assert first[0] == "In steady state."
    second = stats.record(1, 1, 2000)
    assert second is not None
    assert second[0].startswith("1 records sent")
    assert stats.total_line(2000).startswith("2 steady state records sent, 1.000000 records/sec")


def test_quiet_stats_count_but_do_not_report() -> None:
    stats = ProducerStats(10, 1000, 0)
    stats.quiet = True
    assert stats.record(1, 1, 5000) == []
    assert stats.count == 1


def test_latencies_are_sampled_where_there_are_many() -> None:
    stats = ProducerStats(1_500_000, 10**9, 0)
    for _ in range(9):
        stats.record(1, 1, 1)
    assert len(stats._latencies) == 3


def test_no_time_passed_is_infinity_as_in_java() -> None:
    stats = ProducerStats(1, 5000, 0)
    stats.record(0, 1, 0)
    assert "Infinity records/sec (Infinity MB/sec)" in stats.total_line(0)


def test_figures_by_name() -> None:
    stats = ProducerStats(2, 5000, 0)
    stats.record(2, 1048576, 10)
    stats.record(6, 1048576, 10)
    summary = stats.summary(1000)
    assert (summary["records"], summary["records_per_second"]) == (2, 2.0)
    assert (summary["latency_ms_avg"], summary["latency_ms_max"]) == (4.0, 6)
    # There is no infinity in JSON.
    assert stats.summary(0)["records_per_second"] is None
    consumed = consumed_summary(size=1048576, records=10, elapsed_ms=2000, join_ms=1000)
    assert consumed["records_per_second"] == 5.0
    assert consumed["fetch_records_per_second"] == 10.0


def test_throttle_saves_up_short_pauses() -> None:
    throttle = Throttle(1000, 0)
    # Behind the wanted rate: no pause.
    assert throttle.pause(500, 1000) == 0
    # Ahead: a millisecond is owed each time, and slept when there are two.
    assert throttle.pause(2000, 1000) == 0
    assert throttle.pause(2001, 1000) == pytest.approx(0.002)
    assert throttle.pause(2002, 1000) == 0


def test_throttle_without_a_limit_and_with_none_allowed() -> None:
    assert Throttle(-1, 0).pause(10**9, 1) == 0
    assert math.isinf(Throttle(0, 0).pause(1, 1000))


def test_consumer_lines_are_kafkas() -> None:
    line = consumer_total_line(
        "S", "E", size=2 * 1048576, records=100, elapsed_ms=2000, join_ms=1000
    )
    assert line == "S, E, 2.0000, 1.0000, 100, 50.0000, 1000, 1000, 2.0000, 100.0000"
    last = ConsumerWindow(1048576, 40, 1000)
    line = consumer_detail_line(
        "E", size=2 * 1048576, records=100, last=last, now_ms=3000, join_ms=1000
    )
    assert line == "E, 0, 2.0000, 0.5000, 100, 30.0000, 1000, 1000, 1.0000, 60.0000"


def test_share_lines_are_kafkas() -> None:
    line = share_total_line("S", "E", size=1048576, records=10, elapsed_ms=500)
    assert line == "S, E, 1.0000, 2.0000, 20.0000, 10, 500"
    last = ConsumerWindow(0, 0, 1000)
    line = share_progress_line("S", "E", size=1048576, records=10, last=last, now_ms=2000, index=3)
    assert line == "S, E, 1.0000, 1.0000, 10.0000, 10, 1000 for share consumer 3"


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd HH:mm:ss:SSS", "2023-11-14 22:13:20:123"),
        ("yy/M/d h:m a", "23/11/14 10:13 PM"),
        ("EEE, MMMM d 'o''clock' XXX Z", "Tue, November 14 o'clock Z +0000"),
        ("D k K u ''", "318 22 10 2 '"),
    ],
)
@pytest.mark.usefixtures("in_utc")
def test_java_date_patterns(pattern: str, text: str) -> None:
    assert DateFormat(pattern).format(1700000000123) == text


@pytest.mark.parametrize("pattern", ["yyyy-b", "'open"])
def test_bad_date_pattern(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"Illegal pattern character 'b'|Unterminated quote"):
        DateFormat(pattern)
