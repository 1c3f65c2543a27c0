"""The figures of the performance tools, and the lines that report them.

Times are passed in. The lines are Kafka's, column for column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

__all__ = [
    "CONSUMER_DETAIL_HEADER",
    "CONSUMER_HEADER",
    "SHARE_HEADER",
    "ConsumerWindow",
    "ProducerStats",
    "Throttle",
    "consumed_summary",
    "consumer_detail_line",
    "consumer_total_line",
    "share_progress_line",
    "share_total_line",
]

_SAMPLES_MAX = 500_000
_MB = 1024.0 * 1024.0

_FETCH_COLUMNS = ", rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
CONSUMER_HEADER = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"
    + _FETCH_COLUMNS
)
CONSUMER_DETAIL_HEADER = (
    "time, threadId, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec" + _FETCH_COLUMNS
)
SHARE_HEADER = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, nMsg.sec, data.consumed.in.nMsg, "
    "fetch.time.ms"
)


def _divide(a: float, b: float) -> float:
    """Divides as Java does: a division by zero is Infinity or NaN, not an error."""
    if b == 0:
        return math.nan if a == 0 else math.copysign(math.inf, a)
    return a / b


def _known(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None


def _fixed(value: float, digits: int) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return f"{value:.{digits}f}"


class ProducerStats:
    """Latencies and bytes of acknowledged records, as a whole and since the last report.

    `record` runs for every record and must stay cheap: a window is what has been added since the
    marks that the last report left.
    """

    __slots__ = (
        "_bytes",
        "_bytes_mark",
        "_count_mark",
        "_interval_ms",
        "_latencies",
        "_latency_max",
        "_latency_total",
        "_report_at_ms",
        "_sampling",
        "_start_ms",
        "_steady",
        "_total_mark",
        "_window_latency_max",
        "_window_start_ms",
        "count",
        "quiet",
    )

    def __init__(
        self, record_count: int, reporting_interval_ms: int, now_ms: int, *, steady: bool = False
    ) -> None:
        self._start_ms = self._window_start_ms = now_ms
        self._sampling = record_count // min(record_count, _SAMPLES_MAX)
        self._interval_ms = reporting_interval_ms
        self._report_at_ms = now_ms + reporting_interval_ms
        self._steady = steady
        self._latencies: list[int] = []
        self.count = self._count_mark = 0
        self._bytes = self._bytes_mark = 0
        self._latency_total = self._total_mark = 0
        self._latency_max = self._window_latency_max = 0
        self.quiet = False

    def record(self, latency_ms: int, size: int, now_ms: int) -> list[str] | None:
        """Count one acknowledged record; the lines to print now, mostly none."""
        if self.count % self._sampling == 0:
            self._latencies.append(latency_ms)
        self.count += 1
        self._bytes += size
        self._latency_total += latency_ms
        if latency_ms > self._window_latency_max:
            self._window_latency_max = latency_ms
        if now_ms < self._report_at_ms:
            return None
        return self._report(now_ms)

    def _report(self, now_ms: int) -> list[str]:
        lines = ["In steady state."] if self._steady and self._count_mark == 0 else []
        if not self.quiet:
            lines.append(self._window_line(now_ms))
        self._latency_max = max(self._latency_max, self._window_latency_max)
        self._window_latency_max = 0
        self._window_start_ms = now_ms
        self._report_at_ms = now_ms + self._interval_ms
        self._count_mark = self.count
        self._bytes_mark = self._bytes
        self._total_mark = self._latency_total
        return lines

    def _window_line(self, now_ms: int) -> str:
        elapsed = now_ms - self._window_start_ms
        count = self.count - self._count_mark
        rate = _divide(1000.0 * count, elapsed)
        megabytes = _divide(1000.0 * (self._bytes - self._bytes_mark), elapsed) / _MB
        average = _divide(self._latency_total - self._total_mark, count)
        return (
            f"{count} records sent, {_fixed(rate, 1)} records/sec "
            f"({_fixed(megabytes, 2)} MB/sec), {_fixed(average, 1)} ms avg latency, "
            f"{self._window_latency_max:.1f} ms max latency."
        )

    def summary(self, now_ms: int) -> dict[str, object]:
        """The figures of the whole run, by name."""
        elapsed = now_ms - self._start_ms
        p50, p95, p99, p999 = self._percentiles()
        return {
            "steady_state": self._steady,
            "records": self.count,
            "records_per_second": _known(_divide(1000.0 * self.count, elapsed)),
            "megabytes_per_second": _known(_divide(1000.0 * self._bytes, elapsed) / _MB),
            "latency_ms_avg": _known(_divide(self._latency_total, self.count)),
            "latency_ms_max": max(self._latency_max, self._window_latency_max),
            "latency_ms_p50": p50,
            "latency_ms_p95": p95,
            "latency_ms_p99": p99,
            "latency_ms_p999": p999,
        }

    def _percentiles(self) -> list[int]:
        ordered = sorted(self._latencies) or [0]
        return [
            ordered[min(int(share * len(ordered)), len(ordered) - 1)]
            for share in (0.5, 0.95, 0.99, 0.999)
        ]

    def total_line(self, now_ms: int) -> str:
        elapsed = now_ms - self._start_ms
        rate = _divide(1000.0 * self.count, elapsed)
        megabytes = _divide(1000.0 * self._bytes, elapsed) / _MB
        average = _divide(self._latency_total, self.count)
        latency_max = max(self._latency_max, self._window_latency_max)
        p50, p95, p99, p999 = self._percentiles()
        steady = " steady state" if self._steady else ""
        return (
            f"{self.count}{steady} records sent, {_fixed(rate, 6)} records/sec "
            f"({_fixed(megabytes, 2)} MB/sec), {_fixed(average, 2)} ms avg latency, "
            f"{latency_max:.2f} ms max latency, {p50} ms 50th, {p95} ms 95th, "
            f"{p99} ms 99th, {p999} ms 99.9th."
        )


@dataclass(slots=True)
class Throttle:
    """How long to pause so that things happen at about `per_second`; no pauses if that is negative.

    Pauses below two milliseconds are saved up: sleeping that short is not worth the wake-up.
    """

    per_second: float
    start_ms: int
    _deficit: float = field(default=0.0, init=False)

    def pause(self, count: int, now_ms: int) -> float:
        """Seconds to sleep after `count` things; infinity where the rate is 0."""
        if self.per_second < 0:
            return 0.0
        elapsed = (now_ms - self.start_ms) / 1000
        if elapsed <= 0 or count / elapsed <= self.per_second:
            return 0.0
        if self.per_second == 0:
            return math.inf
        self._deficit += 1 / self.per_second
        if self._deficit < 0.002:
            return 0.0
        pause, self._deficit = self._deficit, 0.0
        return pause


@dataclass(slots=True)
class ConsumerWindow:
    """What was read until the last report."""

    bytes: int = 0
    records: int = 0
    reported_ms: int = 0


def consumer_total_line(
    start: str, end: str, *, size: int, records: int, elapsed_ms: int, join_ms: int
) -> str:
    """The consumer's one line at the end; `start` and `end` are formatted already."""
    seconds = elapsed_ms / 1000
    fetch_ms = elapsed_ms - join_ms
    megabytes = size / _MB
    return ", ".join(
        (
            start,
            end,
            _fixed(megabytes, 4),
            _fixed(_divide(megabytes, seconds), 4),
            str(records),
            _fixed(_divide(records, seconds), 4),
            str(join_ms),
            str(fetch_ms),
            _fixed(_divide(megabytes, fetch_ms / 1000), 4),
            _fixed(_divide(records, fetch_ms / 1000), 4),
        )
    )


def consumed_summary(
    *, size: int, records: int, elapsed_ms: int, join_ms: int = 0
) -> dict[str, object]:
    """What a consumer read, by name; `join_ms` of the time it had no partitions."""
    fetch_seconds = (elapsed_ms - join_ms) / 1000
    return {
        "records": records,
        "megabytes": size / _MB,
        "elapsed_ms": elapsed_ms,
        "rebalance_ms": join_ms,
        "records_per_second": _known(_divide(records, elapsed_ms / 1000)),
        "megabytes_per_second": _known(_divide(size / _MB, elapsed_ms / 1000)),
        "fetch_records_per_second": _known(_divide(records, fetch_seconds)),
        "fetch_megabytes_per_second": _known(_divide(size / _MB, fetch_seconds)),
    }


def consumer_detail_line(
    end: str, *, size: int, records: int, last: ConsumerWindow, now_ms: int, join_ms: int
) -> str:
    """One report of a consumer that shows details."""
    elapsed_ms = now_ms - last.reported_ms
    fetch_ms = elapsed_ms - join_ms
    interval_mb = (size - last.bytes) / _MB
    interval_records = records - last.records
    return ", ".join(
        (
            end,
            "0",
            _fixed(size / _MB, 4),
            _fixed(_divide(1000.0 * interval_mb, elapsed_ms), 4),
            str(records),
            _fixed(_divide(1000.0 * interval_records, elapsed_ms), 4),
            str(join_ms),
            str(fetch_ms),
            _fixed(1000.0 * interval_mb / fetch_ms if fetch_ms > 0 else 0.0, 4),
            _fixed(1000.0 * interval_records / fetch_ms if fetch_ms > 0 else 0.0, 4),
        )
    )


def share_total_line(start: str, end: str, *, size: int, records: int, elapsed_ms: int) -> str:
    """A share consumer's figures, or those of all together."""
    seconds = elapsed_ms / 1000
    megabytes = size / _MB
    return ", ".join(
        (
            start,
            end,
            _fixed(megabytes, 4),
            _fixed(_divide(megabytes, seconds), 4),
            _fixed(_divide(records, seconds), 4),
            str(records),
            str(elapsed_ms),
        )
    )


def share_progress_line(
    start: str,
    end: str,
    *,
    size: int,
    records: int,
    last: ConsumerWindow,
    now_ms: int,
    index: int,
) -> str:
    """One report of one share consumer."""
    elapsed_ms = now_ms - last.reported_ms
    interval_mb = (size - last.bytes) / _MB
    return ", ".join(
        (
            start,
            end,
            _fixed(size / _MB, 4),
            _fixed(_divide(1000.0 * interval_mb, elapsed_ms), 4),
            _fixed(_divide(1000.0 * (records - last.records), elapsed_ms), 4),
            str(records),
            f"{elapsed_ms} for share consumer {index}",
        )
    )
