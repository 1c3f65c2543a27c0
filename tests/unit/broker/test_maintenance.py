"""What a broker does by the clock, and when it does it first."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from moldau.broker.config import BrokerConfig
from moldau.broker.log.manager import LogManager
from moldau.broker.maintenance import Maintenance
from moldau.cli.nodes.configuration import standalone_properties

HOUR_MS = 3_600_000


class Rounds:
    """Stands in for a log manager and notes what it is asked to do."""

    flush_ms_min = HOUR_MS
    removals = SimpleNamespace(run_due=lambda: None)

    def __init__(self) -> None:
        self.checked = asyncio.Event()
        self.expired = asyncio.Event()

    def delete_old_segments(self) -> None:
        self.checked.set()

    def expire_producers(self) -> None:
        self.expired.set()

    def __getattr__(self, name: str) -> Any:
        return lambda: None


@pytest.mark.parametrize(
    ("initial_ms", "interval_ms"),
    [
        pytest.param(1, HOUR_MS, id="soon after the start"),
        pytest.param(HOUR_MS, 1, id="never later than the interval"),
    ],
)
def test_retention_is_first_checked_after_the_initial_delay(
    initial_ms: int, interval_ms: int
) -> None:
    config = BrokerConfig.from_properties(
        {
            **standalone_properties(port=0, data="/data"),
            "log.initial.task.delay.ms": str(initial_ms),
            "log.retention.check.interval.ms": str(interval_ms),
        }
    )

    async def scenario() -> None:
        rounds = Rounds()
        maintenance = Maintenance(cast(LogManager, rounds), lambda: config)
        maintenance.start()
        async with asyncio.timeout(10):
            await rounds.checked.wait()
        maintenance.stop()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("interval_ms", "is_due"),
    [
        pytest.param(1, True, id="after the interval"),
        pytest.param(HOUR_MS, False, id="not after the initial delay"),
    ],
)
def test_producers_expire_when_their_interval_has_passed(interval_ms: int, is_due: bool) -> None:
    """As with Apache Kafka: one whose records have old timestamps is not gone half a minute after
    the broker has started."""
    config = BrokerConfig.from_properties(
        {
            **standalone_properties(port=0, data="/data"),
            "log.initial.task.delay.ms": "2",
            "producer.id.expiration.check.interval.ms": str(interval_ms),
        }
    )

    async def scenario() -> None:
        rounds = Rounds()
        maintenance = Maintenance(cast(LogManager, rounds), lambda: config)
        maintenance.start()
        async with asyncio.timeout(10):
            await rounds.checked.wait()
            # Timers that were due together have fired, too.
            await asyncio.sleep(0.01)
            if is_due:
                await rounds.expired.wait()
        maintenance.stop()
        assert rounds.expired.is_set() == is_due

    asyncio.run(scenario())
