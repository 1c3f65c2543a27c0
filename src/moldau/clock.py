"""Time as shells see it, so that a simulated one can take its place."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from moldau.times import ElapsedMs, WallMs


class Alarm(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    def now_ms(self) -> WallMs:
        """Wall time: goes into records, may jump."""
        ...

    def elapsed_ms(self) -> ElapsedMs:
        """Time that only goes forward: sessions and other delays are measured with it."""
        ...

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Alarm: ...


class LoopClock:
    """The time of the running event loop."""

    # Every request asks for the time, and calling WallMs would cost as much as finding it out.

    def now_ms(self) -> WallMs:
        return time.time_ns() // 1_000_000  # type: ignore[return-value]

    def elapsed_ms(self) -> ElapsedMs:
        return time.monotonic_ns() // 1_000_000  # type: ignore[return-value]

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Alarm:
        return asyncio.get_running_loop().call_later(delay_ms / 1000, callback)


async def pause(clock: Clock, delay_ms: int) -> None:
    """Wait for `delay_ms` of the clock's time."""
    over = asyncio.get_running_loop().create_future()
    # Cancelled and due at the same moment: then it is no longer waited for.
    alarm = clock.call_later(delay_ms, lambda: None if over.done() else over.set_result(None))
    try:
        await over
    finally:
        alarm.cancel()
