"""Rates and token buckets: the same numbers as Kafka's formulas give."""

from __future__ import annotations

import pytest

from moldau.broker.network.machine.rates import SampledRate, TokenBucket, Window
from moldau.times import ElapsedMs

WINDOW = Window(samples=11, sample_ms=1000)


def at(ms: int) -> ElapsedMs:
    return ElapsedMs(ms)


@pytest.mark.parametrize(
    ("events", "limit", "throttle_ms"),
    [
        pytest.param([(0, 1000)], 100, 0, id="a burst counts as ten silent seconds before it"),
        pytest.param([(0, 1001)], 100, 10, id="one byte too many"),
        pytest.param([(0, 2000)], 100, 10_000, id="twice the window's worth"),
        pytest.param([(0, 500), (500, 500), (999, 500)], 100, 4001, id="within one sample"),
        pytest.param(
            [(second * 1000, 100) for second in range(40)],
            100,
            1000,
            id="the newest sample counts before its second is over",
        ),
        pytest.param([(0, 5000), (11_000, 10)], 100, 0, id="what is older than the window is gone"),
        pytest.param([(0, 2000), (0, -2000)], 100, 0, id="what is taken back does not count"),
    ],
)
def test_throttle_time(events: list[tuple[int, int]], limit: float, throttle_ms: int) -> None:
    rate = SampledRate(WINDOW)
    for now_ms, value in events:
        rate.record(value, at(now_ms))
    assert rate.throttle_ms(limit, at(events[-1][0])) == throttle_ms


def test_after_the_throttle_time_the_rate_is_at_the_limit() -> None:
    rate = SampledRate(WINDOW)
    rate.record(3000, at(0))
    throttle_ms = rate.throttle_ms(400, at(0))
    assert rate.throttle_ms(400, at(throttle_ms - 1)) > 0 or throttle_ms == 0
    assert rate.throttle_ms(400, at(throttle_ms)) == 0


@pytest.mark.parametrize("size", [100, 1_000, 30_000, 90_000])
def test_a_client_that_waits_as_it_should_stays_at_its_limit(size: int) -> None:
    """Virtual time: a client that sends whenever it may, for ten minutes."""
    rate, limit = SampledRate(WINDOW), 10_000.0
    now_ms = sent = 0
    while now_ms < 600_000:
        rate.record(size, at(now_ms))
        sent += size
        now_ms += max(1, rate.throttle_ms(limit, at(now_ms)))
    assert sent / (now_ms / 1000) == pytest.approx(limit, rel=0.1)


def test_an_idle_rate_can_be_dropped() -> None:
    rate = SampledRate(WINDOW)
    assert rate.is_idle(at(0))
    rate.record(1, at(0))
    assert not rate.is_idle(at(10_999))
    assert rate.is_idle(at(11_000))


def test_a_bucket_is_full_at_first_and_pays_its_debt_at_the_limit() -> None:
    bucket = TokenBucket(WINDOW)
    assert bucket.tokens(2.0, at(5)) == 22.0
    bucket.take(30, 2.0, at(5))
    assert bucket.tokens(2.0, at(5)) == -8.0
    assert bucket.throttle_ms(2.0, at(5)) == 4000
    assert bucket.throttle_ms(2.0, at(3005)) == 1000
    assert bucket.throttle_ms(2.0, at(4005)) == 0
    assert bucket.tokens(2.0, at(1_000_000)) == 22.0
    assert bucket.is_idle(at(1_000_000))
