"""How often an event loop is asked how late it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, cast

from moldau.metrics import Registry
from moldau.metrics.process import IDLE_PROBE_SECONDS, PROBE_SECONDS, LoopWatch


class _Loop:
    """Keeps what is to be called, and goes to its time when it calls it."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._next: tuple[float, Callable[[], None]] | None = None

    def time(self) -> float:
        return self.now_s

    def call_at(self, when_s: float, callback: Callable[[], None]) -> object:
        self._next = when_s, callback
        return self

    def run_next(self, late_s: float = 0.0) -> None:
        assert self._next is not None
        when_s, callback = self._next
        self.now_s = when_s + late_s
        callback()


def test_an_idle_loop_is_woken_rarely_and_its_delays_are_recorded() -> None:
    loop = _Loop()
    watch = LoopWatch(Registry(time.monotonic), cast(Any, loop))
    watch.start()
    loop.run_next()
    assert loop.now_s == PROBE_SECONDS
    loop.run_next()
    assert loop.now_s == PROBE_SECONDS + IDLE_PROBE_SECONDS
    loop.run_next(late_s=2.0)
    assert watch.delay.count == 3
    assert watch.delay.max == 2000.0
