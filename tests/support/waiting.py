"""Waiting for a condition, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(probe: Callable[[], T], *, what: str, seconds_max: float = 60.0) -> T:
    """Return `probe()` as soon as it is true; fail naming `what` when it never was."""
    deadline = time.monotonic() + seconds_max
    while True:
        value = probe()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not true within {seconds_max:.0f} s: {what} (last: {value!r})")
        time.sleep(0.01)
