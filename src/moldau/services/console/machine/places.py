"""Where reading starts so that the last records of all partitions are seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

__all__ = ["newest_starts"]

P = TypeVar("P")


def newest_starts(firsts: Mapping[P, int], ends: Mapping[P, int], count: int) -> dict[P, int]:
    """`count` records in all, shared evenly; what a short partition does not have, others give."""
    starts = dict(ends)
    left = count
    for number, place in enumerate(sorted(ends, key=lambda each: ends[each] - firsts[each])):
        share = -(-left // (len(ends) - number))
        taken = min(share, ends[place] - firsts[place])
        starts[place] = ends[place] - taken
        left -= taken
    return starts
