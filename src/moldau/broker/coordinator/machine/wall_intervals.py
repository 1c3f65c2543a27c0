"""Intervals by the wall clock, for times that are in records or compared with such."""

from __future__ import annotations

from moldau.times import WallMs


def is_within(*, since_ms: int, interval_ms: int, now_ms: WallMs) -> bool:
    """Whether the interval that began at `since_ms` still lasts.

    A beginning in the future means that the clock was set back: then the interval counts as over,
    so that nothing waits until the clock has caught up.
    """
    return since_ms <= now_ms < since_ms + interval_ms
