"""The only access to the file system for the log, the metadata log and the quorum state.

Invariants: nothing in those packages calls `os` or `open`, so a simulator can replace `Disk` as a
whole (torn writes, lost writes, full disks) and a test can inject a fault at any call. A
`File.write` that fails leaves the file's size as it was. A view returned by `File.view` stays
readable for as long as it is held, whatever happens to the file meanwhile: mappings are never
closed explicitly, and a file is never cut below a range that may still be read.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import resource
import shutil
import weakref
from collections.abc import Callable
from typing import Protocol

from moldau.broker.log import file_systems
from moldau.wire.constants import Buffer

COPY_CHUNK_SIZE = 1 << 20
READ_CHUNK_SIZE = 1 << 16


class File(Protocol):
    """An open file, addressed by position; one owner, so it tracks its own size."""

    path: str
    size: int

    def write(self, data: Buffer, position: int) -> None:
        """Write all of `data` or raise OSError with the file's size unchanged."""

    def read(self, position: int, length: int) -> bytes:
        """Up to `length` bytes; fewer only at the end of the file."""

    def view(self, position: int, length: int) -> memoryview:
        """A read-only view of exactly this range, without copying where possible."""

    def mapped_size(self) -> int:
        """How many leading bytes `view` can serve without new work."""

    def truncate(self, size: int) -> None:
        """Cut (or extend with zeros) to `size`; views already returned stay valid."""

    def begin_sync(self) -> Callable[[], None]:
        """A callable that makes all bytes written so far durable; safe in any thread."""

    def sync(self) -> None: ...

    def close(self) -> None: ...


class Lock(Protocol):
    def release(self) -> None: ...


class Disk(Protocol):
    def open(self, path: str, *, create: bool = False, size: int | None = None) -> File:
        """Open for reading and writing; `size` spares the look-up when already known."""

    def exists(self, path: str) -> bool: ...

    def is_dir(self, path: str) -> bool: ...

    def list_dir(self, path: str) -> list[str]: ...

    def scan_files(self, path: str) -> dict[str, int]:
        """Names and sizes of the plain files in a directory."""

    def entries_changed(self, path: str) -> int:
        """A number that is another one after an entry of the directory was added, renamed or
        removed; what is in the files does not matter."""

    def scan_dirs(self, path: str) -> list[str]:
        """Names of the directories in a directory."""

    def make_dirs(self, path: str) -> None: ...

    def rename(self, source: str, target: str, *, sync: bool = False) -> None:
        """Atomic replace; with `sync` the directory entry is durable on return."""

    def remove(self, path: str, *, missing_ok: bool = False) -> None: ...

    def remove_tree(self, path: str) -> None: ...

    def read_bytes(self, path: str) -> bytes: ...

    def write_atomic(self, path: str, data: Buffer, *, sync: bool = True) -> None:
        """Replace the file's content: readers and crashes see the old or the new, whole."""

    def write_new(self, path: str, data: Buffer) -> None:
        """Write a file that is not there yet, else FileExistsError. Takes half as long as
        `write_atomic`, but a crash may leave it incomplete."""

    def sync_dir(self, path: str) -> None: ...

    def can_sync_all(self, path: str) -> bool:
        """Whether `sync_all` can be relied on for the file system that holds `path`."""

    def sync_all(self, path: str) -> None:
        """Make everything written so far to the file system that holds `path` durable."""

    def size(self, path: str) -> int: ...

    def mtime_ms(self, path: str) -> int: ...

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None: ...

    def free_bytes(self, path: str) -> int: ...

    def total_bytes(self, path: str) -> int: ...

    def lock(self, path: str) -> Lock:
        """Take the exclusive lock file; BlockingIOError when another process has it."""


class OsFile:
    """A file of the operating system whose descriptor and mapping come and go.

    Thousands of partitions would exhaust descriptors, so they are opened on first use
    and given back when the disk's pool is full; the next use opens them again.
    """

    __slots__ = ("__weakref__", "_disk", "_fd", "_map", "_map_size", "_old_maps", "path", "size")

    def __init__(self, disk: OsDisk, path: str, fd: int, size: int) -> None:
        self._disk = disk
        self._fd = fd
        self._map: mmap.mmap | None = None
        self._map_size = 0
        # Mappings replaced by larger ones; alive only while a view of it is held.
        self._old_maps: list[weakref.ref[mmap.mmap]] = []
        self.path = path
        self.size = size

    def write(self, data: Buffer, position: int) -> None:
        fd = self._fd
        if fd < 0:
            fd = self._open()
        length = len(data)
        try:
            written = os.pwrite(fd, data, position)
            if written != length:
                self._write_rest(fd, memoryview(data)[written:], position + written)
        except OSError:
            if position + length > self.size:
                with contextlib.suppress(OSError):
                    os.ftruncate(fd, self.size)
            raise
        end = position + length
        if end > self.size:
            self.size = end

    def _write_rest(self, fd: int, rest: memoryview, position: int) -> None:
        while rest:
            written = os.pwrite(fd, rest, position)
            if written == 0:
                raise OSError(f"{self.path}: the file system accepts no more bytes")
            rest = rest[written:]
            position += written

    def read(self, position: int, length: int) -> bytes:
        fd = self._fd
        if fd < 0:
            fd = self._open()
        data = os.pread(fd, length, position)
        if len(data) == length or position + len(data) >= self.size:
            return data
        parts = [data]
        position += len(data)
        length -= len(data)
        while length and (data := os.pread(fd, length, position)):
            parts.append(data)
            position += len(data)
            length -= len(data)
        return b"".join(parts)

    def view(self, position: int, length: int) -> memoryview:
        if length == 0:
            return memoryview(b"")
        end = position + length
        if end > self._map_size:
            self._map_again(end)
        return memoryview(self._map)[position:end]  # type: ignore[arg-type]

    def mapped_size(self) -> int:
        return self._map_size

    def _map_again(self, end: int) -> None:
        if end > self.size:
            raise OSError(f"{self.path}: asked for bytes up to {end}, but it has {self.size}")
        fd = self._fd
        if fd < 0:
            fd = self._open()
        self.drop_map()
        self._map = mmap.mmap(fd, self.size, access=mmap.ACCESS_READ)
        self._map_size = self.size
        self._disk.note_map(self)

    def drop_map(self) -> None:
        """Drop the mapping; its memory is released with the last view of it."""
        if self._map is not None:
            self._old_maps = [ref for ref in self._old_maps if ref() is not None]
            self._old_maps.append(weakref.ref(self._map))
            self._map = None
            self._map_size = 0

    def truncate(self, size: int) -> None:
        fd = self._fd
        if fd < 0:
            fd = self._open()
        if size < self.size:
            self.drop_map()
            if any(ref() is not None for ref in self._old_maps):
                # Cutting a mapped file turns reads through the view into SIGBUS, so the
                # readers keep the old inode and we go on with a shorter copy.
                fd = self._replace_by_copy(fd, size)
        os.ftruncate(fd, size)
        self.size = size

    def _replace_by_copy(self, fd: int, size: int) -> int:
        temporary = self.path + ".tmp"
        copy = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            position = 0
            while position < size:
                data = os.pread(fd, min(COPY_CHUNK_SIZE, size - position), position)
                if not data:
                    break
                os.pwrite(copy, data, position)
                position += len(data)
            os.fsync(copy)
            os.rename(temporary, self.path)
        except OSError:
            os.close(copy)
            raise
        os.close(fd)
        self._fd = copy
        self._old_maps.clear()
        return copy

    def begin_sync(self) -> Callable[[], None]:
        # A duplicate of the descriptor, because the pool may close ours meanwhile.
        fd = os.dup(self._fd if self._fd >= 0 else self._open())

        def run() -> None:
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

        return run

    def sync(self) -> None:
        os.fsync(self._fd if self._fd >= 0 else self._open())

    def close(self) -> None:
        self.drop_map()
        self._disk.forget(self)
        self.close_fd()

    def close_fd(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> int:
        self._fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        self._disk.note_open(self)
        return self._fd


class OsLock:
    """`held` is the disk's record of the directories that are locked."""

    def __init__(self, held: dict[str, int], directory: str, fd: int) -> None:
        self._held = held
        self._directory = directory
        self._fd = fd
        held[directory] = fd

    def release(self) -> None:
        if self._fd >= 0:
            self._held.pop(self._directory, None)
            os.close(self._fd)
            self._fd = -1


class OsDisk:
    """The operating system's file system, with bounded descriptors and mappings."""

    def __init__(
        self, *, open_files_max: int | None = None, mappings_max: int | None = None
    ) -> None:
        # Of the descriptors this process may have, half go to files and an eighth to
        # mappings (each holds one); the rest is for connections.
        allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if allowed == resource.RLIM_INFINITY:
            allowed = 65_536
        self._open_files_max = open_files_max or max(allowed // 2, 16)
        self._mappings_max = mappings_max or max(allowed // 8, 8)
        # Insertion order is age. Use does not refresh it: that would cost every write,
        # and reopening a hot file once in a while costs next to nothing.
        self._open_files: dict[OsFile, None] = {}
        self._mapped_files: dict[OsFile, None] = {}
        # Descriptors of lock files by the log directories that they lock.
        self._lock_fds: dict[str, int] = {}

    def note_open(self, file: OsFile) -> None:
        self._open_files[file] = None
        if len(self._open_files) > self._open_files_max:
            oldest = next(iter(self._open_files))
            del self._open_files[oldest]
            oldest.close_fd()

    def note_map(self, file: OsFile) -> None:
        self._mapped_files.pop(file, None)
        self._mapped_files[file] = None
        if len(self._mapped_files) > self._mappings_max:
            oldest = next(iter(self._mapped_files))
            del self._mapped_files[oldest]
            oldest.drop_map()

    def forget(self, file: OsFile) -> None:
        self._open_files.pop(file, None)
        self._mapped_files.pop(file, None)

    def open(self, path: str, *, create: bool = False, size: int | None = None) -> File:
        if create:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            file = OsFile(self, path, fd, os.fstat(fd).st_size)
            self.note_open(file)
            return file
        if size is None:
            size = os.stat(path).st_size
        return OsFile(self, path, -1, size)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(path)

    def list_dir(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def scan_files(self, path: str) -> dict[str, int]:
        with os.scandir(path) as entries:
            return {entry.name: entry.stat().st_size for entry in entries if entry.is_file()}

    def entries_changed(self, path: str) -> int:
        return os.stat(path).st_mtime_ns

    def scan_dirs(self, path: str) -> list[str]:
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir())

    def make_dirs(self, path: str) -> None:
        try:
            os.mkdir(path)
        except OSError:
            # Its parents are missing, or it is there; anything else is raised again.
            os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str, *, sync: bool = False) -> None:
        os.replace(source, target)
        if sync:
            self.sync_dir(os.path.dirname(target) or ".")

    def remove(self, path: str, *, missing_ok: bool = False) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def remove_tree(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path)

    def read_bytes(self, path: str) -> bytes:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.read(fd, READ_CHUNK_SIZE)
            if len(data) < READ_CHUNK_SIZE:
                return data
            parts = [data]
            while part := os.read(fd, READ_CHUNK_SIZE):
                parts.append(part)
            return b"".join(parts)
        finally:
            os.close(fd)

    def write_atomic(self, path: str, data: Buffer, *, sync: bool = True) -> None:
        temporary = path + ".tmp"
        _write(temporary, data, os.O_TRUNC, sync=sync)
        os.replace(temporary, path)
        if sync:
            self.sync_dir(os.path.dirname(path) or ".")

    def write_new(self, path: str, data: Buffer) -> None:
        _write(path, data, os.O_EXCL)

    def sync_dir(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def can_sync_all(self, path: str) -> bool:
        # The lock's descriptor was there before the first write: what failed to be written
        # since then is reported through it, even if another descriptor has reported it.
        return path in self._lock_fds and file_systems.can_sync(self._lock_fds[path])

    def sync_all(self, path: str) -> None:
        file_systems.sync(self._lock_fds[path])

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def mtime_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        os.utime(path, ns=(mtime_ms * 1_000_000, mtime_ms * 1_000_000))

    def free_bytes(self, path: str) -> int:
        status = os.statvfs(path)
        return status.f_bavail * status.f_frsize

    def total_bytes(self, path: str) -> int:
        status = os.statvfs(path)
        return status.f_blocks * status.f_frsize

    def lock(self, path: str) -> Lock:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            # POSIX record locks, because Java's FileChannel.lock takes those: a Kafka
            # and Moldau must exclude each other from a log directory.
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            raise BlockingIOError(
                f"{path} is locked: another broker is using this log directory; stop it or "
                "choose another log.dirs"
            ) from error
        return OsLock(self._lock_fds, os.path.dirname(path), fd)


def _write(path: str, data: Buffer, flag: int, *, sync: bool = False) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | flag | os.O_CLOEXEC, 0o644)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(fd, rest) :]
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)
