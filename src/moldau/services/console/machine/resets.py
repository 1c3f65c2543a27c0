"""Where the offsets of a group go in a reset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

__all__ = ["TARGETS", "Change", "planned_changes"]

TARGETS: Final = ("earliest", "latest", "offset", "time", "shift", "current")

Place = tuple[str, int]


class Change(NamedTuple):
    topic: str
    partition: int
    current: int | None
    new: int
    first: int
    end: int


def planned_changes(
    target: str,
    value: int,
    *,
    current: Mapping[Place, int | None],
    firsts: Mapping[Place, int],
    ends: Mapping[Place, int],
    at_time: Mapping[Place, int],
) -> list[Change]:
    """One for each partition, within what the partition has. `at_time` has the offsets of a reset
    to a time. A partition without a committed offset is shifted from its first record."""
    changes = []
    for place in sorted(ends):
        first, end, now = firsts[place], ends[place], current.get(place)
        if target == "earliest":
            new = first
        elif target == "latest":
            new = end
        elif target == "offset":
            new = value
        elif target == "time":
            new = at_time.get(place, end)
        elif target == "shift":
            new = (first if now is None else now) + value
        else:
            new = first if now is None else now
        changes.append(Change(*place, now, min(max(new, first), end), first, end))
    return changes
