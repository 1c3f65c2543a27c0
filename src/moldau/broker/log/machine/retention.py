"""Which segments a log may lose. Pure: the log hands in what it has and removes the rest.

Invariants: segments go from the oldest on, without gaps; nothing at or above the
high watermark goes; the order of reasons is log start, size, time. A log keeps at least
one segment, so when all may go the log rolls a new one first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class SegmentFacts(NamedTuple):
    base_offset: int
    next_base_offset: int | None  # None for the active segment
    size: int
    largest_timestamp: int


class Retention(NamedTuple):
    """The limits in force; -1 switches one off."""

    retention_ms: int
    retention_bytes: int
    delete: bool  # cleanup.policy contains delete


def deletable_count(
    segments: Sequence[SegmentFacts],
    retention: Retention,
    *,
    log_start_offset: int,
    log_end_offset: int,
    high_watermark: int,
    now_ms: int,
) -> int:
    """How many of the oldest segments may be removed."""

    def count(start: int, breaks: Callable[[SegmentFacts], bool]) -> int:
        for segment in segments[start:]:
            end = segment.next_base_offset
            upper = log_end_offset if end is None else end
            empty_active = end is None and segment.size == 0
            if high_watermark < upper or empty_active or not breaks(segment):
                break
            start += 1
        return start

    def below_log_start(segment: SegmentFacts) -> bool:
        return segment.next_base_offset is not None and segment.next_base_offset <= log_start_offset

    removed = count(0, below_log_start)
    if not retention.delete:
        return removed
    if retention.retention_bytes >= 0:
        surplus = sum(segment.size for segment in segments[removed:]) - retention.retention_bytes

        def too_large(segment: SegmentFacts) -> bool:
            nonlocal surplus
            if surplus - segment.size < 0:
                return False
            surplus -= segment.size
            return True

        if surplus >= 0:
            removed = count(removed, too_large)
    if retention.retention_ms >= 0:
        removed = count(
            removed, lambda segment: now_ms - segment.largest_timestamp > retention.retention_ms
        )
    return removed
