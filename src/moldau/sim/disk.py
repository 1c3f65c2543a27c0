"""A disk that loses what was not synced when its machine loses power.

The model, so that a finding can be judged:
- Bytes written are readable at once. They survive a power failure only if a sync of that file
  came after the write.
- At a power failure each file keeps, on its own, either nothing of what was not synced, a first
  part of those writes with the last one torn at any byte, or any subset of them: a write that is
  missing in front of one that is not reads as zeros, as on a file system with delayed allocation.
- Creating, renaming and removing names is journaled: it is durable at once and in order. A file
  whose name is new but whose bytes were never synced may come back empty.
- A write fails as a whole (`fail_writes_after`): a full disk.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from moldau.broker.log.disk import Buffer, File, Lock

TOTAL_BYTES = 1 << 40


@dataclass(slots=True)
class _Inode:
    """What a file holds now, what would survive, and what lies between."""

    data: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    unsynced: list[tuple[int, bytes]] = field(default_factory=list)
    mtime_ms: int = 0

    def write(self, data: Buffer, position: int) -> None:
        end = position + len(data)
        if len(self.data) < end:
            self.data.extend(bytes(end - len(self.data)))
        self.data[position:end] = data
        self.unsynced.append((position, bytes(data)))

    def truncate(self, size: int) -> None:
        """Journaled like a change of names: a file never comes back longer than it was cut."""
        if size < len(self.data):
            del self.data[size:]
            self.durable = self.durable[:size]
            self.unsynced = [
                (position, data[: size - position])
                for position, data in self.unsynced
                if position < size
            ]
        else:
            self.data.extend(bytes(size - len(self.data)))

    def sync(self) -> None:
        self.durable = bytes(self.data)
        self.unsynced.clear()

    def lose_power(self, random: Random) -> int:
        """Keep what the model lets survive; returns how many writes were lost or torn."""
        if not self.unsynced:
            self.data = bytearray(self.durable)
            return 0
        kept = _surviving(self.unsynced, random)
        lost = len(self.unsynced) - len(kept)
        self.data = bytearray(self.durable)
        self.unsynced.clear()
        for position, data in kept:
            self.write(data, position)
        self.sync()
        return lost


def _surviving(writes: list[tuple[int, bytes]], random: Random) -> list[tuple[int, bytes]]:
    kind = random.randrange(3)
    if kind == 0:
        return []
    if kind == 1:
        kept = writes[: random.randrange(len(writes) + 1)]
        if len(kept) < len(writes):
            position, data = writes[len(kept)]
            kept = [*kept, (position, data[: random.randrange(len(data) + 1)])]
        return kept
    return [write for write in writes if random.random() < 0.5]


class SimFile:
    def __init__(self, disk: SimDisk, path: str, inode: _Inode) -> None:
        self._disk = disk
        self._inode = inode
        self.path = path

    @property
    def size(self) -> int:
        return len(self._inode.data)

    @size.setter
    def size(self, value: int) -> None:
        self._inode.truncate(value)

    def write(self, data: Buffer, position: int) -> None:
        self._disk.before_write(len(data), self.path)
        self._inode.write(data, position)
        self._inode.mtime_ms = self._disk.now_ms()

    def read(self, position: int, length: int) -> bytes:
        return bytes(self._inode.data[position : position + length])

    def view(self, position: int, length: int) -> memoryview:
        if position + length > self.size:
            raise OSError(f"{self.path}: asked for bytes up to {position + length} of {self.size}")
        return memoryview(self.read(position, length))

    def mapped_size(self) -> int:
        return self.size

    def truncate(self, size: int) -> None:
        self._inode.truncate(size)

    def begin_sync(self) -> Callable[[], None]:
        return self._inode.sync

    def sync(self) -> None:
        self._inode.sync()

    def close(self) -> None:
        pass


class _SimLock:
    def __init__(self, held: set[str], path: str) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        self._held.discard(self._path)


class SimDisk:
    """`moldau.broker.log.disk.Disk` in memory, with power failures."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self.now_ms = now_ms
        self.fail_writes_after: int | None = None
        """How many more bytes are accepted before every write says the disk is full."""
        self._files: dict[str, _Inode] = {}
        self._dirs: set[str] = {"/"}
        self._locks: set[str] = set()

    def lose_power(self, random: Random) -> int:
        """The machine stops: unsynced bytes go as the model says. Returns writes lost or torn."""
        self._locks.clear()
        return sum(self._files[path].lose_power(random) for path in sorted(self._files))

    def before_write(self, length: int, path: str) -> None:
        if self.fail_writes_after is None:
            return
        if length > self.fail_writes_after:
            raise OSError(errno.ENOSPC, "no space left on the simulated disk", path)
        self.fail_writes_after -= length

    def open(self, path: str, *, create: bool = False, size: int | None = None) -> File:
        inode = self._files.get(path)
        if inode is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            inode = self._files[path] = _Inode(mtime_ms=self.now_ms())
        return SimFile(self, path, inode)

    def exists(self, path: str) -> bool:
        return path in self._files or path in self._dirs

    def is_dir(self, path: str) -> bool:
        return path in self._dirs

    def _children(self, path: str) -> set[str]:
        prefix = path.rstrip("/") + "/"
        names = [*self._files, *self._dirs]
        return {
            name[len(prefix) :].split("/", 1)[0]
            for name in names
            if name.startswith(prefix) and name != prefix
        }

    def list_dir(self, path: str) -> list[str]:
        if path not in self._dirs:
            raise FileNotFoundError(errno.ENOENT, "no such folder", path)
        return sorted(self._children(path))

    def scan_files(self, path: str) -> dict[str, int]:
        found = {name: self._files.get(f"{path}/{name}") for name in self.list_dir(path)}
        return {name: len(inode.data) for name, inode in found.items() if inode is not None}

    def scan_dirs(self, path: str) -> list[str]:
        return [name for name in self.list_dir(path) if f"{path}/{name}" in self._dirs]

    def make_dirs(self, path: str) -> None:
        parts = path.strip("/").split("/")
        self._dirs.update("/" + "/".join(parts[: count + 1]) for count in range(len(parts)))

    def rename(self, source: str, target: str, *, sync: bool = False) -> None:
        if source in self._files:
            self._files[target] = self._files.pop(source)
            return
        if source not in self._dirs:
            raise FileNotFoundError(errno.ENOENT, "no such file or folder", source)
        inside = source + "/"
        for path in [path for path in self._files if path.startswith(inside)]:
            self._files[target + path[len(source) :]] = self._files.pop(path)
        moved = {path for path in self._dirs if path == source or path.startswith(inside)}
        self._dirs -= moved
        self._dirs |= {target + path[len(source) :] for path in moved}

    def remove(self, path: str, *, missing_ok: bool = False) -> None:
        if self._files.pop(path, None) is None and not missing_ok:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)

    def remove_tree(self, path: str) -> None:
        inside = path + "/"
        for name in [name for name in self._files if name.startswith(inside)]:
            del self._files[name]
        self._dirs = {
            name for name in self._dirs if name != path and not name.startswith(inside)
        }

    def read_bytes(self, path: str) -> bytes:
        file = self.open(path)
        return file.read(0, file.size)

    def write_atomic(self, path: str, data: Buffer, *, sync: bool = True) -> None:
        self.before_write(len(data), path)
        inode = _Inode(mtime_ms=self.now_ms())
        inode.write(data, 0)
        if sync:
            inode.sync()
        self._files[path] = inode

    def sync_dir(self, path: str) -> None:
        pass

    def size(self, path: str) -> int:
        return self.open(path).size

    def mtime_ms(self, path: str) -> int:
        return self._files[path].mtime_ms

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        self._files[path].mtime_ms = mtime_ms

    def free_bytes(self, path: str) -> int:
        return TOTAL_BYTES if self.fail_writes_after is None else self.fail_writes_after

    def total_bytes(self, path: str) -> int:
        return TOTAL_BYTES

    def lock(self, path: str) -> Lock:
        if path in self._locks:
            raise BlockingIOError(errno.EAGAIN, "the folder is locked", path)
        self._locks.add(path)
        return _SimLock(self._locks, path)
