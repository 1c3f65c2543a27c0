"""What to clean next, and how much of it. Pure: facts come in, decisions go out.

Invariants: a range never reaches into the active segment, beyond the last stable
offset (and so never beyond the high watermark) or into segments younger than
min.compaction.lag.ms, and it ends at a segment's start. Segments are grouped in order,
without gaps, so that each new segment replaces neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

NEVER_MS = 2**63 - 1
RELATIVE_OFFSET_MAX = 2**31 - 1

Key = TypeVar("Key")


class SegmentFacts(NamedTuple):
    base_offset: int
    size: int
    # Only looked at where a compaction lag is configured.
    largest_timestamp: int = 0
    first_timestamp: int = -1


class LogFacts(NamedTuple):
    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int
    segments: Sequence[SegmentFacts]  # in order; the last is the active one


class CleaningPolicy(NamedTuple):
    """A topic's settings; field names are Kafka's."""

    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = NEVER_MS


class CleanRange(NamedTuple):
    """Offsets that may be cleaned, and the reasons to clean them."""

    first_dirty_offset: int
    upper_offset: int
    clean_bytes: int
    dirty_bytes: int
    overdue: bool

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def is_due(self, policy: CleaningPolicy) -> bool:
        if self.dirty_bytes == 0:
            return False
        return self.overdue or self.dirty_ratio > policy.min_cleanable_dirty_ratio


def first_dirty_offset(
    checkpointed: int | None, *, log_start_offset: int, log_end_offset: int
) -> int:
    """Where cleaning continues; at the log start if the checkpoint does not name this log."""
    if checkpointed is None or not log_start_offset <= checkpointed <= log_end_offset:
        return log_start_offset
    return checkpointed


def clean_range(
    facts: LogFacts, checkpointed: int | None, policy: CleaningPolicy, now_ms: int
) -> CleanRange:
    first_dirty = first_dirty_offset(
        checkpointed,
        log_start_offset=facts.log_start_offset,
        log_end_offset=facts.log_end_offset,
    )
    closed, active = facts.segments[:-1], facts.segments[-1]
    dirty = [
        segment
        for segment, following in zip(closed, facts.segments[1:], strict=True)
        if following.base_offset > first_dirty
    ]
    bound = min(facts.last_stable_offset, active.base_offset)
    if policy.min_compaction_lag_ms > 0:
        young_ms = now_ms - policy.min_compaction_lag_ms
        bound = min(
            [bound] + [s.base_offset for s in dirty if s.largest_timestamp > young_ms],
        )
    bound = max(bound, first_dirty)
    # A segment is cleaned as a whole or not at all.
    upper = active.base_offset
    for segment, following in zip(closed, facts.segments[1:], strict=True):
        if following.base_offset > bound:
            upper = segment.base_offset
            break
    return CleanRange(
        first_dirty,
        upper,
        sum(segment.size for segment in closed if segment.base_offset < first_dirty),
        sum(segment.size for segment in dirty if segment.base_offset < upper),
        _is_overdue(dirty, policy, now_ms),
    )


def _is_overdue(dirty: Sequence[SegmentFacts], policy: CleaningPolicy, now_ms: int) -> bool:
    if policy.max_compaction_lag_ms >= NEVER_MS:
        return False
    known = [segment.first_timestamp for segment in dirty if segment.first_timestamp > 0]
    return bool(known) and min(known) < now_ms - policy.max_compaction_lag_ms


def filthiest(
    candidates: Iterable[tuple[Key, CleanRange, CleaningPolicy]],
) -> tuple[Key, CleanRange] | None:
    """The log with the greatest share of dirty bytes among those that are due."""
    best: tuple[Key, CleanRange] | None = None
    for key, candidate, policy in candidates:
        if candidate.is_due(policy) and (
            best is None or candidate.dirty_ratio > best[1].dirty_ratio
        ):
            best = key, candidate
    return best


class SourceSegment(NamedTuple):
    """A closed segment to be read; `next_offset` is the base of the one after it."""

    base_offset: int
    next_offset: int
    size: int
    index_size: int
    time_index_size: int


def group_segments(
    segments: Sequence[SourceSegment], *, segment_bytes: int, segment_index_bytes: int
) -> list[list[SourceSegment]]:
    """Neighbours that together fit into one new segment even if nothing were removed."""
    groups: list[list[SourceSegment]] = []
    size = index_size = time_index_size = 0
    for segment in segments:
        size += segment.size
        index_size += segment.index_size
        time_index_size += segment.time_index_size
        if (
            groups
            and size <= segment_bytes
            and index_size <= segment_index_bytes
            and time_index_size <= segment_index_bytes
            # An empty segment has no offset that could be too far from the base.
            and (
                segment.size == 0
                or segment.next_offset - 1 - groups[-1][0].base_offset <= RELATIVE_OFFSET_MAX
            )
        ):
            groups[-1].append(segment)
            continue
        groups.append([segment])
        size, index_size, time_index_size = (
            segment.size,
            segment.index_size,
            segment.time_index_size,
        )
    return groups
