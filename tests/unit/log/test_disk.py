"""What the log relies on from the real disk."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from moldau.broker.log.disk import OsDisk


def test_writes_reads_and_views(tmp_path: Path) -> None:
    file = OsDisk().open(str(tmp_path / "f"), create=True)
    file.write(b"hello", 0)
    file.write(memoryview(b" world"), 5)
    assert (file.size, file.read(0, 100), bytes(file.view(6, 5))) == (11, b"hello world", b"world")
    file.write(b"!", 11)
    assert bytes(file.view(6, 6)) == b"world!"
    assert bytes(file.view(3, 0)) == b""
    with pytest.raises(OSError, match="f: asked for bytes"):
        file.view(10, 5)


def test_a_view_outlives_growth_truncation_and_closing(tmp_path: Path) -> None:
    file = OsDisk().open(str(tmp_path / "f"), create=True)
    size = 1 << 20
    file.write(b"a" * size, 0)
    view = file.view(0, size)
    file.write(b"b" * size, size)
    second = file.view(0, 2 * size)
    file.truncate(100)
    file.write(b"c" * size, 100)
    assert view == b"a" * size
    assert second == b"a" * size + b"b" * size
    file.close()
    assert view == b"a" * size
    assert (tmp_path / "f").read_bytes() == b"a" * 100 + b"c" * size


def test_truncation_without_readers_keeps_the_file(tmp_path: Path) -> None:
    path = tmp_path / "f"
    file = OsDisk().open(str(path), create=True)
    file.write(b"abc", 0)
    inode = path.stat().st_ino
    file.view(0, 3).release()
    file.truncate(2)
    assert path.stat().st_ino == inode
    assert path.read_bytes() == b"ab"


def descriptors_below(folder: Path) -> int:
    """How many open files of this process lie in a folder; other tests' may close meanwhile."""
    count = 0
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            count += os.readlink(f"/proc/self/fd/{name}").startswith(f"{folder}/")
    return count


def test_descriptors_and_mappings_are_bounded(tmp_path: Path) -> None:
    disk = OsDisk(open_files_max=10, mappings_max=5)
    files = [disk.open(str(tmp_path / str(number)), create=True) for number in range(50)]
    for number, file in enumerate(files):
        file.write(b"%d" % number, 0)
        assert bytes(file.view(0, 1)) == b"%d" % (number // 10 if number > 9 else number)
    assert 0 < descriptors_below(tmp_path) <= 15
    for number, file in enumerate(files):
        assert file.read(0, 9) == b"%d" % number
    for file in files:
        file.close()
    assert descriptors_below(tmp_path) == 0


def test_write_atomic_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    disk = OsDisk()
    path = str(tmp_path / "f")
    disk.write_atomic(path, b"old")
    disk.write_atomic(path, b"new")
    assert disk.read_bytes(path) == b"new"
    assert disk.list_dir(str(tmp_path)) == ["f"]


def test_the_lock_excludes_other_processes(tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")
    lock = OsDisk().lock(path)
    script = (
        "import sys; from moldau.broker.log.disk import OsDisk\n"
        "try: OsDisk().lock(sys.argv[1])\n"
        "except BlockingIOError as error: print(error)\n"
        "else: print('taken')\n"
    )

    def try_lock() -> str:
        run = [sys.executable, "-c", script, path]
        return subprocess.run(run, capture_output=True, text=True, check=True).stdout

    assert "another broker is using this log directory" in try_lock()
    lock.release()
    assert try_lock() == "taken\n"


def test_the_file_system_is_synced_through_the_lock_of_a_directory(tmp_path: Path) -> None:
    disk = OsDisk()
    assert not disk.can_sync_all(str(tmp_path))
    lock = disk.lock(str(tmp_path / ".lock"))
    disk.sync_all(str(tmp_path))
    lock.release()
    assert not disk.can_sync_all(str(tmp_path))
