"""Which segments go: tables for the rule, then a log that obeys it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from moldau.broker.log.machine.retention import Retention, SegmentFacts, deletable_count
from moldau.wire.errors import ApiError, ErrorCode
from support.log_folder import NOW_MS, LogFolder, append, read_all, values_of

# Four segments of 100 bytes with ten offsets each, ten milliseconds apart; the last is active.
SEGMENTS = [
    SegmentFacts(0, 10, 100, 1000),
    SegmentFacts(10, 20, 100, 1010),
    SegmentFacts(20, 30, 100, 1020),
    SegmentFacts(30, None, 100, 1030),
]
OFF = Retention(-1, -1, True)


@pytest.mark.parametrize(
    ("retention", "log_start", "high_watermark", "now_ms", "count"),
    [
        pytest.param(OFF, 0, 40, 9999, 0, id="no limits"),
        pytest.param(OFF, 9, 40, 9999, 0, id="log start inside"),
        pytest.param(OFF, 10, 40, 9999, 1, id="log start at the next"),
        pytest.param(OFF, 29, 40, 9999, 2, id="log start later"),
        pytest.param(OFF, 40, 40, 9999, 3, id="never the active one by log start"),
        pytest.param(Retention(-1, -1, False), 20, 40, 9999, 2, id="log start even if compacted"),
        pytest.param(Retention(5, 0, False), 0, 40, 9999, 0, id="compacted keeps the rest"),
        pytest.param(Retention(100, -1, True), 0, 40, 1100, 0, id="just as old as allowed"),
        pytest.param(Retention(100, -1, True), 0, 40, 1101, 1, id="one too old"),
        pytest.param(Retention(100, -1, True), 0, 40, 1121, 3, id="three too old"),
        pytest.param(Retention(100, -1, True), 0, 40, 2000, 4, id="all too old"),
        pytest.param(Retention(100, -1, True), 0, 25, 2000, 2, id="not past the high watermark"),
        pytest.param(Retention(100, -1, True), 0, 39, 2000, 3, id="nor the active one"),
        pytest.param(Retention(0, -1, True), 0, 40, 1000, 0, id="no time has passed"),
        pytest.param(Retention(-1, 400, True), 0, 40, 0, 0, id="just large enough"),
        pytest.param(Retention(-1, 301, True), 0, 40, 0, 0, id="one segment more would be less"),
        pytest.param(Retention(-1, 300, True), 0, 40, 0, 1, id="one too many"),
        pytest.param(Retention(-1, 150, True), 0, 40, 0, 2, id="two too many"),
        pytest.param(Retention(-1, 0, True), 0, 40, 0, 4, id="none allowed"),
        pytest.param(Retention(-1, 0, True), 0, 20, 0, 2, id="size not past the watermark"),
        pytest.param(Retention(-1, 300, True), 10, 40, 0, 1, id="log start counts first"),
        pytest.param(Retention(100, 300, True), 10, 40, 1121, 3, id="all reasons together"),
    ],
)
def test_deletable_segments(
    retention: Retention, log_start: int, high_watermark: int, now_ms: int, count: int
) -> None:
    assert (
        deletable_count(
            SEGMENTS,
            retention,
            log_start_offset=log_start,
            log_end_offset=40,
            high_watermark=high_watermark,
            now_ms=now_ms,
        )
        == count
    )


def test_an_empty_active_segment_stays() -> None:
    segments = [SEGMENTS[0], SegmentFacts(10, None, 0, 0)]
    count = deletable_count(
        segments,
        Retention(100, 0, True),
        log_start_offset=0,
        log_end_offset=10,
        high_watermark=10,
        now_ms=9999,
    )
    assert count == 1


def test_time_retention_moves_the_log_start(make_folder: Callable[..., LogFolder]) -> None:
    folder = make_folder(segment_bytes=300, retention_ms=1000)
    log = folder.open()
    for number in range(10):
        append(log, b"x" * 100, timestamp=NOW_MS + number * 100)
    before = len(log.segments)
    removed = log.delete_old_segments(NOW_MS + 1450)
    assert removed > 0
    assert len(log.segments) == before - removed
    assert log.log_start_offset == log.segments.first.base_offset
    assert [offset for offset, _ in values_of(read_all(log))] == list(
        range(log.log_start_offset, 10)
    )
    with pytest.raises(ApiError) as caught:
        log.read(log.log_start_offset - 1, 1, upper_offset=10, min_one_batch=True)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_when_everything_is_too_old_the_active_segment_rolls_away(
    make_folder: Callable[..., LogFolder],
) -> None:
    folder = make_folder(segment_bytes=300, retention_ms=1000)
    log = folder.open()
    for _ in range(5):
        append(log, b"x" * 100)
    log.delete_old_segments(NOW_MS + 5000)
    assert (log.log_start_offset, log.log_end_offset, log.size) == (5, 5, 0)
    assert log.delete_old_segments(NOW_MS + 9000) == 0
    assert append(log, b"next") == 5
    assert folder.crash().log_start_offset == 5


def test_unreplicated_segments_stay(make_folder: Callable[..., LogFolder]) -> None:
    folder = make_folder(segment_bytes=300, retention_bytes=0, retention_ms=-1)
    log = folder.open()
    for _ in range(6):
        append(log, b"x" * 100)
    log.set_high_watermark(log.segments[1].base_offset)
    assert log.delete_old_segments(NOW_MS) == 1


def test_files_are_set_aside_before_they_are_removed(
    make_folder: Callable[..., LogFolder],
) -> None:
    folder = make_folder(
        segment_bytes=300, retention_bytes=0, retention_ms=-1, file_delete_delay_ms=7
    )
    scheduled: list[tuple[list[str], int]] = []
    folder.context.schedule_removal = lambda paths, delay: scheduled.append((paths, delay))
    log = folder.open()
    append(log, b"x" * 100)
    view = log.read(0, 1000, upper_offset=1, min_one_batch=True).buffers[0]
    before = bytes(view)
    log.delete_old_segments(NOW_MS)
    ((paths, delay),) = scheduled
    assert delay == 7
    assert sorted(paths) == sorted(str(folder.path / n) for n in folder.files(".deleted"))
    assert len(paths) == 3
    assert bytes(view) == before
    folder.crash(log_start_offset=1)
    assert folder.files(".deleted") == []


def test_delete_records(folder: LogFolder) -> None:
    log = folder.open()
    for _ in range(10):
        append(log, b"x" * 200, b"y" * 200)
    with pytest.raises(ApiError) as caught:
        log.advance_log_start_offset(21)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.advance_log_start_offset(7)
    assert not log.advance_log_start_offset(3)
    assert log.log_start_offset == 7
    # The batch that holds offset 7 begins below it; clients skip what they did not ask for.
    first = log.read(7, 1, upper_offset=20, min_one_batch=True).buffers[0]
    assert int.from_bytes(first[:8], "big") == 6
    assert log.delete_old_segments(NOW_MS) > 0
    assert log.segments.first.base_offset <= 7
    assert folder.crash(log_start_offset=7).log_start_offset == 7
