"""A wait on the loop that something else on the loop ends."""

from __future__ import annotations

import asyncio

from moldau.clock import Clock

__all__ = ["Bell"]


class Bell:
    """For one waiter at a time. A ring while nobody waits is lost."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiter: asyncio.Future[None] | None = None

    def ring(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def wait(self, limit_ms: int) -> None:
        """Until `ring`, or for this long."""
        waiter = self._waiter = asyncio.get_running_loop().create_future()
        alarm = self._clock.call_later(limit_ms, self.ring)
        try:
            await waiter
        finally:
            alarm.cancel()
            self._waiter = None
