"""Appending, rolling, reading and the watermarks of one log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from moldau.broker.config import LogConfig
from moldau.broker.log.context import AppendOrigin
from moldau.broker.log.log import Log
from moldau.broker.log.machine.leader_epochs import LeaderEpochs
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.records import Compression, encode_end_txn_marker, read_header
from support.log_folder import NOW_MS, LogFolder, append, batch_of, read_all, values_of


def test_appended_batches_get_consecutive_offsets(folder: LogFolder) -> None:
    log = folder.open()
    assert append(log, b"a", b"b") == 0
    info = log.append_as_leader(batch_of(b"c"), leader_epoch=3, now_ms=NOW_MS)
    assert (info.base_offset, info.last_offset, info.duplicate) == (2, 2, False)
    assert info.log_append_time_ms == -1
    assert log.log_end_offset == 3
    assert log.latest_epoch == 3


def test_log_append_time_is_told(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path, LogConfig(message_timestamp_type="LogAppendTime"))
    log = folder.open()
    info = log.append_as_leader(batch_of(b"a", timestamp=5), leader_epoch=0, now_ms=NOW_MS)
    assert info.log_append_time_ms == NOW_MS
    log.set_high_watermark(1)
    assert read_all(log)[0].timestamp == NOW_MS


def test_a_refused_batch_changes_nothing(folder: LogFolder) -> None:
    log = folder.open()
    append(log, b"a")
    before = log.size
    damaged = batch_of(b"b")
    damaged[-1] ^= 1
    with pytest.raises(ApiError) as caught:
        log.append_as_leader(damaged, leader_epoch=0, now_ms=NOW_MS)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    with pytest.raises(ApiError) as caught:
        log.append_as_leader(batch_of(b"x" * 1200), leader_epoch=0, now_ms=NOW_MS)
    assert caught.value.code == ErrorCode.RECORD_LIST_TOO_LARGE
    assert (log.size, log.log_end_offset, len(log.segments)) == (before, 1, 1)


class TestRoll:
    def test_by_size(self, make_folder: Callable[..., LogFolder]) -> None:
        size = len(batch_of(b"x" * 100))
        log = make_folder(segment_bytes=2 * size).open()
        for _ in range(5):
            append(log, b"x" * 100)
        assert [s.base_offset for s in log.segments] == [0, 2, 4]

    def test_by_the_records_clock(self, make_folder: Callable[..., LogFolder]) -> None:
        log = make_folder(segment_ms=100).open()
        for timestamp in (0, 100, 101, 150, 202):
            append(log, b"x", timestamp=NOW_MS + timestamp)
        # 101 is more than 100 after the first; 202 more than 100 after 101.
        assert [s.base_offset for s in log.segments] == [0, 2, 4]

    def test_by_our_clock_without_timestamps(self, make_folder: Callable[..., LogFolder]) -> None:
        log = make_folder(segment_ms=100).open()
        for now_ms in (NOW_MS, NOW_MS + 100, NOW_MS + 101):
            log.append_as_leader(batch_of(b"x", timestamp=-1), leader_epoch=0, now_ms=now_ms)
        assert [s.base_offset for s in log.segments] == [0, 2]

    def test_jitter_brings_it_forward(self, make_folder: Callable[..., LogFolder]) -> None:
        folder = make_folder(segment_ms=100, segment_jitter_ms=50)
        folder.context.jitter = lambda most: most - 10
        log = folder.open()
        append(log, b"x", timestamp=NOW_MS)
        append(log, b"x", timestamp=NOW_MS + 61)
        assert len(log.segments) == 2

    def test_by_a_full_index(self, make_folder: Callable[..., LogFolder]) -> None:
        log = make_folder(segment_index_bytes=24, index_interval_bytes=0).open()
        for _ in range(8):
            append(log, b"x")
        # Two places in the time index, one of them kept for the roll.
        assert len(log.segments) > 2
        assert values_of(read_all(log)) == [(offset, b"x") for offset in range(8)]

    def test_by_relative_offset(self, folder: LogFolder) -> None:
        log = folder.open()
        append(log, b"x")
        far = batch_of(b"y", base_offset=2**31, partition_leader_epoch=0)
        log.append_as_follower(memoryview(far), now_ms=NOW_MS)
        assert [s.base_offset for s in log.segments] == [0, 2**31]

    def test_closed_segments_have_whole_indexes_and_a_snapshot(
        self, make_folder: Callable[..., LogFolder]
    ) -> None:
        folder = make_folder(index_interval_bytes=0)
        log = folder.open()
        for _ in range(3):
            append(log, b"x")
        log.roll(NOW_MS)
        indexes = [(folder.path / n).stat().st_size for n in folder.files(".index")]
        assert indexes == [2 * 8, 0]
        assert [n[:20] for n in folder.files(".snapshot")] == [f"{3:020d}"]
        assert log.recovery_point == 3  # the closed segment has been flushed


class TestRead:
    @pytest.fixture
    def log(self, make_folder: Callable[..., LogFolder]) -> Log:
        log = make_folder(segment_bytes=600, index_interval_bytes=100).open()
        for number in range(20):
            append(log, b"%03d" % number * 10, b"second")
        return log

    def test_begins_with_the_batch_that_holds_the_offset(self, log: Log) -> None:
        for offset in range(40):
            result = log.read(offset, 10_000, upper_offset=40, min_one_batch=True)
            assert read_header(result.buffers[0]).base_offset == offset - offset % 2
            assert result.size == sum(len(buffer) for buffer in result.buffers)

    def test_at_the_end_there_is_nothing(self, log: Log) -> None:
        assert log.read(40, 1000, upper_offset=40, min_one_batch=True).size == 0

    @pytest.mark.parametrize("offset", [-1, 41, 1000])
    def test_out_of_range(self, log: Log, offset: int) -> None:
        with pytest.raises(ApiError) as caught:
            log.read(offset, 1000, upper_offset=40, min_one_batch=True)
        assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE

    def test_one_batch_at_least_but_only_if_asked(self, log: Log) -> None:
        size = log.read(0, 1, upper_offset=40, min_one_batch=True).size
        assert (
            size == read_header(log.read(0, 1, upper_offset=40, min_one_batch=True).buffers[0]).size
        )
        assert log.read(0, 0, upper_offset=40, min_one_batch=False).size == 0
        cut = log.read(0, size - 1, upper_offset=40, min_one_batch=False)
        assert (cut.size, cut.first_batch_incomplete) == (size - 1, True)

    @pytest.mark.parametrize("upper", range(41))
    def test_nothing_at_or_beyond_the_upper_offset(self, log: Log, upper: int) -> None:
        last = -1
        offset = 0
        while offset < upper:
            result = log.read(offset, 10_000, upper_offset=upper, min_one_batch=True)
            if not result.buffers:
                break
            position = 0
            data = result.buffers[0]
            while position < len(data):
                header = read_header(data, position)
                last = header.last_offset
                position += header.size
            offset = last + 1
        assert last == upper - 1 - upper % 2

    def test_views_survive_truncation_and_closing(
        self, make_folder: Callable[..., LogFolder]
    ) -> None:
        folder = make_folder()
        log = folder.open()
        append(log, b"a" * 500_000)
        append(log, b"b" * 500_000)
        view = log.read(0, 2_000_000, upper_offset=2, min_one_batch=True).buffers[0]
        before = bytes(view)
        log.truncate_to(1, now_ms=NOW_MS)
        assert bytes(view) == before
        append(log, b"c" * 500_000)
        assert bytes(view) == before
        assert values_of(read_all(log, max_bytes=10**7)) == [
            (0, b"a" * 500_000),
            (1, b"c" * 500_000),
        ]
        log.close()
        assert bytes(view) == before
        folder.log = None


class TestTimestamps:
    @pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
    def test_the_first_record_at_or_after(
        self, make_folder: Callable[..., LogFolder], codec: Compression
    ) -> None:
        log = make_folder(segment_bytes=500, index_interval_bytes=0).open()
        for number in range(10):
            append(
                log,
                b"a" * 40,
                b"b" * 40,
                b"c" * 40,
                timestamp=NOW_MS + number * 10,
                compression=codec,
            )
        for number in range(10):
            for record in range(3):
                found = log.offset_for_timestamp(NOW_MS + number * 10 + record)
                assert found is not None
                assert (found.offset, found.timestamp) == (
                    3 * number + record, NOW_MS + number * 10 + record,
                )  # fmt: skip
            assert log.offset_for_timestamp(NOW_MS + number * 10 + 3) == (
                None if number == 9 else (NOW_MS + number * 10 + 10, 3 * number + 3, 0)
            )
        newest = log.offset_of_max_timestamp()
        assert newest is not None
        assert (newest.offset, newest.timestamp) == (29, NOW_MS + 92)

    def test_out_of_order_timestamps(self, folder: LogFolder) -> None:
        log = folder.open()
        for timestamp in (50, 10, 70, 20, 60):
            append(log, b"x" * 300, timestamp=NOW_MS + timestamp)
        found = {t: log.offset_for_timestamp(NOW_MS + t) for t in (5, 50, 51, 70, 71)}
        assert {t: None if f is None else f.offset for t, f in found.items()} == {
            5: 0, 50: 0, 51: 2, 70: 2, 71: None,
        }  # fmt: skip
        newest = log.offset_of_max_timestamp()
        assert newest is not None
        assert newest.offset == 2

    def test_deleted_records_are_not_found(self, folder: LogFolder) -> None:
        log = folder.open()
        append(log, b"a", b"b", b"c")
        log.advance_log_start_offset(2)
        found = log.offset_for_timestamp(NOW_MS)
        assert found is not None
        assert found.offset == 2

    def test_an_empty_log_has_none(self, folder: LogFolder) -> None:
        log = folder.open()
        assert log.offset_of_max_timestamp() is None
        assert log.offset_for_timestamp(0) is None


class TestWatermarks:
    def test_the_high_watermark_stays_within_the_log(self, folder: LogFolder) -> None:
        log = folder.open()
        append(log, b"a", b"b", b"c")
        assert log.set_high_watermark(99) == 3
        log.advance_log_start_offset(2)
        assert log.set_high_watermark(0) == 2

    def test_last_stable_offset(self, folder: LogFolder) -> None:
        log = folder.open()
        append(log, b"a")
        append(log, b"t", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
        append(log, b"b")
        assert (log.high_watermark, log.last_stable_offset) == (3, 1)
        log.set_high_watermark(1)
        assert log.last_stable_offset == 1
        marker = encode_end_txn_marker(
            producer_id=1, producer_epoch=0, committed=True, coordinator_epoch=0, timestamp=NOW_MS
        )
        log.append_as_leader(
            bytearray(marker), leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
        )
        log.set_high_watermark(3)
        assert log.last_stable_offset == 1  # the marker itself is not committed yet
        log.set_high_watermark(4)
        assert log.last_stable_offset == 4
        assert log.aborted_transactions(0, 4) == []

    def test_fenced_markers_are_refused(self, folder: LogFolder) -> None:
        log = folder.open()
        append(log, b"t", producer_id=1, producer_epoch=5, base_sequence=0, is_transactional=True)
        marker = encode_end_txn_marker(
            producer_id=1, producer_epoch=4, committed=True, coordinator_epoch=0, timestamp=NOW_MS
        )
        with pytest.raises(ApiError) as caught:
            log.append_as_leader(
                bytearray(marker), leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
            )
        assert caught.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
        assert log.log_end_offset == 1


class TestFollower:
    def test_copies_batches_as_they_are(self, tmp_path: Path) -> None:
        leader = LogFolder(tmp_path / "leader")
        follower = LogFolder(tmp_path / "follower")
        for folder in (leader, follower):
            folder.root.mkdir()
        log, copy = leader.open(), follower.open()
        for epoch in range(10):
            append(log, b"x" * 100, leader_epoch=epoch)
        while copy.log_end_offset < log.log_end_offset:
            result = log.read(
                copy.log_end_offset, 500, upper_offset=log.log_end_offset, min_one_batch=True
            )
            for buffer in result.buffers:
                copy.append_as_follower(buffer, now_ms=NOW_MS)
        assert copy.leader_epochs.entries() == log.leader_epochs.entries()
        for name in leader.files(".log"):
            assert (follower.path / name).read_bytes() == (leader.path / name).read_bytes()

    def test_refuses_what_does_not_continue_the_log(self, folder: LogFolder) -> None:
        log = folder.open()
        append(log, b"a", b"b")
        with pytest.raises(ApiError) as caught:
            log.append_as_follower(memoryview(batch_of(b"x", base_offset=1)), now_ms=NOW_MS)
        assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
        damaged = batch_of(b"x", base_offset=2)
        damaged[-1] ^= 1
        with pytest.raises(ApiError) as caught:
            log.append_as_follower(memoryview(damaged), now_ms=NOW_MS)
        assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
        assert log.log_end_offset == 2

    def test_takes_gaps_left_by_compaction(self, folder: LogFolder) -> None:
        log = folder.open()
        log.append_as_follower(memoryview(batch_of(b"x", base_offset=7)), now_ms=NOW_MS)
        log.append_as_follower(memoryview(batch_of(b"y", base_offset=12)), now_ms=NOW_MS)
        assert log.log_end_offset == 13
        assert values_of(read_all(log)) == [(7, b"x"), (12, b"y")]


class TestLeaderEpochs:
    EPOCHS = ((1, 0), (3, 10), (4, 25))

    @pytest.mark.parametrize(
        ("epoch", "expected"),
        [
            (-1, (-1, -1)),
            (0, (0, 0)),
            (1, (1, 10)),
            (2, (1, 10)),
            (3, (3, 25)),
            (4, (4, 40)),
            (5, (-1, -1)),
        ],
    )
    def test_end_offsets(self, epoch: int, expected: tuple[int, int]) -> None:
        assert LeaderEpochs(self.EPOCHS).end_offset_for(epoch, 40) == expected

    @pytest.mark.parametrize(
        ("offset", "expected"),
        [(0, []), (1, [(1, 0)]), (10, [(1, 0)]), (11, [(1, 0), (3, 10)]), (99, list(EPOCHS))],
    )
    def test_truncation_at_the_end(self, offset: int, expected: list[tuple[int, int]]) -> None:
        epochs = LeaderEpochs(self.EPOCHS)
        assert epochs.truncate_from_end(offset) == (expected != list(self.EPOCHS))
        assert epochs.entries() == expected
        assert epochs.latest_epoch == (expected[-1][0] if expected else -1)

    @pytest.mark.parametrize(
        ("offset", "expected"),
        [
            (0, list(EPOCHS)),
            (5, [(1, 5), (3, 10), (4, 25)]),
            (10, [(3, 10), (4, 25)]),
            (30, [(4, 30)]),
        ],
    )
    def test_truncation_at_the_start(self, offset: int, expected: list[tuple[int, int]]) -> None:
        epochs = LeaderEpochs(self.EPOCHS)
        assert epochs.truncate_from_start(offset) == (expected != list(self.EPOCHS))
        assert epochs.entries() == expected

    def test_a_contradicting_history_is_replaced(self) -> None:
        epochs = LeaderEpochs(self.EPOCHS)
        assert not epochs.assign(4, 30)
        assert epochs.assign(5, 12)
        assert epochs.entries() == [(1, 0), (3, 10), (5, 12)]
        assert epochs.assign(2, 50)
        assert epochs.entries() == [(1, 0), (2, 50)]


class TestIdempotence:
    def append(self, log: Log, sequence: int, epoch: int = 0) -> tuple[int, bool]:
        info = log.append_as_leader(
            batch_of(b"v", producer_id=3, producer_epoch=epoch, base_sequence=sequence),
            leader_epoch=0,
            now_ms=NOW_MS,
        )
        return info.base_offset, info.duplicate

    def test_a_repeated_batch_is_answered_as_the_first_time(self, folder: LogFolder) -> None:
        log = folder.open()
        for sequence in range(7):
            assert self.append(log, sequence) == (sequence, False)
        assert self.append(log, 2) == (2, True)
        assert log.log_end_offset == 7
        with pytest.raises(ApiError) as caught:
            self.append(log, 1)
        assert caught.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        with pytest.raises(ApiError) as caught:
            self.append(log, 9)
        assert caught.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert self.append(log, 0, epoch=1) == (7, False)
        with pytest.raises(ApiError) as caught:
            self.append(log, 7, epoch=0)
        assert caught.value.code == ErrorCode.INVALID_PRODUCER_EPOCH

    def test_truncation_forgets_what_was_cut(self, folder: LogFolder) -> None:
        log = folder.open()
        for sequence in range(12):
            self.append(log, sequence)
        log.truncate_to(5, now_ms=NOW_MS)
        assert self.append(log, 4) == (4, True)
        assert self.append(log, 5) == (5, False)
