"""A wait that ends after a time or when something happens."""

from __future__ import annotations

import asyncio

from moldau.clock import Clock

__all__ = ["Doorbell"]


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
