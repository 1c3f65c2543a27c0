# cython: annotation_typing=False
"""What a stream of numbers is summed up as: averages, extremes, rates, totals.

Plain Python, and with `stats.pxd` beside it also the source of a compiled module with the same
names and results: a request is recorded in some twenty places, which is much beside the request
itself. Time is passed in. Invariants: a windowed figure rests on the last `samples` windows
and what overlaps them, never on older values; a figure without values is NaN, as in Kafka, except
sums, counts and rates, which are 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from threading import Lock
from typing import Final

HOUR_MS: Final = 3_600_000
SECOND_MS: Final = 1_000
NANOSECONDS_PER_MS: Final = 1_000_000


class Windows:
    """How long figures remember: `metrics.num.samples` times `metrics.sample.window.ms`."""

    __slots__ = ("samples", "window_ms")

    def __init__(self, samples: int = 2, window_ms: int = 30_000) -> None:
        self.samples = samples
        self.window_ms = window_ms


class Stat:
    """Takes values and makes one number of them; each kind in its own way."""

    def record(self, windows: Windows, value: float, now_ms: int) -> None:
        """Take a value."""

    def measure(self, windows: Windows, now_ms: int) -> float:
        """The number."""
        return math.nan


class _Sample:
    __slots__ = ("count", "last_ms", "start_ms", "value")

    def __init__(self, initial: float, now_ms: int) -> None:
        self.count = 0
        self.start_ms = now_ms
        self.last_ms = now_ms
        self.value = initial

    def reset(self, initial: float, now_ms: int) -> None:
        self.count = 0
        self.start_ms = now_ms
        self.last_ms = now_ms
        self.value = initial


class SampledStat(Stat):
    """Values gathered window by window; a window is reused once all are full."""

    def __init__(self) -> None:
        self._samples: list[_Sample] = []
        self._current = 0
        # What a window begins with.
        self.initial = 0.0
        #: Instead of the configured one, where positive.
        self.window_ms = -1

    def record(self, windows: Windows, value: float, now_ms: int) -> None:
        if not self._samples:
            self._samples.append(_Sample(self.initial, now_ms))
        sample = self._samples[self._current]
        window_ms = self.window_ms if self.window_ms > 0 else windows.window_ms
        if now_ms - sample.start_ms >= window_ms:
            sample = self._advance(windows, now_ms)
        self.update(sample, value)
        sample.count += 1
        sample.last_ms = now_ms

    def measure(self, windows: Windows, now_ms: int) -> float:
        self.purge(windows, now_ms)
        return self.combine()

    def oldest_ms(self, now_ms: int) -> int:
        """When the oldest window began."""
        return min((sample.start_ms for sample in self._samples), default=now_ms)

    def purge(self, windows: Windows, now_ms: int) -> None:
        """Empty the windows that saw nothing within the time that counts."""
        window_ms = self.window_ms if self.window_ms > 0 else windows.window_ms
        age_ms = windows.samples * window_ms
        for sample in self._samples:
            if now_ms - sample.last_ms >= age_ms:
                sample.reset(self.initial, now_ms)

    def update(self, sample: _Sample, value: float) -> None:
        """Take a value into a window."""
        sample.value += value

    def combine(self) -> float:
        """The number, of all windows."""
        return sum([sample.value for sample in self._samples])

    def _advance(self, windows: Windows, now_ms: int) -> _Sample:
        # One more than counts: the oldest overlaps the time that counts.
        self._current = (self._current + 1) % (windows.samples + 1)
        if self._current >= len(self._samples):
            self._samples.append(_Sample(self.initial, now_ms))
        else:
            self._samples[self._current].reset(self.initial, now_ms)
        return self._samples[self._current]


class WindowedSum(SampledStat):
    """The sum of the values."""


class WindowedCount(SampledStat):
    """How many values there were."""

    def update(self, sample: _Sample, value: float) -> None:
        sample.value += 1.0


class Avg(SampledStat):
    """The mean of the values."""

    def combine(self) -> float:
        count = sum([sample.count for sample in self._samples])
        return sum([sample.value for sample in self._samples]) / count if count else math.nan


class Max(SampledStat):
    """The largest value."""

    def __init__(self) -> None:
        super().__init__()
        self.initial = -math.inf

    def update(self, sample: _Sample, value: float) -> None:
        if value > sample.value:
            sample.value = value

    def combine(self) -> float:
        return max([sample.value for sample in self._samples if sample.count], default=math.nan)


class Min(SampledStat):
    """The smallest value."""

    def __init__(self) -> None:
        super().__init__()
        self.initial = math.inf

    def update(self, sample: _Sample, value: float) -> None:
        if value < sample.value:
            sample.value = value

    def combine(self) -> float:
        return min([sample.value for sample in self._samples if sample.count], default=math.nan)


class Rate(Stat):
    """A windowed sum or count per unit of time.

    A time that has not come yet counts as well: the first second of a window of thirty would
    otherwise show thirty times the rate.
    """

    def __init__(
        self,
        stat: SampledStat | None = None,
        *,
        unit_ms: float = SECOND_MS,
        window_ms: int = -1,
    ) -> None:
        self._stat = stat if stat is not None else WindowedSum()
        self._stat.window_ms = window_ms
        self._unit_ms = unit_ms
        self._window_ms = window_ms

    def record(self, windows: Windows, value: float, now_ms: int) -> None:
        self._stat.record(windows, value, now_ms)

    def measure(self, windows: Windows, now_ms: int) -> float:
        value = self._stat.measure(windows, now_ms)
        window_ms = self._window_ms if self._window_ms > 0 else windows.window_ms
        elapsed_ms = now_ms - self._stat.oldest_ms(now_ms)
        missing = windows.samples - 1 - elapsed_ms // max(window_ms, 1)
        if missing > 0:
            elapsed_ms += missing * window_ms
        return value / (max(elapsed_ms, 1) / self._unit_ms)


class CumulativeSum(Stat):
    """The sum of all values ever."""

    def __init__(self) -> None:
        self._total = 0.0

    def record(self, windows: Windows, value: float, now_ms: int) -> None:
        self._total += value

    def measure(self, windows: Windows, now_ms: int) -> float:
        return self._total


class CumulativeCount(CumulativeSum):
    """How many values there ever were."""

    def record(self, windows: Windows, value: float, now_ms: int) -> None:
        self._total += 1.0


class Value(Stat):
    """The last value."""

    def __init__(self) -> None:
        self._value = 0.0

    def record(self, windows: Windows, value: float, now_ms: int) -> None:
        self._value = value

    def measure(self, windows: Windows, now_ms: int) -> float:
        return self._value


class Recorder:
    """Gives each recorded value to its stats, and to its parents."""

    def __init__(
        self, windows: Windows, now_ms: Callable[[], int], parents: tuple[Recorder, ...]
    ) -> None:
        self._windows = windows
        self._now_ms = now_ms
        self._parents = parents
        self._stats: list[Stat] = []
        self._lock = Lock()
        #: When it was last recorded to.
        self.last_ms = now_ms()

    def add_stat(self, stat: Stat) -> None:
        with self._lock:
            self._stats.append(stat)

    def measure(self, stat: Stat) -> float:
        """The value of one of the stats now."""
        with self._lock:
            return stat.measure(self._windows, self._now_ms())

    def record(self, value: float = 1.0, now_ms: int = -1) -> None:
        """Take a value, at a time that the caller has asked for already or is asked for here."""
        now = now_ms if now_ms >= 0 else self._now_ms()
        self._lock.acquire()
        try:
            self.last_ms = now
            for stat in self._stats:
                stat.record(self._windows, value, now)
        finally:
            self._lock.release()
        for parent in self._parents:
            parent.record(value, now)


def count_rate() -> Rate:
    """Events per second, whatever their values."""
    return Rate(WindowedCount())


def hourly_rate() -> Rate:
    """Events per hour, of the last hours."""
    return Rate(WindowedCount(), unit_ms=HOUR_MS, window_ms=HOUR_MS)


def nanosecond_ratio() -> Rate:
    """Nanoseconds spent by nanoseconds passed."""
    return Rate(unit_ms=1 / NANOSECONDS_PER_MS)
