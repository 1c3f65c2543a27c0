"""Meters and histograms, compiled and as plain Python."""

from __future__ import annotations

import importlib.util
import math
import random
from pathlib import Path
from types import ModuleType

import pytest

from moldau.metrics import _instruments as compiled

SOURCE = Path(__file__).parents[3] / "src" / "moldau" / "metrics" / "_instruments.py"


def _plain() -> ModuleType:
    spec = importlib.util.spec_from_file_location("plain_instruments", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=["compiled", "plain"], scope="module")
def instruments(request: pytest.FixtureRequest) -> ModuleType:
    return compiled if request.param == "compiled" else _plain()


def test_a_meter_counts_for_its_parents_too(instruments: ModuleType) -> None:
    ticker = instruments.Ticker(0.0)
    broker = instruments.Meter(ticker)
    topic = instruments.Meter(ticker, broker)
    partition = instruments.Meter(ticker, topic)
    partition.mark(5)
    topic.mark()
    assert (partition.count, topic.count, broker.count) == (5, 6, 6)


def test_rates_are_yammers_moving_averages(instruments: ModuleType) -> None:
    ticker = instruments.Ticker(0.0)
    meter = instruments.Meter(ticker)
    meter.mark(50)
    ticker.advance(5.0)
    # The first step's rate is where the averages begin.
    assert [meter.rate(minutes) for minutes in (1, 5, 15)] == [10.0, 10.0, 10.0]
    ticker.advance(65.0)
    # A minute of silence: e^-1, e^-0.2, e^-(1/15) of it is left.
    expected = [10 * math.exp(-1 / minutes) for minutes in (1, 5, 15)]
    assert [meter.rate(minutes) for minutes in (1, 5, 15)] == pytest.approx(expected)
    assert meter.mean_rate == pytest.approx(50 / 65)


def test_a_steady_stream_has_a_steady_rate(instruments: ModuleType) -> None:
    ticker = instruments.Ticker(100.0)
    meter = instruments.Meter(ticker, None, 1e-9)
    for second in range(101, 401):
        meter.mark(700_000_000)
        ticker.advance(float(second))
    assert meter.rate(1) == pytest.approx(0.7)
    assert meter.mean_rate == pytest.approx(0.7)


def test_percentiles_are_right_within_a_bucket(instruments: ModuleType) -> None:
    ticker = instruments.Ticker(0.0)
    histogram = instruments.Histogram(ticker)
    chance = random.Random(7)
    values = sorted(chance.lognormvariate(1, 2) for _ in range(5_000))
    for value in values:
        histogram.update(value)
    for share in (0.5, 0.75, 0.95, 0.99, 0.999):
        exact = values[int(share * len(values)) - 1]
        assert histogram.percentile(share) == pytest.approx(exact, rel=0.07)
    assert histogram.max == values[-1]
    assert histogram.min == values[0]
    assert histogram.mean == pytest.approx(sum(values) / len(values))
    assert histogram.count == 5_000


@pytest.mark.parametrize("value", [0.0, 0.001, 0.3, 1, 17.2, 999.9, 65_536, 1e9, 2.0**44])
def test_a_value_is_near_the_middle_of_its_bucket(instruments: ModuleType, value: float) -> None:
    middle = instruments.value_of(instruments.bucket_of(value))
    assert middle == pytest.approx(value, rel=0.035, abs=0.001)


def test_buckets_have_ends(instruments: ModuleType) -> None:
    histogram = instruments.Histogram(instruments.Ticker(0.0))
    for value in (-1.0, 0.0, 1e300, math.inf):
        histogram.update(value)
    assert histogram.count == 4
    assert histogram.percentile(0.25) == 0.0


def test_recent_values_weigh_more(instruments: ModuleType) -> None:
    ticker = instruments.Ticker(0.0)
    histogram = instruments.Histogram(ticker)
    for _ in range(1_000):
        histogram.update(1.0)
    ticker.advance(600.0)
    for _ in range(10):
        histogram.update(100.0)
    # After ten minutes the old ones weigh e^-9 each.
    assert histogram.percentile(0.5) == pytest.approx(100.0, rel=0.04)
    # Weights are rescaled after an hour, and stay right.
    ticker.advance(4_300.0)
    histogram.update(5.0)
    assert histogram.percentile(0.5) == pytest.approx(5.0, rel=0.04)
    assert histogram.count == 1_011


def test_one_call_records_a_request_and_its_parent(instruments: ModuleType) -> None:
    ticker = instruments.Ticker(0.0)

    def times(parent: object = None) -> tuple[object, dict[str, object]]:
        total = instruments.Histogram(ticker)
        parts = {
            "total": total,
            "local": instruments.Histogram(ticker),
            "request_bytes": instruments.Histogram(ticker),
        }
        for name in ("remote", "request_queue", "response_queue", "response_send"):
            parts[name] = instruments.Histogram(ticker, total)
        parts["errors_none"] = instruments.Meter(ticker)
        return instruments.RequestTimes(parent=parent, **parts), parts

    fetch, of_fetch = times()
    consumer, of_consumer = times(fetch)
    consumer.record(2_000_000, 3_000_000, 77)  # type: ignore[attr-defined]
    for parts in (of_fetch, of_consumer):
        assert parts["total"].max == 5.0  # type: ignore[attr-defined]
        assert parts["local"].max == 2.0  # type: ignore[attr-defined]
        assert parts["remote"].max == 3.0  # type: ignore[attr-defined]
        assert parts["request_bytes"].max == 77  # type: ignore[attr-defined]
        assert parts["errors_none"].count == 1  # type: ignore[attr-defined]
        assert parts["response_send"].count == 1  # type: ignore[attr-defined]
    # What comes later makes the same request longer.
    consumer.queued(5_000_000, 7_000_000)  # type: ignore[attr-defined]
    consumer.held_back(12_000_000, 1_000_000)  # type: ignore[attr-defined]
    consumer.sent(13_000_000, 20_000_000)  # type: ignore[attr-defined]
    for parts in (of_fetch, of_consumer):
        total = parts["total"]
        assert (total.count, total.sum, total.max) == (1, 33.0, 33.0)  # type: ignore[attr-defined]
        assert total.percentile(0.5) == pytest.approx(33.0, rel=0.04)  # type: ignore[attr-defined]
        assert parts["request_queue"].max == 7.0  # type: ignore[attr-defined]
        assert parts["response_queue"].max == 1.0  # type: ignore[attr-defined]
        assert parts["response_send"].max == 20.0  # type: ignore[attr-defined]


def test_what_is_not_recorded_of_a_phase_is_zero(instruments: ModuleType) -> None:
    ticker = instruments.Ticker(0.0)
    total = instruments.Histogram(ticker)
    phase = instruments.Histogram(ticker, total)
    assert (phase.count, phase.percentile(0.99), phase.min) == (0, 0.0, 0.0)
    for number in range(100):
        total.update(10.0)
        if number % 10 == 0:
            phase.update(5.0)
    assert (phase.count, phase.min, phase.max, phase.mean) == (100, 0.0, 5.0, 0.5)
    assert phase.percentile(0.5) == 0.0
    assert phase.percentile(0.95) == pytest.approx(5.0, rel=0.04)
    # Also after weights were rescaled, whichever of the two is asked first.
    ticker.advance(4_000.0)
    for _ in range(100):
        total.update(10.0)
    assert phase.percentile(0.999) == 0.0
    assert phase.count == 200
