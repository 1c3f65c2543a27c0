"""Decides whether a group may get a new target assignment yet: there is a minimum interval between
assignments, so that many joins cost few rebalances."""

from __future__ import annotations

from moldau.broker.coordinator.machine.wall_intervals import is_within
from moldau.times import WallMs


def may_assign(*, made_ms: int, interval_ms: int, now_ms: WallMs) -> bool:
    """`made_ms` is when the last assignment was made by the wall clock, 0 if there is none.

    The time is in the group's log, where only wall time has a meaning after a failover.
    """
    return made_ms == 0 or not is_within(since_ms=made_ms, interval_ms=interval_ms, now_ms=now_ms)
