"""A node's clock that tests can put forward or back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from moldau.clock import Alarm
from moldau.times import ElapsedMs, WallMs


class _MovableAlarm:
    """Due at a time of the shifted clock: when that jumps it is set again."""

    __slots__ = ("_callback", "_clock", "_handle", "due_ms")

    def __init__(self, clock: ShiftedClock, due_ms: float, callback: Callable[[], None]) -> None:
        self._clock = clock
        self._callback = callback
        self._handle: asyncio.TimerHandle | None = None
        self.due_ms = due_ms
        self.set()

    def set(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        delay_s = max(0.0, (self.due_ms - self._clock.precise_elapsed_ms()) / 1000)
        self._handle = asyncio.get_running_loop().call_later(delay_s, self._on_due)

    def _on_due(self) -> None:
        self._clock.forget(self)
        self._callback()

    def cancel(self) -> None:
        self._clock.forget(self)
        if self._handle is not None:
            self._handle.cancel()


class ShiftedClock:
    """Implements `moldau.clock.Clock`: the machine's time and what was added to it.

    `advance` lets time pass: everything that was due in it happens now. `jump` sets only the wall
    clock, as an operator or a time server does: records get other timestamps, nothing is due.
    """

    def __init__(self, *, ahead_ms: int = 0, wall_ahead_ms: int = 0) -> None:
        self.ahead_ms = ahead_ms
        self.wall_ahead_ms = wall_ahead_ms
        self._alarms: dict[_MovableAlarm, None] = {}

    def now_ms(self) -> WallMs:
        return WallMs(time.time_ns() // 1_000_000 + self.ahead_ms + self.wall_ahead_ms)

    def elapsed_ms(self) -> ElapsedMs:
        return ElapsedMs(time.monotonic_ns() // 1_000_000 + self.ahead_ms)

    def precise_elapsed_ms(self) -> float:
        return time.monotonic_ns() / 1_000_000 + self.ahead_ms

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Alarm:
        alarm = _MovableAlarm(self, self.precise_elapsed_ms() + delay_ms, callback)
        self._alarms[alarm] = None
        return alarm

    def forget(self, alarm: _MovableAlarm) -> None:
        self._alarms.pop(alarm, None)

    def advance(self, ms: int) -> None:
        self.ahead_ms += ms
        # In the order in which they are due, for those that now are all at once.
        for alarm in sorted(self._alarms, key=lambda each: each.due_ms):
            alarm.set()

    def jump(self, ms: int) -> None:
        self.wall_ahead_ms += ms
