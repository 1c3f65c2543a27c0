"""Where a share group begins in a partition it has never consumed (share.auto.offset.reset)."""

from __future__ import annotations

import re
from typing import Final

from moldau.broker.replication.offsets import EARLIEST, LATEST, NOT_FOUND, find_offset
from moldau.broker.replication.partition import Partition
from moldau.invariant import present

_DURATION: Final = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?"
    r"(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)
_SECONDS_OF: Final = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}


def duration_ms(text: str) -> int:
    """Milliseconds of an ISO 8601 duration of days and less, as the configuration allows it."""
    match = present(
        _DURATION.fullmatch(text), f"{text!r} is no duration, though the configuration took it"
    )
    parts = match.groupdict(default="0")
    return int(sum(float(parts[name]) * seconds for name, seconds in _SECONDS_OF.items()) * 1000)


def initial_offset(partition: Partition, strategy: str, now_ms: int) -> int:
    """The start offset that a group's strategy gives; raises ApiError while it is not known."""
    if strategy == "earliest":
        return find_offset(partition, EARLIEST, read_committed=False, for_client=True).offset
    if strategy.startswith("by_duration:"):
        since_ms = now_ms - duration_ms(strategy.removeprefix("by_duration:"))
        found = find_offset(partition, since_ms, read_committed=False, for_client=True)
        if found != NOT_FOUND:
            return found.offset
        # No record is that young: begin with the next one. (Kafka fails here until there is one.)
    return find_offset(partition, LATEST, read_committed=False, for_client=True).offset
