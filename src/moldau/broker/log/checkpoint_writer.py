"""Writing checkpoint files (offsets by partition) in the background, one at a time per file."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from moldau.broker.log.background import Background
from moldau.broker.log.context import LogDirState
from moldau.broker.log.disk import Disk
from moldau.broker.log.machine.checkpoints import Partition, encode_offsets


class _CheckpointFile:
    """One file's state; only `lock` is touched by more than one thread."""

    __slots__ = ("highest", "in_flight", "lock", "version", "waiting", "written")

    def __init__(self) -> None:
        self.written: bytes | None = None
        self.waiting: dict[Partition, int] | None = None
        self.in_flight = False
        # The highest offset that the file on disk may have for each partition.
        self.highest: dict[Partition, int] = {}
        # Of the last content asked for: a background write that has been overtaken does nothing.
        self.version = 0
        self.lock = threading.Lock()


class CheckpointWriter:
    """Invariants: the last content asked for ends up in the file, unchanged content
    is not written again, and two writes of one file never overlap."""

    def __init__(self, disk: Disk, background: Background) -> None:
        self._disk = disk
        self._background = background
        self._files: dict[str, _CheckpointFile] = {}

    def _file(self, path: str) -> _CheckpointFile:
        file = self._files.get(path)
        if file is None:
            file = self._files[path] = _CheckpointFile()
        return file

    def note_read(
        self, dir_state: LogDirState, name: str, offsets: Mapping[Partition, int]
    ) -> None:
        """Take over the offsets that were read from the file."""
        self._file(f"{dir_state.path}/{name}").highest.update(offsets)

    def highest(self, dir_state: LogDirState, name: str, partition: Partition) -> int:
        """The highest offset that the file may have for a partition, now or after a write that is
        under way; -1 if none."""
        return self._file(f"{dir_state.path}/{name}").highest.get(partition, -1)

    def write(self, dir_state: LogDirState, name: str, offsets: Mapping[Partition, int]) -> None:
        path = f"{dir_state.path}/{name}"
        file = self._file(path)
        if dir_state.failure is not None:
            return
        for partition, offset in offsets.items():
            file.highest[partition] = max(offset, file.highest.get(partition, -1))
        if file.in_flight:
            file.waiting = dict(offsets)
            return
        data = encode_offsets(offsets)
        if file.written == data:
            return
        file.in_flight = True
        file.version += 1
        version = file.version

        def work() -> None:
            with file.lock:
                if file.version == version:
                    self._disk.write_atomic(path, data)

        def done(error: BaseException | None) -> None:
            file.in_flight = False
            waiting, file.waiting = file.waiting, None
            if error is not None:
                dir_state.fail(f"writing {path}", error)
                return
            if file.version == version:
                file.written = data
                if waiting is None:
                    file.highest = dict(offsets)
            if waiting is not None:
                self.write(dir_state, name, waiting)

        self._background.submit(work, done)

    def write_now(
        self, dir_state: LogDirState, name: str, offsets: Mapping[Partition, int]
    ) -> None:
        """In place, at most after the write that is under way; raises OSError."""
        path = f"{dir_state.path}/{name}"
        file = self._file(path)
        file.version += 1
        file.waiting = None
        data = encode_offsets(offsets)
        with file.lock:
            self._disk.write_atomic(path, data)
        file.written = data
        file.highest = dict(offsets)
