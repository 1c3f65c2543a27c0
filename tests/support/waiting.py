"""Waiting for a condition, never for a time.

A probe asks brokers, which costs them and the test a part of a core. Pauses between two probes grow
with the time that has passed: a wait is longer by a fraction at most, and asks seldom when it takes
seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

FRACTION = 0.05
SECONDS_MAX = 0.2


class Pauses:
    """The pauses of one wait."""

    def __init__(self, seconds_min: float = 0.01) -> None:
        self._seconds_min = seconds_min
        self._began = time.monotonic()

    def wait(self) -> None:
        elapsed = time.monotonic() - self._began
        time.sleep(max(self._seconds_min, min(SECONDS_MAX, elapsed * FRACTION)))


def eventually(probe: Callable[[], T], *, what: str, seconds_max: float = 60.0) -> T:
    """Return `probe()` as soon as it is true; fail naming `what` when it never was."""
    pauses = Pauses()
    deadline = time.monotonic() + seconds_max
    while True:
        value = probe()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not true within {seconds_max:.0f} s: {what} (last: {value!r})")
        pauses.wait()
