"""What a stop would write in every log is written before, while the broker has nothing to do."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from moldau.broker.config import LogConfig
from moldau.broker.log.background import InlineBackground
from moldau.broker.log.disk import OsDisk
from moldau.broker.log.machine.names import LEADER_EPOCH_CHECKPOINT
from moldau.broker.log.manager import SMALL_FILES_PER_TURN, LogManager
from moldau.wire.constants import Buffer
from support.log_folder import NOW_MS, append, read_all, values_of

CONFIG = LogConfig()


class FailingDisk(OsDisk):
    """Has no room for new files in a directory."""

    full = "nowhere"

    def write_new(self, path: str, data: Buffer) -> None:
        if path.startswith(self.full):
            raise OSError(errno.ENOSPC, "planted", path)
        super().write_new(path, data)


def started(*paths: Path, disk: OsDisk | None = None) -> LogManager:
    manager = LogManager(
        [str(path) for path in paths],
        disk=disk or OsDisk(),
        background=InlineBackground(),
        now_ms=lambda: NOW_MS,
        random_bytes=os.urandom,
    )
    manager.open_dirs()
    manager.load(lambda topic: CONFIG)
    return manager


def files_in(directory: Path) -> dict[str, tuple[int, int]]:
    return {
        each.name: (each.stat().st_size, each.stat().st_mtime_ns) for each in directory.iterdir()
    }


def write_ahead(manager: LogManager) -> int:
    turns = 0
    while manager.has_unwritten_files:
        manager.write_small_files()
        turns += 1
    return turns


def test_a_stop_writes_nothing_more_in_idle_logs(tmp_path: Path) -> None:
    manager = started(tmp_path)
    count = 2 * SMALL_FILES_PER_TURN
    for index in range(count):
        append(manager.create_log("topic", index, CONFIG), b"x", leader_epoch=3)
    epochs = tmp_path / "topic-7" / LEADER_EPOCH_CHECKPOINT
    assert not epochs.exists()
    assert write_ahead(manager) == 2
    assert epochs.read_text() == "0\n1\n3 0\n"
    written = files_in(tmp_path / "topic-7")
    manager.close()
    assert files_in(tmp_path / "topic-7") == written


def test_a_log_goes_on_after_its_files_were_written(tmp_path: Path) -> None:
    manager = started(tmp_path)
    log = manager.create_log("topic", 0, CONFIG)
    for epoch in range(3):
        append(log, b"%d" % epoch, leader_epoch=epoch, timestamp=NOW_MS + epoch)
        write_ahead(manager)
    manager.unlock()
    log = started(tmp_path).get_log("topic", 0)
    assert log is not None
    assert [value for _, value in values_of(read_all(log))] == [b"0", b"1", b"2"]
    assert log.leader_epochs.entries() == [(0, 0), (1, 1), (2, 2)]
    assert log.offset_of_max_timestamp() == (NOW_MS + 2, 2, 2)


def test_a_full_disk_takes_its_log_directory_offline_and_no_other(tmp_path: Path) -> None:
    disk = FailingDisk()
    manager = started(tmp_path / "a", tmp_path / "b", disk=disk)
    for index in range(4):
        append(manager.create_log("topic", index, CONFIG), b"x", leader_epoch=3)
    disk.full = str(tmp_path / "a")
    write_ahead(manager)
    assert [each.path for each in manager.offline_dirs] == [str(tmp_path / "a")]
    assert len(list((tmp_path / "b").glob(f"*/{LEADER_EPOCH_CHECKPOINT}"))) == 2


def test_a_deleted_log_has_nothing_to_write(tmp_path: Path) -> None:
    manager = started(tmp_path)
    append(manager.create_log("topic", 0, CONFIG), b"x", leader_epoch=3)
    manager.delete_log("topic", 0)
    assert not manager.has_unwritten_files
