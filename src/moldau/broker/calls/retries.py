"""Retries with pauses that grow up to a bound.

Invariant: `Retries.run` makes at most `attempt_count_max` attempts, and ends with the result or the
error of one of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from collections.abc import Set as AbstractSet
from typing import TypeVar

from moldau.clock import Clock, pause
from moldau.wire.errors import ApiError, ErrorCode

R = TypeVar("R")

Pause = Callable[[int], Awaitable[None]]
"""Waits for a number of milliseconds."""


def pauses_of(clock: Clock) -> Pause:
    return lambda delay_ms: pause(clock, delay_ms)


class Backoff:
    """Each wait takes twice as long as the one before, up to `delay_ms_max`."""

    def __init__(self, wait: Pause, *, delay_ms_first: int, delay_ms_max: int) -> None:
        self._wait = wait
        self._delay_ms = delay_ms_first
        self._delay_ms_max = delay_ms_max

    async def wait(self) -> None:
        delay_ms = self._delay_ms
        self._delay_ms = min(2 * delay_ms, self._delay_ms_max)
        await self._wait(delay_ms)


class Retries:
    """Repeats calls that fail with one of the `retried` error codes."""

    def __init__(
        self,
        wait: Pause,
        *,
        retried: AbstractSet[ErrorCode],
        attempt_count_max: int,
        delay_ms_first: int,
        delay_ms_max: int,
    ) -> None:
        self._wait = wait
        self._retried = retried
        self._attempt_count_max = attempt_count_max
        self._delay_ms_first = delay_ms_first
        self._delay_ms_max = delay_ms_max

    def covers(self, code: ErrorCode) -> bool:
        return code in self._retried

    async def run(
        self,
        attempt: Callable[[], Awaitable[R]],
        before_retry: Callable[[ErrorCode], Awaitable[None]] | None = None,
    ) -> R:
        """The result of `attempt`; raises its last ApiError."""
        backoff = Backoff(
            self._wait, delay_ms_first=self._delay_ms_first, delay_ms_max=self._delay_ms_max
        )
        for _ in range(self._attempt_count_max - 1):
            try:
                return await attempt()
            except ApiError as error:
                if not self.covers(error.code):
                    raise
                if before_retry is not None:
                    await before_retry(error.code)
            await backoff.wait()
        return await attempt()
