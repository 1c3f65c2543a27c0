"""Which log is cleaned next, and which part of it."""

from __future__ import annotations

import pytest

from moldau.broker.log.cleaner.machine.schedule import (
    CleaningPolicy,
    CleanRange,
    LogFacts,
    SegmentFacts,
    SourceSegment,
    clean_range,
    filthiest,
    first_dirty_offset,
    group_segments,
)

NOW_MS = 1_000_000


@pytest.mark.parametrize(
    ("checkpointed", "expected"),
    [
        pytest.param(None, 10, id="never cleaned: from the start"),
        pytest.param(30, 30, id="goes on where it was"),
        pytest.param(10, 10, id="at the start"),
        pytest.param(9, 10, id="the log start has passed it"),
        pytest.param(50, 50, id="all clean"),
        pytest.param(51, 10, id="beyond the end, so of another log"),
    ],
)
def test_first_dirty_offset(checkpointed: int | None, expected: int) -> None:
    assert first_dirty_offset(checkpointed, log_start_offset=10, log_end_offset=50) == expected


def facts(*, stable: int = 40, start: int = 0, times: tuple[int, ...] = (1, 2, 3, 4)) -> LogFacts:
    """Segments at 0, 10, 20 and the active one at 30; the log ends at 40."""
    return LogFacts(
        start,
        40,
        stable,
        [
            SegmentFacts(base, 100, largest_timestamp=time, first_timestamp=time)
            for base, time in zip((0, 10, 20, 30), times, strict=True)
        ],
    )


@pytest.mark.parametrize(
    ("log", "checkpointed", "policy", "expected"),
    [
        pytest.param(
            facts(), None, {}, CleanRange(0, 30, 0, 300, False), id="all but the active segment"
        ),
        pytest.param(facts(), 10, {}, CleanRange(10, 30, 100, 200, False), id="goes on"),
        pytest.param(facts(), 30, {}, CleanRange(30, 30, 300, 0, False), id="all clean"),
        pytest.param(
            facts(),
            15,
            {},
            CleanRange(15, 30, 200, 200, False),
            id="a half-clean segment counts on both sides",
        ),
        pytest.param(
            facts(stable=20), None, {}, CleanRange(0, 20, 0, 200, False), id="up to the LSO"
        ),
        pytest.param(
            facts(stable=25), None, {}, CleanRange(0, 20, 0, 200, False), id="whole segments only"
        ),
        pytest.param(
            facts(stable=5), None, {}, CleanRange(0, 0, 0, 0, False), id="LSO in the first"
        ),
        pytest.param(
            facts(stable=15),
            20,
            {},
            CleanRange(20, 20, 200, 0, False),
            id="LSO below the clean part",
        ),
        pytest.param(
            facts(start=12), 3, {}, CleanRange(12, 30, 200, 200, False), id="log start moved on"
        ),
        pytest.param(
            facts(times=(1, NOW_MS - 50, 3, 4)),
            None,
            {"min_compaction_lag_ms": 100},
            CleanRange(0, 10, 0, 100, False),
            id="up to the first young segment",
        ),
        pytest.param(
            facts(times=(NOW_MS - 50, 2, 3, 4)),
            10,
            {"min_compaction_lag_ms": 100},
            CleanRange(10, 30, 100, 200, False),
            id="clean segments may be young",
        ),
        pytest.param(
            facts(times=(NOW_MS - 100, 2, 3, 4)),
            None,
            {"min_compaction_lag_ms": 100},
            CleanRange(0, 30, 0, 300, False),
            id="exactly the lag is old enough",
        ),
        pytest.param(
            facts(times=(NOW_MS - 101, NOW_MS, NOW_MS, NOW_MS)),
            None,
            {"max_compaction_lag_ms": 100},
            CleanRange(0, 30, 0, 300, True),
            id="overdue",
        ),
        pytest.param(
            facts(times=(NOW_MS - 101, NOW_MS, NOW_MS, NOW_MS)),
            10,
            {"max_compaction_lag_ms": 100},
            CleanRange(10, 30, 100, 200, False),
            id="what is clean is not overdue",
        ),
        pytest.param(
            facts(times=(-1, -1, -1, -1)),
            None,
            {"max_compaction_lag_ms": 100},
            CleanRange(0, 30, 0, 300, False),
            id="without timestamps nothing is overdue",
        ),
    ],
)
def test_clean_range(
    log: LogFacts, checkpointed: int | None, policy: dict[str, int], expected: CleanRange
) -> None:
    assert clean_range(log, checkpointed, CleaningPolicy(**policy), NOW_MS) == expected


def test_only_an_active_segment_is_nothing_to_clean() -> None:
    found = clean_range(
        LogFacts(0, 10, 10, [SegmentFacts(0, 100)]), None, CleaningPolicy(0.0), NOW_MS
    )
    assert found == CleanRange(0, 0, 0, 0, False)
    assert not found.is_due(CleaningPolicy(0.0))


def ranged(clean: int, dirty: int, overdue: bool = False) -> CleanRange:
    return CleanRange(0, 10, clean, dirty, overdue)


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        pytest.param([], None, id="no logs"),
        pytest.param([("a", ranged(50, 50), 0.5)], None, id="the ratio must be exceeded"),
        pytest.param([("a", ranged(49, 51), 0.5)], "a", id="exceeded"),
        pytest.param(
            [("a", ranged(40, 60), 0.5), ("b", ranged(30, 70), 0.5), ("c", ranged(45, 55), 0.5)],
            "b",
            id="the filthiest",
        ),
        pytest.param(
            [("a", ranged(40, 60), 0.9), ("b", ranged(80, 20), 0.1)],
            "b",
            id="each by its own ratio",
        ),
        pytest.param([("a", ranged(99, 1, True), 0.5)], "a", id="overdue counts without the ratio"),
        pytest.param([("a", ranged(99, 0, True), 0.0)], None, id="overdue but nothing cleanable"),
        pytest.param([("a", ranged(0, 0), 0.0)], None, id="empty"),
    ],
)
def test_filthiest(candidates: list[tuple[str, CleanRange, float]], expected: str | None) -> None:
    found = filthiest((key, r, CleaningPolicy(ratio)) for key, r, ratio in candidates)
    assert (found[0] if found else None) == expected


def sources(*rows: tuple[int, int, int, int], end: int) -> list[SourceSegment]:
    bases = [row[0] for row in rows] + [end]
    return [
        SourceSegment(base, bases[i + 1], size, index, time)
        for i, (base, size, index, time) in enumerate(rows)
    ]


@pytest.mark.parametrize(
    ("segments", "expected"),
    [
        pytest.param([], [], id="none"),
        pytest.param(
            sources((0, 40, 8, 12), (10, 60, 8, 12), (20, 1, 8, 12), end=30),
            [[0, 10], [20]],
            id="by size",
        ),
        pytest.param(
            sources((0, 200, 8, 12), (10, 10, 8, 12), end=20),
            [[0], [10]],
            id="one that is too large alone stays alone",
        ),
        pytest.param(
            sources((0, 1, 40, 12), (10, 1, 24, 12), (20, 1, 8, 12), end=30),
            [[0, 10], [20]],
            id="by offset index",
        ),
        pytest.param(
            sources((0, 1, 8, 36), (10, 1, 8, 24), (20, 1, 8, 12), end=30),
            [[0, 10], [20]],
            id="by time index",
        ),
        pytest.param(
            sources((0, 1, 8, 12), (10, 1, 8, 12), (2**31, 1, 8, 12), end=2**31 + 5),
            [[0, 10], [2**31]],
            id="offsets relative to the base fit 31 bits",
        ),
        pytest.param(
            sources((0, 1, 8, 12), (10, 1, 8, 12), end=2**31 + 1),
            [[0], [10]],
            id="the last offset counts, not the base",
        ),
        pytest.param(
            sources((0, 1, 8, 12), (2**31, 0, 0, 0), end=2**32),
            [[0, 2**31]],
            id="an empty one has no offsets",
        ),
    ],
)
def test_group_segments(segments: list[SourceSegment], expected: list[list[int]]) -> None:
    groups = group_segments(segments, segment_bytes=100, segment_index_bytes=64)
    assert [[segment.base_offset for segment in group] for group in groups] == expected
