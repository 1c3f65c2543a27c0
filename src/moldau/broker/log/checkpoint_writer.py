"""Writing checkpoint files in the background, one at a time per file."""

from __future__ import annotations

from moldau.broker.log.background import Background
from moldau.broker.log.context import LogDirState
from moldau.broker.log.disk import Disk


class CheckpointWriter:
    """What always holds: the last content asked for ends up in the file, unchanged content
    is not written again, and two writes of one file never overlap."""

    def __init__(self, disk: Disk, background: Background) -> None:
        self._disk = disk
        self._background = background
        self._written: dict[str, bytes] = {}
        self._in_flight: set[str] = set()
        self._waiting: dict[str, bytes] = {}

    def write(self, dir_state: LogDirState, name: str, data: bytes) -> None:
        path = f"{dir_state.path}/{name}"
        if dir_state.failure is not None or (
            self._written.get(path) == data and path not in self._in_flight
        ):
            return
        if path in self._in_flight:
            self._waiting[path] = data
            return
        self._in_flight.add(path)

        def done(error: BaseException | None) -> None:
            self._in_flight.discard(path)
            if error is not None:
                self._waiting.pop(path, None)
                dir_state.fail(f"writing {path}", error)
                return
            self._written[path] = data
            waiting = self._waiting.pop(path, None)
            if waiting is not None:
                self.write(dir_state, name, waiting)

        self._background.submit(lambda: self._disk.write_atomic(path, data), done)

    def write_now(self, dir_state: LogDirState, name: str, data: bytes) -> None:
        """In place, for a stop; raises OSError."""
        path = f"{dir_state.path}/{name}"
        self._disk.write_atomic(path, data)
        self._written[path] = data
