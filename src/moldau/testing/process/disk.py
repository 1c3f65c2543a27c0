"""The disk of a node whose data is thrown away: nothing is synced, and it can be full.

A process that is killed loses nothing that the system has; only the machine's end would, and no
test survives that. So to sync would cost time and show nothing.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import cast

from moldau.broker.log.disk import File, OsDisk, OsFile
from moldau.wire.constants import Buffer


def _nothing() -> None:
    return None


class _File(OsFile):
    __slots__ = ()

    def write(self, data: Buffer, position: int) -> None:
        disk = cast(ThrowAwayDisk, self._disk)
        if disk.room_by_folder:
            disk.take(self.path, max(0, position + len(data) - self.size))
        super().write(data, position)

    def begin_sync(self) -> Callable[[], None]:
        return _nothing

    def sync(self) -> None:
        return


class ThrowAwayDisk(OsDisk):
    """`room_by_folder` has the bytes that still fit under a directory; in all others, all
    that the machine has."""

    def __init__(self) -> None:
        super().__init__()
        self.room_by_folder: dict[str, int] = {}

    def take(self, path: str, size: int) -> None:
        """OSError as the system raises it if so many bytes more do not fit."""
        for folder, room in self.room_by_folder.items():
            if path.startswith(folder + "/"):
                if size > room:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
                self.room_by_folder[folder] = room - size

    def open(self, path: str, *, create: bool = False, size: int | None = None) -> File:
        if create:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            file = _File(self, path, fd, os.fstat(fd).st_size)
            self.note_open(file)
            return file
        return _File(self, path, -1, os.stat(path).st_size if size is None else size)

    def write_atomic(self, path: str, data: Buffer, *, sync: bool = True) -> None:
        if self.room_by_folder:
            self.take(path, len(data))
        super().write_atomic(path, data, sync=False)

    def write_new(self, path: str, data: Buffer) -> None:
        if self.room_by_folder:
            self.take(path, len(data))
        super().write_new(path, data)

    def rename(self, source: str, target: str, *, sync: bool = False) -> None:
        super().rename(source, target)

    def sync_dir(self, path: str) -> None:
        return

    def sync_all(self, path: str) -> None:
        return

    def free_bytes(self, path: str) -> int:
        free = super().free_bytes(path)
        for folder, room in self.room_by_folder.items():
            if f"{path}/".startswith(folder + "/"):
                free = min(free, room)
        return free
