"""What a stream of numbers is summed up as: averages, extremes, rates, totals.

Time is passed in. What always holds: a windowed figure rests on the last `samples` windows and
what overlaps them, never on older values; a figure without values is NaN, as in Kafka, except sums,
counts and rates, which are 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Protocol

HOUR_MS: Final = 3_600_000
SECOND_MS: Final = 1_000
NANOSECONDS_PER_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Windows:
    """How long figures remember: `metrics.num.samples` times `metrics.sample.window.ms`."""

    samples: int = 2
    window_ms: int = 30_000


class Stat(Protocol):
    def record(self, windows: Windows, value: float, now_ms: int) -> None: ...

    def measure(self, windows: Windows, now_ms: int) -> float: ...


class _Sample:
    __slots__ = ("count", "last_ms", "start_ms", "value")

    def __init__(self, initial: float, now_ms: int) -> None:
        self.reset(initial, now_ms)

    def reset(self, initial: float, now_ms: int) -> None:
        self.count = 0
        self.start_ms = now_ms
        self.last_ms = now_ms
        self.value = initial


class SampledStat:
    """Values gathered window by window; a window is reused once all are full."""

    initial: float = 0.0

    def __init__(self) -> None:
        self._samples: list[_Sample] = []
        self._current = 0
        #: Instead of the configured one, where positive.
        self.window_ms = -1

    def record(self, windows: Windows, value: float, now_ms: int) -> None:
        if not self._samples:
            self._samples.append(_Sample(self.initial, now_ms))
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= self._window_ms(windows):
            sample = self._advance(windows, now_ms)
        self.update(sample, value)
        sample.count += 1
        sample.last_ms = now_ms

    def measure(self, windows: Windows, now_ms: int) -> float:
        self.purge(windows, now_ms)
        return self.combine(self._samples)

    def oldest_ms(self, now_ms: int) -> int:
        """When the oldest window began."""
        return min((sample.start_ms for sample in self._samples), default=now_ms)

    def purge(self, windows: Windows, now_ms: int) -> None:
        """Empty the windows that saw nothing within the time that counts."""
        age_ms = windows.samples * self._window_ms(windows)
        for sample in self._samples:
            if now_ms - sample.last_ms >= age_ms:
                sample.reset(self.initial, now_ms)

    def update(self, sample: _Sample, value: float) -> None:
        sample.value += value

    def combine(self, samples: list[_Sample]) -> float:
        return sum(sample.value for sample in samples)

    def _window_ms(self, windows: Windows) -> int:
        return self.window_ms if self.window_ms > 0 else windows.window_ms

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

    def combine(self, samples: list[_Sample]) -> float:
        count = sum(sample.count for sample in samples)
        return sum(sample.value for sample in samples) / count if count else math.nan


class Max(SampledStat):
    """The largest value."""

    initial = -math.inf

    def update(self, sample: _Sample, value: float) -> None:
        if value > sample.value:
            sample.value = value

    def combine(self, samples: list[_Sample]) -> float:
        return max((sample.value for sample in samples if sample.count), default=math.nan)


class Min(SampledStat):
    """The smallest value."""

    initial = math.inf

    def update(self, sample: _Sample, value: float) -> None:
        if value < sample.value:
            sample.value = value

    def combine(self, samples: list[_Sample]) -> float:
        return min((sample.value for sample in samples if sample.count), default=math.nan)


class Rate:
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
        return value / (self._elapsed_ms(windows, now_ms) / self._unit_ms)

    def _elapsed_ms(self, windows: Windows, now_ms: int) -> int:
        window_ms = self._window_ms if self._window_ms > 0 else windows.window_ms
        elapsed_ms = now_ms - self._stat.oldest_ms(now_ms)
        missing = windows.samples - 1 - elapsed_ms // max(window_ms, 1)
        if missing > 0:
            elapsed_ms += missing * window_ms
        return max(elapsed_ms, 1)


class CumulativeSum:
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


class Value:
    """The last value."""

    def __init__(self) -> None:
        self._value = 0.0

    def record(self, windows: Windows, value: float, now_ms: int) -> None:
        self._value = value

    def measure(self, windows: Windows, now_ms: int) -> float:
        return self._value


def count_rate() -> Rate:
    """Events per second, whatever their values."""
    return Rate(WindowedCount())


def hourly_rate() -> Rate:
    """Events per hour, of the last hours."""
    return Rate(WindowedCount(), unit_ms=HOUR_MS, window_ms=HOUR_MS)


def nanosecond_ratio() -> Rate:
    """Nanoseconds spent by nanoseconds passed."""
    return Rate(unit_ms=1 / NANOSECONDS_PER_MS)
