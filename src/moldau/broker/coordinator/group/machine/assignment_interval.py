"""Decides whether a group may get a new target assignment yet: assignments keep a distance in time,
so that many joins cost few rebalances."""

from __future__ import annotations


def may_assign(*, made_ms: int, interval_ms: int, now_ms: int) -> bool:
    """`made_ms` is when the last assignment was made by the wall clock, 0 if there is none.

    The time is in the group's log, where only wall time has a meaning after a failover. One that
    is still to come says that the clock was set back: then the group does not wait for it.
    """
    return made_ms == 0 or not made_ms <= now_ms < made_ms + interval_ms
