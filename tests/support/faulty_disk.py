"""A disk that fails when it is told to, over the real one."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

from moldau.broker.log.disk import Disk, File, OsDisk
from moldau.wire.constants import Buffer


class FaultyFile:
    def __init__(self, disk: FaultyDisk, file: File) -> None:
        self._disk = disk
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, data: Buffer, position: int) -> None:
        if self._disk.broken("write", self._file.path):
            # As a full disk does it: some bytes arrive, then the error.
            size = self._file.size
            self._file.write(bytes(data)[: len(data) // 2], position)
            if self._file.size != size:
                self._file.truncate(size)
            raise OSError(errno.ENOSPC, "No space left on device", self._file.path)
        self._file.write(data, position)

    def read(self, position: int, length: int) -> bytes:
        if self._disk.broken("read", self._file.path):
            raise OSError(errno.EIO, "Input/output error", self._file.path)
        return self._file.read(position, length)

    def begin_sync(self) -> Callable[[], None]:
        sync = self._file.begin_sync()

        def run() -> None:
            sync()
            self._disk.synced.append(os.path.basename(self._file.path))
            if self._disk.broken("sync", self._file.path):
                raise OSError(errno.EIO, "Input/output error", self._file.path)

        return run


class FaultyDisk:
    """`fail(operation, part)` breaks that operation on paths that contain `part`."""

    def __init__(self, disk: Disk | None = None) -> None:
        self._disk: Disk = disk or OsDisk()
        self._faults: list[tuple[str, str]] = []
        self.synced: list[str] = []

    def fail(self, operation: str, part: str) -> None:
        self._faults.append((operation, part))

    def heal(self) -> None:
        self._faults.clear()

    def broken(self, operation: str, path: str) -> bool:
        return any(op == operation and part in path for op, part in self._faults)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._disk, name)

    def open(self, path: str, *, create: bool = False, size: int | None = None) -> Any:
        if create and self.broken("create", path):
            raise OSError(errno.ENOSPC, "No space left on device", path)
        return FaultyFile(self, self._disk.open(path, create=create, size=size))

    def write_atomic(self, path: str, data: Buffer, *, sync: bool = True) -> None:
        if self.broken("write", path):
            raise OSError(errno.ENOSPC, "No space left on device", path)
        self._disk.write_atomic(path, data, sync=sync)

    def write_new(self, path: str, data: Buffer) -> None:
        if self.broken("write", path):
            raise OSError(errno.ENOSPC, "No space left on device", path)
        self._disk.write_new(path, data)

    def can_sync_all(self, path: str) -> bool:
        # Whatever file system the tests run on.
        return True

    def sync_all(self, path: str) -> None:
        if self.broken("sync", path):
            raise OSError(errno.EIO, "Input/output error", path)
        self.synced.append(path)
        self._disk.sync_all(path)

    def scan_dirs(self, path: str) -> list[str]:
        if self.broken("list", path):
            raise OSError(errno.EIO, "Input/output error", path)
        return self._disk.scan_dirs(path)
