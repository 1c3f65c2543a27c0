"""A wait that ends after a time or when something happens; what is said of who waits too long."""

from __future__ import annotations

import asyncio
import logging

from moldau.clock import Clock

__all__ = ["Doorbell", "warn_late"]

_log = logging.getLogger(__name__)


class Doorbell:
    """For one waiter. A ring while nobody waits ends the next wait at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rung = asyncio.Event()

    def ring(self) -> None:
        self._rung.set()

    async def wait(self, limit_ms: int | None) -> None:
        alarm = None if limit_ms is None else self._clock.call_later(limit_ms, self._rung.set)
        try:
            await self._rung.wait()
        finally:
            if alarm is not None:
                alarm.cancel()
            self._rung.clear()


def warn_late(group_id: str, max_poll_interval_ms: int) -> None:
    _log.warning(
        "group %s: the application did not poll for max.poll.interval.ms (%d ms); the consumer "
        "leaves the group and joins again at the next poll. Raise max.poll.interval.ms or lower "
        "max.poll.records",
        group_id,
        max_poll_interval_ms,
    )
