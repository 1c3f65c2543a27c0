"""A disk that loses what was not synced when its machine loses power.

The model, so that a finding can be judged:
- Bytes written are readable at once. They survive a power failure for sure only if a sync of
  that file came after the write. Otherwise each file keeps, on its own, one of these: none of the
  writes that were not synced; a first part of them, the last one torn at any byte; any subset of
  them; all of them; or the size that all of them gave the file, without some of their data. A
  part that is missing reads as zeros, as on a file system with delayed allocation, or as whatever
  the disk held there before, as on one that does not order data and sizes. Bytes that a sync has
  covered are never damaged.
- Creating, renaming, removing and cutting go through one journal in order. Syncing a folder makes
  the journal durable up to the last change in that folder, syncing a file up to the last time it
  was cut. A power failure undoes a last part of what is not durable yet: bytes written after a cut
  that is undone are gone with it. Syncing a file does not make its name durable.
- A full folder refuses a write as a whole. A broken folder refuses everything until it is healed;
  what its files hold stays as it was. (That a later sync of pages which once failed to be written
  claims success, as Linux may, is not modelled: a broken disk is replaced, not trusted again.)

`Platter` is what outlives a crash; `SimDisk` is one boot's view of it. After a crash the old view
raises `Stopped` at every call, so that nothing of the dead process reaches the disk.
"""

from __future__ import annotations

import errno
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final

from moldau.broker.log.disk import File, Lock
from moldau.wire.constants import Buffer

TOTAL_BYTES = 1 << 40
# Smaller than any real disk's, because the simulated batches are small too: a batch has several.
_BLOCK_BYTES: Final = 64
# How much of what was not synced is missing: now and then a block, a part, everything.
_LOST_SHARES: Final = (0.05, 0.3, 1.0)
_OLD_DATA_SHARE: Final = 0.3


class Stopped(BaseException):
    """The simulated process is gone; not an Exception, because nothing may handle it."""


@dataclass(frozen=True, slots=True)
class _Write:
    position: int
    data: bytes

    @property
    def end(self) -> int:
        return self.position + len(self.data)


@dataclass(frozen=True, slots=True)
class _Cut:
    size: int
    sequence: int  # of its entry in the journal


@dataclass(slots=True, eq=False)
class _Inode:
    """What a file holds now, what would survive, and what lies between.

    Zeros that were never written are not held: files of indexes are long and mostly empty.
    """

    mtime_ms: int = 0
    data: bytearray = field(default_factory=bytearray)
    size: int = 0
    durable: bytes = b""
    durable_size: int = 0
    pending: list[_Write | _Cut] = field(default_factory=list)

    def apply(self, change: _Write | _Cut) -> None:
        self._take(change)
        self.pending.append(change)

    def _take(self, change: _Write | _Cut) -> None:
        data = self.data
        if isinstance(change, _Cut):
            self.size = change.size
            del data[change.size :]
            return
        if len(data) < change.position:
            data.extend(bytes(change.position - len(data)))
        data[change.position : change.position + len(change.data)] = change.data
        self.size = max(self.size, len(data))

    def read(self, position: int, length: int) -> bytes:
        found = bytes(self.data[position : position + length])
        missing = min(length, self.size - position) - len(found)
        return found + bytes(missing) if missing > 0 else found

    def sync(self) -> int:
        """Make all of it durable; the journal entry that must be durable with it, or -1."""
        if not self.pending:
            return -1
        last = max((c.sequence for c in self.pending if isinstance(c, _Cut)), default=-1)
        self._keep()
        return last

    def _keep(self) -> None:
        self.durable, self.durable_size = bytes(self.data), self.size
        self.pending.clear()

    def lose_power(self, random: Random, last_sequence: int) -> int:
        """Keep what the model lets survive; returns how many changes were lost or damaged."""
        if not self.pending:
            return 0
        changes: list[_Write | _Cut] = []
        for change in self.pending:
            if isinstance(change, _Cut) and change.sequence > last_sequence:
                break
            changes.append(change)
        kept = _surviving(changes, self.durable_size, random)
        whole = {id(change) for change in changes}
        lost = len(self.pending) - sum(id(change) in whole for change in kept)
        self.data, self.size = bytearray(self.durable), self.durable_size
        for change in kept:
            self._take(change)
        self._keep()
        return lost


def _surviving(
    changes: list[_Write | _Cut], durable_size: int, random: Random
) -> list[_Write | _Cut]:
    """Cuts are the journal's business; of the writes any part may be missing."""
    fate = random.random()
    if fate < 0.15:
        return changes
    if fate < 0.4:
        return [change for change in changes if isinstance(change, _Cut)]
    if fate < 0.55:
        return [c for c in changes if isinstance(c, _Cut) or random.random() < 0.5]
    if fate < 0.75:
        return _sizes_without_data(changes, durable_size, random)
    return _first_part(changes, random)


def _first_part(changes: list[_Write | _Cut], random: Random) -> list[_Write | _Cut]:
    last = random.randrange(len(changes) + 1)
    kept: list[_Write | _Cut] = []
    for index, change in enumerate(changes):
        if index < last or isinstance(change, _Cut):
            kept.append(change)
        elif index == last:
            kept.append(_Write(change.position, change.data[: random.randrange(len(change.data))]))
    return kept


def _sizes_without_data(
    changes: list[_Write | _Cut], durable_size: int, random: Random
) -> list[_Write | _Cut]:
    """The file is as long as with all of the writes, but some of their blocks never came."""
    share = random.choice(_LOST_SHARES)
    kept: list[_Write | _Cut] = []
    for change in changes:
        if isinstance(change, _Cut):
            durable_size = min(durable_size, change.size)
            kept.append(change)
            continue
        lost = [
            block
            for block in _blocks(max(change.position, durable_size), change.end)
            if random.random() < share
        ]
        kept.append(_damaged(change, lost, random) if lost else change)
    return kept


def _blocks(start: int, end: int) -> Iterator[tuple[int, int]]:
    """The blocks of a file between two positions, the first and the last one perhaps in part."""
    while start < end:
        following = min(end, (start // _BLOCK_BYTES + 1) * _BLOCK_BYTES)
        yield start, following
        start = following


def _damaged(write: _Write, lost: list[tuple[int, int]], random: Random) -> _Write:
    data = bytearray(write.data)
    holds_old_data = random.random() < _OLD_DATA_SHARE
    for start, end in lost:
        count = end - start
        at = start - write.position
        data[at : at + count] = random.randbytes(count) if holds_old_data else bytes(count)
    return _Write(write.position, bytes(data))


@dataclass(frozen=True, slots=True)
class _JournalEntry:
    sequence: int
    dirs: tuple[str, ...]
    undo: Callable[[], None]


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


class Platter:
    """Files and names, the journal, and the faults that are to come."""

    def __init__(self, now_ms: Callable[[], int], random: Random) -> None:
        self.now_ms = now_ms
        self._random = random
        self.files: dict[str, _Inode] = {}
        self.dirs: dict[str, None] = {"/": None}
        self.locks: set[str] = set()
        self._journal: list[_JournalEntry] = []
        self._sequence = 0
        self._broken: dict[str, int] = {}
        self._full: dict[str, int] = {}
        self._stop_after: int | None = None
        self.on_stop: Callable[[], None] = lambda: None
        """Called when the process that uses the disk is gone."""
        self.disk = SimDisk(self)

    # Faults -------------------------------------------------------------------------

    def stop_after(self, changes: int | None) -> None:
        """The process stops in front of the change after this many more; with None it does not."""
        self._stop_after = changes

    @property
    def armed(self) -> bool:
        """Whether the process is to stop in front of one of the next changes."""
        return self._stop_after is not None

    def break_folder(self, path: str, after: int) -> None:
        """Every call on the folder fails after this many more."""
        self._broken[path] = after

    def fill_folder(self, path: str, bytes_left: int) -> None:
        self._full[path] = bytes_left

    def heal(self) -> None:
        self._broken.clear()
        self._full.clear()

    @property
    def faulty(self) -> bool:
        return bool(self._broken or self._full)

    def stop(self) -> None:
        """The process is gone, its locks with it; the machine runs on."""
        self.disk.alive = False
        self._stop_after = None
        self.locks.clear()
        self.on_stop()

    def lose_power(self) -> int:
        """The machine stops: returns how many changes were lost, torn or undone."""
        self.stop()
        random = self._random
        kept = len(self._journal)
        if kept and random.random() < 0.6:
            kept = random.randrange(kept + 1)
        undone = self._journal[kept:]
        last = undone[0].sequence - 1 if undone else self._sequence
        for entry in reversed(undone):
            entry.undo()
        self._journal.clear()
        lost = sum(self.files[path].lose_power(random, last) for path in sorted(self.files))
        return lost + len(undone)

    def start(self) -> SimDisk:
        """The next process's view."""
        self.disk.alive = False
        self.disk = SimDisk(self)
        return self.disk

    # What the views call --------------------------------------------------------------

    def before_change(self, path: str) -> None:
        self.before_access(path)
        if self._stop_after is not None:
            if self._stop_after == 0:
                self.stop()
                raise Stopped
            self._stop_after -= 1

    def before_access(self, path: str) -> None:
        for prefix, left in self._broken.items():
            if path.startswith(prefix):
                if left == 0:
                    raise OSError(errno.EIO, "the simulated disk is broken", path)
                self._broken[prefix] = left - 1

    def before_bytes(self, path: str, count: int) -> None:
        for prefix, left in self._full.items():
            if path.startswith(prefix):
                if count > left:
                    self._full[prefix] = 0
                    raise OSError(errno.ENOSPC, "no space left on the simulated disk", path)
                self._full[prefix] = left - count

    def free_bytes(self, path: str) -> int:
        return min((n for p, n in self._full.items() if path.startswith(p)), default=TOTAL_BYTES)

    def note(self, undo: Callable[[], None], *dirs: str) -> int:
        """A change of names or sizes has been made; its place in the journal."""
        self._sequence += 1
        self._journal.append(_JournalEntry(self._sequence, dirs, undo))
        return self._sequence

    def commit(self, sequence: int) -> None:
        if self._journal and self._journal[0].sequence <= sequence:
            self._journal = [entry for entry in self._journal if entry.sequence > sequence]

    def commit_dir(self, path: str) -> None:
        self.commit(max((e.sequence for e in self._journal if path in e.dirs), default=-1))

    def sync_all(self) -> None:
        for inode in self.files.values():
            inode.sync()
        self._journal.clear()

    def put(self, path: str, inode: _Inode | None) -> None:
        """Give `path` to `inode`, or to none."""
        if inode is None:
            self.files.pop(path, None)
        else:
            self.files[path] = inode

    def make_dir(self, path: str) -> None:
        self.dirs[path] = None
        self.note(lambda: self.dirs.__delitem__(path), _parent(path))

    def remove_dir(self, path: str) -> None:
        del self.dirs[path]
        self.note(lambda: self.dirs.__setitem__(path, None), _parent(path))

    def move_tree(self, source: str, target: str) -> None:
        inside = source + "/"
        for path in [path for path in self.files if path.startswith(inside)]:
            self.files[target + path[len(source) :]] = self.files.pop(path)
        for path in [path for path in self.dirs if path == source or path.startswith(inside)]:
            del self.dirs[path]
            self.dirs[target + path[len(source) :]] = None


def _nothing() -> None:
    """Cuts are undone with the bytes of their file."""


class SimFile:
    def __init__(self, disk: SimDisk, path: str, inode: _Inode) -> None:
        self._disk = disk
        self._inode = inode
        self.path = path

    @property
    def size(self) -> int:
        return self._inode.size

    @size.setter
    def size(self, value: int) -> None:
        self.truncate(value)

    def write(self, data: Buffer, position: int) -> None:
        platter = self._disk.changing(self.path)
        platter.before_bytes(self.path, len(data))
        self._inode.apply(_Write(position, bytes(data)))
        self._inode.mtime_ms = platter.now_ms()

    def read(self, position: int, length: int) -> bytes:
        self._disk.reading(self.path)
        return self._inode.read(position, length)

    def view(self, position: int, length: int) -> memoryview:
        if position + length > self.size:
            raise OSError(f"{self.path}: asked for bytes up to {position + length} of {self.size}")
        return memoryview(self.read(position, length))

    def mapped_size(self) -> int:
        return self.size

    def truncate(self, size: int) -> None:
        platter = self._disk.changing(self.path)
        if size != self._inode.size:
            self._inode.apply(_Cut(size, platter.note(_nothing)))

    def begin_sync(self) -> Callable[[], None]:
        self._disk.reading(self.path)
        return self.sync

    def sync(self) -> None:
        platter = self._disk.changing(self.path)
        platter.commit(self._inode.sync())

    def close(self) -> None:
        """Nothing to let go of."""


class _SimLock:
    def __init__(self, held: set[str], path: str) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        self._held.discard(self._path)


class SimDisk:
    """`moldau.broker.log.disk.Disk` in memory, for one boot of one process."""

    def __init__(self, platter: Platter) -> None:
        self._platter = platter
        self.alive = True

    def changing(self, path: str) -> Platter:
        """The platter, unless a fault comes first."""
        if not self.alive:
            raise Stopped
        self._platter.before_change(path)
        return self._platter

    def reading(self, path: str) -> Platter:
        if not self.alive:
            raise Stopped
        self._platter.before_access(path)
        return self._platter

    def open(self, path: str, *, create: bool = False, size: int | None = None) -> File:
        platter = self.reading(path)
        inode = platter.files.get(path)
        if inode is None:
            if not create or _parent(path) not in platter.dirs:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            self.changing(path)
            platter.before_bytes(path, 1)
            inode = _Inode(platter.now_ms())
            platter.put(path, inode)
            platter.note(lambda: platter.put(path, None), _parent(path))
        return SimFile(self, path, inode)

    def exists(self, path: str) -> bool:
        platter = self.reading(path)
        return path in platter.files or path in platter.dirs

    def is_dir(self, path: str) -> bool:
        return path in self.reading(path).dirs

    def list_dir(self, path: str) -> list[str]:
        platter = self.reading(path)
        if path not in platter.dirs:
            raise FileNotFoundError(errno.ENOENT, "no such folder", path)
        prefix = path.rstrip("/") + "/"
        start = len(prefix)
        return sorted(
            name[start:]
            for names in (platter.files, platter.dirs)
            for name in names
            if name.startswith(prefix) and len(name) > start and "/" not in name[start:]
        )

    def scan_files(self, path: str) -> dict[str, int]:
        names = self.list_dir(path)
        files = self._platter.files
        found = {name: files.get(f"{path}/{name}") for name in names}
        return {name: inode.size for name, inode in found.items() if inode is not None}

    def entries_changed(self, path: str) -> int:
        return zlib.crc32("/".join(self.list_dir(path)).encode())

    def scan_dirs(self, path: str) -> list[str]:
        names = self.list_dir(path)
        return [name for name in names if f"{path}/{name}" in self._platter.dirs]

    def make_dirs(self, path: str) -> None:
        parts = path.strip("/").split("/")
        for count in range(len(parts)):
            made = "/" + "/".join(parts[: count + 1])
            if made not in self._platter.dirs:
                self.changing(made).make_dir(made)

    def rename(self, source: str, target: str, *, sync: bool = False) -> None:
        platter = self.changing(source)
        if _parent(target) not in platter.dirs:
            raise FileNotFoundError(errno.ENOENT, "no such folder", target)
        if source in platter.files:
            inode = platter.files.pop(source)
            replaced = platter.files.get(target)
            platter.put(target, inode)

            def undo() -> None:
                platter.put(target, replaced)
                platter.put(source, inode)

            platter.note(undo, _parent(source), _parent(target))
        elif source in platter.dirs:
            platter.move_tree(source, target)
            platter.note(
                lambda: platter.move_tree(target, source), _parent(source), _parent(target), target
            )
        else:
            raise FileNotFoundError(errno.ENOENT, "no such file or folder", source)
        if sync:
            self.sync_dir(_parent(target))

    def remove(self, path: str, *, missing_ok: bool = False) -> None:
        platter = self.changing(path)
        inode = platter.files.pop(path, None)
        if inode is not None:
            platter.note(lambda: platter.put(path, inode), _parent(path))
        elif not missing_ok:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)

    def remove_tree(self, path: str) -> None:
        platter = self.reading(path)
        inside = path + "/"
        for name in sorted(name for name in platter.files if name.startswith(inside)):
            self.remove(name)
        gone = [name for name in platter.dirs if name == path or name.startswith(inside)]
        for name in sorted(gone, reverse=True):
            self.changing(name).remove_dir(name)

    def read_bytes(self, path: str) -> bytes:
        file = self.open(path)
        return file.read(0, file.size)

    def write_atomic(self, path: str, data: Buffer, *, sync: bool = True) -> None:
        # The same calls in the same order as on a real disk, so that a crash may come between.
        temporary = path + ".tmp"
        file = self.open(temporary, create=True)
        file.truncate(0)
        file.write(data, 0)
        if sync:
            file.sync()
        self.rename(temporary, path, sync=sync)

    def write_new(self, path: str, data: Buffer) -> None:
        if path in self.reading(path).files:
            raise FileExistsError(errno.EEXIST, "the file exists", path)
        self.open(path, create=True).write(data, 0)

    def sync_dir(self, path: str) -> None:
        if path not in self.reading(path).dirs:
            raise FileNotFoundError(errno.ENOENT, "no such folder", path)
        self.changing(path).commit_dir(path)

    def can_sync_all(self, path: str) -> bool:
        return path in self.reading(path).dirs

    def sync_all(self, path: str) -> None:
        self.changing(path).sync_all()

    def size(self, path: str) -> int:
        return self.open(path).size

    def mtime_ms(self, path: str) -> int:
        return self._inode(path).mtime_ms

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        self._inode(path).mtime_ms = mtime_ms

    def _inode(self, path: str) -> _Inode:
        inode = self.reading(path).files.get(path)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return inode

    def free_bytes(self, path: str) -> int:
        return self.reading(path).free_bytes(path)

    def total_bytes(self, path: str) -> int:
        self.reading(path)
        return TOTAL_BYTES

    def lock(self, path: str) -> Lock:
        locks = self.reading(path).locks
        if path in locks:
            raise BlockingIOError(errno.EAGAIN, "the folder is locked", path)
        locks.add(path)
        return _SimLock(locks, path)
