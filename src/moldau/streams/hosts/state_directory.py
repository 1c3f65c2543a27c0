"""The folder of an instance under `state.dir`: its identity, and what its stores keep on disk.

Invariant: one running instance holds the lock of a folder. Another one that finds it held gets an
identity of its own, which does not survive it.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import signal
import uuid
from io import TextIOWrapper
from pathlib import Path

from moldau.streams.errors import StreamsError
from moldau.streams.machine.subtopologies import TaskId
from moldau.streams.stores.base import TaskState
from moldau.streams.stores.disk import lmdb_module, open_state

PROCESS_FILE = "kafka-streams-process-metadata"
PID_FILE = "pid"

_log = logging.getLogger(__name__)


class StateDirectory:
    """See the module."""

    def __init__(self, folder: Path, *, on_disk: bool = True) -> None:
        self.folder = folder
        self._on_disk = on_disk
        self._file: TextIOWrapper | None = None
        self.process_id = str(uuid.uuid4())
        #: Whether the folder is this instance's own.
        self.is_lasting = False
        self._is_given = False

    @property
    def is_identity_lasting(self) -> bool:
        """Whether the identity is the same after a restart."""
        return self.is_lasting or self._is_given

    def identify(self, process_id: str) -> None:
        """Use an identity that the host gives the instance, whatever the folder says."""
        self.process_id = process_id
        self._is_given = True

    def open(self) -> None:
        """Take the folder's lock, and its identity: made at the first start."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file = (self.folder / PROCESS_FILE).open("a+", encoding="utf-8")
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.close()
            _log.info("state directory %s is not this instance's own: %s", self.folder, error)
            return
        self.is_lasting = True
        (self.folder / PID_FILE).write_text(str(os.getpid()))
        self._file.seek(0)
        known = _identity_in(self._file)
        if known is not None and not self._is_given:
            self.process_id = known
        if known != self.process_id:
            self._file.seek(0)
            self._file.truncate()
            json.dump({"processId": self.process_id}, self._file)
            self._file.flush()

    def open_task(self, task_id: TaskId) -> TaskState | None:
        """The local state of a task; `None` where stores are kept in memory."""
        try:
            lmdb_module()
        except StreamsError as error:
            if self._on_disk:
                _log.warning("stores are kept in memory: %s", error)
                self._on_disk = False
            return None
        folder = self.folder_of(task_id)
        folder.parent.mkdir(parents=True, exist_ok=True)
        return open_state(folder)

    def delete_task(self, task_id: TaskId) -> None:
        """Delete the local state of a task, which nobody has open."""
        _delete(self.folder_of(task_id))

    def folder_of(self, task_id: TaskId) -> Path:
        """Where the local state of a task is, if it has any."""
        return self._tasks_folder / str(task_id)

    @property
    def _tasks_folder(self) -> Path:
        """An instance that does not hold the lock has a folder of its own, while it runs."""
        return self.folder if self.is_lasting else self.folder / f"instance-{self.process_id}"

    def clean_up(self) -> None:
        """Delete the stores of all tasks; the identity remains."""
        if not self.folder.is_dir():
            return
        for each in self.folder.iterdir():
            if each.is_dir():
                _delete(each)

    def close(self) -> None:
        """Release the lock."""
        if not self.is_lasting:
            _delete(self._tasks_folder)
        if self._file is not None:
            self._file.close()
            self._file = None


def _delete(folder: Path) -> None:
    # An application that starts deletes nothing, and needs no archives.
    from shutil import rmtree

    rmtree(folder, ignore_errors=True)


def _identity_in(file: TextIOWrapper) -> str | None:
    try:
        return str(uuid.UUID(json.load(file)["processId"]))
    except (ValueError, KeyError, TypeError):
        return None


def stop_instance(folder: Path) -> int | None:
    """Ask the process that holds the lock of a folder to stop; its id, or `None` if none does."""
    try:
        with (folder / PROCESS_FILE).open("r+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                pid = int((folder / PID_FILE).read_text())
                os.kill(pid, signal.SIGTERM)
                return pid
    except (OSError, ValueError):
        return None
    return None
