"""The metrics of one process.

A metric is either an instrument that somebody updates (`meter`, `histogram`, `timer`), or a number
that is read when metrics are collected (`gauge`). What exists once per partition or group is not
registered one by one: a collector walks what is there and yields samples, so it costs nothing
between two collections and nothing has to be removed.

Invariants: a name is declared once; a failing gauge leaves out its own sample and no other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

from moldau.metrics._instruments import Histogram, Meter, Ticker
from moldau.metrics.names import Spec

__all__ = ["PERCENTILES", "Collector", "Reading", "Registry", "Sample", "Timer", "attributes_of"]

#: Attributes of histograms, with the share of values that each is about.
PERCENTILES: Final = (
    ("50thPercentile", 0.5),
    ("75thPercentile", 0.75),
    ("95thPercentile", 0.95),
    ("98thPercentile", 0.98),
    ("99thPercentile", 0.99),
    ("999thPercentile", 0.999),
)
#: How many values of tags a metric may have; more are counted under the last one.
SERIES_MAX: Final = 100_000

logger = logging.getLogger(__name__)


class Timer:
    """How often something happens, and how many milliseconds it takes."""

    __slots__ = ("histogram", "meter")

    def __init__(self, ticker: Ticker) -> None:
        self.meter = Meter(ticker)
        self.histogram = Histogram(ticker)

    def update(self, milliseconds: float) -> None:
        self.meter.mark(1)
        self.histogram.update(milliseconds)


Instrument: TypeAlias = Meter | Histogram | Timer
#: A number, a text (`ClusterId`), or what a caller updates.
Reading: TypeAlias = float | int | str | Instrument


class Sample(NamedTuple):
    """One metric with its tags' values, at one moment."""

    spec: Spec
    values: tuple[str, ...]
    reading: Reading


Collector: TypeAlias = Callable[[], Iterable[tuple[Spec, tuple[str, ...], Reading]]]


class Registry:
    """See the module. Not for several threads at once, except for reading."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        """`now_s` is a clock that does not jump, in seconds."""
        self._now_s = now_s
        self.ticker = Ticker(now_s())
        self._instruments: dict[Spec, dict[tuple[str, ...], Instrument]] = {}
        self._gauges: dict[tuple[Spec, tuple[str, ...]], Callable[[], float | int | str]] = {}
        self._collectors: list[Collector] = []
        self._keys: dict[str, Spec] = {}

    def advance(self) -> None:
        """Take the time for rates and weights; called now and then, at least every few seconds."""
        self.ticker.advance(self._now_s())

    # Declaring.

    def meter(
        self, spec: Spec, *values: str, parent: Meter | None = None, scale: float = 1.0
    ) -> Meter:
        """The meter with these tags; made when it is first asked for."""
        series = self._series(spec)
        made = series.get(values)
        if made is None:
            made = _add(series, spec, values, Meter(self.ticker, parent, scale))
        if not isinstance(made, Meter):
            raise TypeError(f"{spec.key} is not a meter")
        return made

    def histogram(self, spec: Spec, *values: str, whole: Histogram | None = None) -> Histogram:
        """With `whole` it has as many values as that one; those that are not recorded are zero."""
        series = self._series(spec)
        made = series.get(values)
        if made is None:
            made = _add(series, spec, values, Histogram(self.ticker, whole))
        if not isinstance(made, Histogram):
            raise TypeError(f"{spec.key} is not a histogram")
        return made

    def timer(self, spec: Spec, *values: str) -> Timer:
        series = self._series(spec)
        made = series.get(values)
        if made is None:
            made = _add(series, spec, values, Timer(self.ticker))
        if not isinstance(made, Timer):
            raise TypeError(f"{spec.key} is not a timer")
        return made

    def gauge(self, spec: Spec, read: Callable[[], float | int | str], *values: str) -> None:
        """A value that is read when metrics are collected; the last one given counts."""
        self._declare(spec)
        self._gauges[spec, values] = read

    def collector(self, *collectors: Collector) -> None:
        """Call these whenever metrics are collected."""
        self._collectors += collectors

    def remove(self, spec: Spec, *values: str) -> None:
        """Forget an instrument or gauge: what it was about no longer exists."""
        self._instruments.get(spec, {}).pop(values, None)
        self._gauges.pop((spec, values), None)

    def _series(self, spec: Spec) -> dict[tuple[str, ...], Instrument]:
        series = self._instruments.get(spec)
        if series is None:
            self._declare(spec)
            series = self._instruments[spec] = {}
        return series

    def _declare(self, spec: Spec) -> None:
        known = self._keys.setdefault(f"{spec.key}{spec.tags}", spec)
        if known != spec:
            raise ValueError(f"{spec.key} is declared twice, differently")

    # Collecting.

    @property
    def series_count(self) -> int:
        """How many instruments and gauges there are."""
        return len(self._gauges) + sum(map(len, self._instruments.values()))

    def collect(self) -> Iterator[Sample]:
        """Everything there is now."""
        self.advance()
        for spec, series in list(self._instruments.items()):
            for values, instrument in list(series.items()):
                yield Sample(spec, values, instrument)
        for (spec, values), read in list(self._gauges.items()):
            try:
                value = read()
            except Exception:
                logger.debug("reading %s failed", spec.mbean(values), exc_info=True)
                continue
            yield Sample(spec, values, value)
        for collect in self._collectors:
            try:
                for spec, values, reading in collect():
                    yield Sample(spec, values, reading)
            except Exception:
                logger.warning("collecting metrics failed", exc_info=True)


def attributes_of(spec: Spec, reading: Reading) -> dict[str, float | int | str]:
    """The attributes of the MBean, as JMX has them."""
    if isinstance(reading, Meter):
        return _meter(spec, reading, "SECONDS")
    if isinstance(reading, Histogram):
        return _histogram(reading)
    if isinstance(reading, Timer):
        return {
            **_meter(spec, reading.meter, "SECONDS"),
            **_histogram(reading.histogram),
            "EventType": "calls",
            "LatencyUnit": "MILLISECONDS",
        }
    return {spec.attribute or "Value": reading}


def _meter(spec: Spec, meter: Meter, unit: str) -> dict[str, float | int | str]:
    return {
        "Count": meter.count,
        "EventType": spec.event_type,
        "FifteenMinuteRate": meter.rate(15),
        "FiveMinuteRate": meter.rate(5),
        "MeanRate": meter.mean_rate,
        "OneMinuteRate": meter.rate(1),
        "RateUnit": unit,
    }


def _histogram(histogram: Histogram) -> dict[str, float | int | str]:
    found: dict[str, float | int | str] = {
        name: histogram.percentile(share) for name, share in PERCENTILES
    }
    return {
        **found,
        "Count": histogram.count,
        "Max": histogram.max,
        "Mean": histogram.mean,
        "Min": histogram.min,
        "StdDev": histogram.std_dev,
    }


def _add(
    series: dict[tuple[str, ...], Instrument],
    spec: Spec,
    values: tuple[str, ...],
    made: Instrument,
) -> Instrument:
    if len(values) != len(spec.tags):
        raise ValueError(f"{spec.key} has the tags {spec.tags}, but values {values} were given")
    if len(series) >= SERIES_MAX:
        return next(reversed(series.values()))
    series[values] = made
    return made
