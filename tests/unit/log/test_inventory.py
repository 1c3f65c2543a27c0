"""A clean stop records what the next start would otherwise look for in every log's files."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.broker.config import LogConfig
from moldau.broker.log.background import InlineBackground
from moldau.broker.log.disk import OsDisk
from moldau.broker.log.log import AppendOrigin, Log
from moldau.broker.log.machine.inventory import VERSION
from moldau.broker.log.machine.names import CLEAN_SHUTDOWN_FILE, INVENTORY_FILE
from moldau.broker.log.machine.producer_state import encode_snapshot
from moldau.broker.log.manager import LogManager
from moldau.broker.log.waiting_log import WaitingLog
from moldau.wire.records import encode_end_txn_marker
from support.log_folder import NOW_MS, append, batch_of, read_all, values_of

CONFIG = LogConfig(segment_bytes=2000, index_interval_bytes=100, file_delete_delay_ms=0)


class CountingDisk(OsDisk):
    """Remembers which files were read as a whole or opened, and which directories were listed."""

    def __init__(self) -> None:
        super().__init__()
        self.used: list[str] = []
        self.scanned: list[str] = []

    def read_bytes(self, path: str) -> bytes:
        self.used.append(path)
        return super().read_bytes(path)

    def scan_files(self, path: str) -> dict[str, int]:
        self.scanned.append(path)
        return super().scan_files(path)

    def note_open(self, file: Any) -> None:
        self.used.append(file.path)
        super().note_open(file)


def started(path: Path, disk: OsDisk | None = None, *, config: LogConfig = CONFIG) -> LogManager:
    manager = LogManager(
        [str(path)],
        disk=disk or OsDisk(),
        background=InlineBackground(),
        now_ms=lambda: NOW_MS,
        random_bytes=os.urandom,
    )
    manager.open_dirs()
    manager.load(lambda topic: config)
    return manager


def log_of(manager: LogManager, index: int = 0) -> Log:
    log = manager.get_log("topic", index)
    assert log is not None
    return log


def state_of(log: Log) -> dict[str, Any]:
    return {
        "offsets": (log.log_start_offset, log.high_watermark, log.log_end_offset),
        "recovery point": log.recovery_point,
        "epochs": log.leader_epochs.entries(),
        "topic id": log.topic_id,
        "producers": (
            encode_snapshot(log.producers.entries.values()),
            log.producers.map_end_offset,
        ),
        "unstable": log.producers.first_unstable_offset,
        "snapshots": log.snapshots.offsets,
        "durable": not log.needs_sync,
        "aborted": log.aborted_transactions(0, log.log_end_offset),
        "records": values_of(read_all(log)),
        "newest": log.offset_of_max_timestamp(),
        "segments": [
            (
                segment.base_offset,
                segment.size,
                segment.offset_index.last_entry,
                segment.offset_index.entry_count,
                segment.time_index.last_entry,
                segment.time_index.entry_count,
                segment.max_timestamp,
                segment.max_timestamp_offset,
            )
            for segment in log.segments
        ],
    }


def fill_plain(log: Log) -> None:
    for number in range(40):
        append(log, b"%04d" % number, leader_epoch=number // 15, timestamp=NOW_MS + number)


def fill_old(log: Log) -> None:
    """Epochs and log start move on, the newest timestamp is not the last."""
    fill_plain(log)
    append(log, b"newest", leader_epoch=5, timestamp=NOW_MS + 10_000)
    append(log, b"last", leader_epoch=7)
    log.advance_log_start_offset(25)


def fill_transactional(log: Log) -> None:
    for sequence, epoch in enumerate((0, 0, 1)):
        batch = batch_of(
            b"x", producer_id=7, producer_epoch=0, base_sequence=sequence, is_transactional=True
        )
        log.append_as_leader(batch, leader_epoch=epoch, now_ms=NOW_MS)
    marker = encode_end_txn_marker(
        producer_id=7, producer_epoch=0, committed=False, coordinator_epoch=0, timestamp=NOW_MS
    )
    log.append_as_leader(
        bytearray(marker), leader_epoch=1, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
    )
    batch = batch_of(b"y", producer_id=8, producer_epoch=2, base_sequence=0, is_transactional=True)
    log.append_as_leader(batch, leader_epoch=1, now_ms=NOW_MS)
    log.set_high_watermark(log.log_end_offset)


def fill_nothing(log: Log) -> None:
    log.assign_epoch(3, 0)


@pytest.mark.parametrize("fill", [fill_nothing, fill_plain, fill_old, fill_transactional])
def test_a_start_with_the_inventory_finds_what_one_without_it_finds(
    tmp_path: Path, fill: Callable[[Log], None]
) -> None:
    manager = started(tmp_path)
    fill(manager.create_log("topic", 0, CONFIG, topic_id=uuid.UUID(int=9)))
    manager.close()
    disk = CountingDisk()
    with_inventory = started(tmp_path, disk)
    log = log_of(with_inventory)
    assert [path for path in disk.used if path.endswith((".log", "index", "metadata"))] == []
    found = state_of(log)
    with_inventory.close()
    (tmp_path / INVENTORY_FILE).unlink()
    log = log_of(started(tmp_path))
    assert found == state_of(log)


@pytest.mark.parametrize("fill", [fill_nothing, fill_plain, fill_old, fill_transactional])
def test_a_stop_lists_only_the_directories_with_files_that_may_be_on_their_way_out(
    tmp_path: Path, fill: Callable[[Log], None]
) -> None:
    manager = started(tmp_path)
    for index in range(3):
        fill(manager.create_log("topic", index, CONFIG))
    manager.close()
    for _ in range(2):
        disk = CountingDisk()
        manager = started(tmp_path, disk)
        log_of(manager, 0).assign_epoch(20, log_of(manager, 0).log_end_offset)
        append(log_of(manager, 1), b"more", leader_epoch=20)
        log_of(manager, 2).truncate_fully_and_start_at(7, now_ms=NOW_MS)
        disk.scanned.clear()
        manager.close()
        assert disk.scanned == [str(tmp_path / "topic-2")]


def test_what_has_changed_since_is_looked_at(tmp_path: Path) -> None:
    manager = started(tmp_path)
    for index in range(3):
        fill_plain(manager.create_log("topic", index, CONFIG))
    manager.close()
    (tmp_path / "topic-0" / f"{0:020d}.index").unlink()
    last = sorted((tmp_path / "topic-1").glob("*.log"))[-1]
    last.write_bytes(b"")
    manager = started(tmp_path)
    rebuilt, shorter, same = (log_of(manager, index) for index in range(3))
    assert (tmp_path / "topic-0" / f"{0:020d}.index").exists()
    assert len(read_all(rebuilt)) == len(read_all(same)) == 40
    assert shorter.log_end_offset == int(last.stem)


def test_an_inventory_counts_only_with_its_own_mark(tmp_path: Path) -> None:
    """Another broker may have used the directory and left files of the same sizes."""
    manager = started(tmp_path)
    append(manager.create_log("topic", 0, CONFIG), b"x", leader_epoch=1)
    manager.close()
    (tmp_path / "topic-0" / "leader-epoch-checkpoint").write_text("0\n1\n2 0\n")
    os.utime(tmp_path / CLEAN_SHUTDOWN_FILE, ns=(0, 0))
    log = log_of(started(tmp_path))
    assert log.leader_epochs.entries() == [(2, 0)]


@pytest.mark.parametrize("content", [b"", b"0 1\n{}", b"%d 0\n" % (VERSION + 1), b"\xff" * 100])
def test_a_damaged_inventory_is_ignored(tmp_path: Path, content: bytes) -> None:
    manager = started(tmp_path)
    fill_plain(manager.create_log("topic", 0, CONFIG))
    manager.close()
    (tmp_path / INVENTORY_FILE).write_bytes(content)
    log = log_of(started(tmp_path))
    assert len(read_all(log)) == 40


def test_after_a_kill_only_the_logs_that_were_changed_are_recovered(tmp_path: Path) -> None:
    manager = started(tmp_path)
    for index in range(5):
        append(manager.create_log("topic", index, CONFIG, topic_id=uuid.UUID(int=9)), b"before")
        # As if some time passed until the next start.
        os.utime(tmp_path / f"topic-{index}" / f"{0:020d}.log", ns=(0, 0))
    manager.close()
    manager = started(tmp_path)
    append(log_of(manager, 1), b"after", leader_epoch=0)
    log_of(manager, 2).truncate_to(0, now_ms=NOW_MS)
    append(log_of(manager, 2), b"behind", leader_epoch=0)
    manager.unlock()
    # As a Kafka that was killed leaves it.
    os.truncate(tmp_path / "topic-3" / f"{0:020d}.index", 1_000)
    # A batch that was written in part.
    with (tmp_path / "topic-4" / f"{0:020d}.log").open("ab") as torn:
        torn.write(b"\0" * 70)
    disk = CountingDisk()
    manager = started(tmp_path, disk)
    assert {path.split("/")[-2] for path in disk.used if path.endswith(".log")} == {
        f"topic-{index}" for index in (1, 2, 3, 4)
    }
    untouched = log_of(manager, 0)
    assert (untouched.topic_id, untouched.needs_sync) == (uuid.UUID(int=9), False)
    found = [[value for _, value in values_of(read_all(log_of(manager, i)))] for i in range(5)]
    assert found == [[b"before"], [b"before", b"after"], [b"behind"], [b"before"], [b"before"]]


def test_an_inventory_holds_for_several_kills_in_a_row(tmp_path: Path) -> None:
    manager = started(tmp_path)
    for index in range(2):
        fill_plain(manager.create_log("topic", index, CONFIG))
    manager.close()
    expected = None
    for _ in range(3):
        manager = started(tmp_path)
        state = state_of(log_of(manager, 0))
        assert state == (expected or state)
        expected = state
        append(log_of(manager, 1), b"more", leader_epoch=20)
        manager.unlock()
    assert len(read_all(log_of(started(tmp_path), 1))) == 43


def test_files_that_wait_for_their_removal_are_removed_after_a_start(tmp_path: Path) -> None:
    manager = started(tmp_path)
    fill_plain(manager.create_log("topic", 0, CONFIG))
    manager.close()
    manager = started(tmp_path)
    leftover = tmp_path / "topic-0" / f"{99:020d}.log.deleted"
    leftover.write_bytes(b"x")
    manager.close()
    started(tmp_path)
    assert not leftover.exists()


@pytest.mark.parametrize("fill", [fill_nothing, fill_plain, fill_old, fill_transactional])
def test_a_log_that_is_not_used_stays_as_the_stop_has_left_it(
    tmp_path: Path, fill: Callable[[Log], None]
) -> None:
    manager = started(tmp_path)
    fill(manager.create_log("topic", 0, CONFIG, topic_id=uuid.UUID(int=9)))
    manager.close()
    expected = state_of(log_of(started(tmp_path)))
    # That process was killed; the next ones stop without having used the log.
    for _ in range(2):
        disk = CountingDisk()
        manager = started(tmp_path, disk)
        manager.checkpoint_recovery_points()
        manager.checkpoint_log_starts()
        manager.checkpoint_high_watermarks()
        (log,) = manager.known_logs()
        assert isinstance(log, WaitingLog)
        found = (log.topic_id, log.log_start_offset, log.log_end_offset, log.size)
        assert manager.describe()[0].replicas[0].size == log.size
        manager.expire_producers()
        assert log is manager.known_log("topic", 0)
        assert [path for path in disk.used if "/topic-0/" in path] == []
        manager.close()
        opened = log_of(started(tmp_path))
        assert found == (
            uuid.UUID(int=9),
            opened.log_start_offset,
            opened.log_end_offset,
            opened.size,
        )
        assert log.high_watermark == opened.high_watermark
        assert log.recovery_checkpoint == opened.recovery_checkpoint
        assert log.first_offset == opened.first_offset
    assert state_of(log_of(started(tmp_path))) == expected


def delete(manager: LogManager) -> None:
    manager.delete_log("topic", 0)


def set_aside(manager: LogManager) -> None:
    (log,) = manager.known_logs()
    manager.set_stray(log)


@pytest.mark.parametrize("remove", [delete, set_aside])
def test_a_log_that_is_not_used_can_be_removed(
    tmp_path: Path, remove: Callable[[LogManager], None]
) -> None:
    manager = started(tmp_path)
    fill_transactional(manager.create_log("topic", 0, CONFIG))
    manager.close()
    manager = started(tmp_path)
    remove(manager)
    assert manager.get_log("topic", 0) is None
    assert not (tmp_path / "topic-0").exists()
    manager.close()
    assert started(tmp_path).get_log("topic", 0) is None


def test_a_config_may_change_before_the_first_use(tmp_path: Path) -> None:
    manager = started(tmp_path)
    fill_plain(manager.create_log("topic", 0, CONFIG))
    manager.close()
    manager = started(tmp_path)
    assert manager.compacted_logs() == []
    manager.update_config("topic", LogConfig(segment_bytes=3000, cleanup_policy=("compact",)))
    (log,) = manager.known_logs()
    assert isinstance(log, WaitingLog)
    assert manager.compacted_logs() == [log_of(manager)]
    assert log_of(manager).segment_bytes == 3000


def test_only_logs_without_timed_flushes_wait(tmp_path: Path) -> None:
    manager = started(tmp_path)
    fill_plain(manager.create_log("topic", 0, CONFIG))
    manager.close()
    manager = started(tmp_path, config=LogConfig(flush_ms=1000))
    assert manager.flush_ms_min == 1000
    assert manager.known_logs() == [log_of(manager)]
