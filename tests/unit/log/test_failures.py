"""A full or broken disk: the right error, nothing damaged, other folders untouched."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.broker.config import LogConfig
from moldau.broker.log.background import InlineBackground
from moldau.broker.log.context import LogContext, LogDirFailure
from moldau.broker.log.log import Log
from moldau.broker.log.log_dirs import LogDir
from moldau.broker.log.manager import LogManager
from moldau.wire.errors import ErrorCode
from support.faulty_disk import FaultyDisk
from support.log_folder import NOW_MS, LogFolder, append, batch_of, read_all, values_of


@pytest.fixture
def disk() -> FaultyDisk:
    return FaultyDisk()


@pytest.fixture
def broken(tmp_path: Path, disk: FaultyDisk) -> LogFolder:
    folder = LogFolder(
        tmp_path, LogConfig(segment_bytes=2000, index_interval_bytes=150, file_delete_delay_ms=0)
    )
    folder.context = LogContext(disk=disk)
    return folder


def append_until_failure(log: Log, value: bytes) -> tuple[int, LogDirFailure]:
    """Append under ever new leader epochs; how often that went well, and how it ended."""
    for number in range(1000):
        try:
            append(log, value, leader_epoch=number)
        except LogDirFailure as failure:
            return number, failure
    raise AssertionError("nothing failed")


@pytest.mark.parametrize(
    ("operation", "part"),
    [
        ("write", ".log"),
        ("write", ".index"),
        ("write", ".timeindex"),
        ("create", ".log"),
        ("create", ".index"),
        ("write", ".snapshot"),
        ("write", "leader-epoch"),
    ],
)
def test_a_failed_append_is_not_in_the_log(
    broken: LogFolder, disk: FaultyDisk, operation: str, part: str
) -> None:
    log = broken.open()
    appended = 0
    for _ in range(3):
        append(log, b"before" * 20)
        appended += 1
    disk.fail(operation, part)
    count, failure = append_until_failure(log, b"after" * 20)
    appended += count
    assert failure.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert str(broken.root) in failure.message
    # From now on everything is refused, reads included: the disk cannot be trusted.
    with pytest.raises(LogDirFailure):
        log.append_as_leader(batch_of(b"x"), leader_epoch=0, now_ms=NOW_MS)
    with pytest.raises(LogDirFailure):
        log.read(0, 1, upper_offset=1, min_one_batch=True)
    disk.heal()
    reopened = broken.crash()
    assert reopened.log_end_offset == appended
    assert append(reopened, b"again") == reopened.log_end_offset - 1


def test_a_failed_folder_keeps_no_frames(broken: LogFolder, disk: FaultyDisk) -> None:
    """Clients may ask a failed folder for days; each refusal would keep its request alive."""
    log = broken.open()
    disk.fail("write", ".log")
    append_until_failure(log, b"x")
    for _ in range(3):
        with pytest.raises(LogDirFailure):
            append(log, b"y")
        with pytest.raises(LogDirFailure):
            log.read(0, 1, upper_offset=1, min_one_batch=True)
    failure = log.dir_state.failure
    assert failure is not None
    assert failure.__traceback__ is None
    assert failure.__context__ is None
    assert "is offline" in failure.message


def test_a_failed_fsync_moves_no_recovery_point(broken: LogFolder, disk: FaultyDisk) -> None:
    log = broken.open()
    append(log, b"a")
    disk.fail("sync", ".log")
    with pytest.raises(LogDirFailure):
        log.flush()
    assert log.recovery_point == 0
    disk.heal()
    # A failed fsync may have dropped the pages; trying again would only seem to work.
    with pytest.raises(LogDirFailure):
        append(log, b"b")


def manager_of(disk: FaultyDisk, *paths: Path) -> tuple[LogManager, list[str]]:
    failed: list[str] = []

    def note(directory: LogDir) -> None:
        failed.append(directory.path)

    manager = LogManager(
        [str(path) for path in paths],
        disk=disk,
        background=InlineBackground(),
        now_ms=lambda: NOW_MS,
        random_bytes=os.urandom,
        on_dir_failure=note,
    )
    return manager, failed


def test_one_folder_fails_and_the_other_serves(tmp_path: Path, disk: FaultyDisk) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    manager, failed = manager_of(disk, first, second)
    manager.open_dirs()
    a = manager.create_log("a", 0, LogConfig())
    b = manager.create_log("b", 0, LogConfig())
    assert {os.path.dirname(a.dir), os.path.dirname(b.dir)} == {str(first), str(second)}
    append(a, b"x")
    disk.fail("write", os.path.dirname(a.dir) + "/")
    with pytest.raises(LogDirFailure):
        append(a, b"y")
    assert failed == [os.path.dirname(a.dir)]
    assert append(b, b"x") == 0
    assert [d.path for d in manager.offline_dirs] == failed
    assert os.path.dirname(manager.create_log("c", 0, LogConfig()).dir) == os.path.dirname(b.dir)
    with pytest.raises(LogDirFailure):
        manager.create_log("a", 0, LogConfig())
    assert {info.path: info.error for info in manager.describe()} == {
        failed[0]: ErrorCode.KAFKA_STORAGE_ERROR,
        os.path.dirname(b.dir): ErrorCode.NONE,
    }
    manager.close()
    # Only the folder that was closed in order says so.
    assert not os.path.exists(f"{failed[0]}/.kafka_cleanshutdown")
    assert os.path.exists(f"{os.path.dirname(b.dir)}/.kafka_cleanshutdown")


def test_a_folder_that_cannot_be_listed_is_left_out(tmp_path: Path, disk: FaultyDisk) -> None:
    disk.fail("list", "one")
    manager, failed = manager_of(disk, tmp_path / "one", tmp_path / "two")
    manager.open_dirs()
    manager.load(lambda topic: LogConfig())
    assert failed == [str(tmp_path / "one")]
    assert manager.create_log("t", 0, LogConfig()).dir.startswith(str(tmp_path / "two"))
    manager.close()


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KB, where mounting is allowed."""
    path = tmp_path / "tiny"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(path)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        # Without the right to mount there is a device that is always full.
        yield Path("/dev/full")
        return
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


def test_a_really_full_disk(tiny_disk: Path) -> None:
    if tiny_disk == Path("/dev/full"):
        fd = os.open("/dev/full", os.O_WRONLY)
        with pytest.raises(OSError, match="No space left"):
            os.write(fd, b"x")
        os.close(fd)
        return
    folder = LogFolder(tiny_disk, LogConfig(segment_index_bytes=4096))
    log = folder.open()
    appended, failure = append_until_failure(log, b"000000" * 500)
    assert "No space left" in failure.message
    assert appended > 10
    end = sum(len(batch_of(b"000000" * 500)) for _ in range(appended))
    assert (folder.path / f"{0:020d}.log").stat().st_size == end
    # Somebody makes room, and the broker is started again.
    room = ["mount", "-o", "remount,size=512k", str(tiny_disk)]
    subprocess.run(room, check=True, capture_output=True)
    log = folder.crash()
    assert values_of(read_all(log, max_bytes=10_000)) == [
        (number, b"000000" * 500) for number in range(appended)
    ]
