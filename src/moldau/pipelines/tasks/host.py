"""The process that runs a deployment's small pipelines, each in a thread.

    python -m moldau.pipelines.tasks.host FOLDER

Each pipeline has a folder under FOLDER with the same files as a hosted application. The host runs
every pipeline whose signal asks for it, and ends when nothing is left to run, or with the owner of
the deployment.

Invariants: one host runs per folder, because it holds the folder's lock; it outlives the control
loop, which starts the next one.
"""

from __future__ import annotations

import fcntl
import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Final

from moldau.spark.hosting.instance import HostedInstance
from moldau.spark.hosting.places import ApplicationPlaces

__all__ = ["ensure_running", "is_running", "main"]

_POLL_SECONDS: Final = 0.5
_IDLE_SECONDS_MAX: Final = 20.0
_LOCK: Final = "host.lock"
_log = logging.getLogger(__name__)


def is_running(folder: Path) -> bool:
    """Whether a host has the folder's lock."""
    return _is_locked(folder / _LOCK)


def _is_locked(path: Path) -> bool:
    if not path.exists():
        return False
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def ensure_running(folder: Path) -> None:
    """Start the folder's host unless it runs. Of two that start at the same time one ends."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if is_running(folder):
        return
    with open(folder / "host.out", "ab") as output:
        # In a session of its own it outlives the loop.
        process = subprocess.Popen(
            [sys.executable, "-m", "moldau.pipelines.tasks.host", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder,
            start_new_session=True,
        )
    # Else it would stay in the table of processes after its end.
    threading.Thread(target=process.wait, name="task host", daemon=True).start()


class TaskHost:
    """Starts a thread for each pipeline that is to run, and forgets those that have ended."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._owner = folder.parent / "owner.lock"
        self._threads: dict[str, tuple[str, threading.Thread]] = {}

    def run(self) -> None:
        idle_since = time.monotonic()
        while not self._has_lost_owner():
            self._start_wanted()
            if self._threads:
                idle_since = time.monotonic()
            elif time.monotonic() - idle_since > _IDLE_SECONDS_MAX:
                return
            time.sleep(_POLL_SECONDS)

    def _has_lost_owner(self) -> bool:
        """Whether `moldau start --spark` was killed: it removes this file when it ends."""
        return self._owner.exists() and not _is_locked(self._owner)

    def _start_wanted(self) -> None:
        self._threads = {
            name: (run, thread)
            for name, (run, thread) in self._threads.items()
            if thread.is_alive()
        }
        for path in self._folder.glob("*/signal.json"):
            name = path.parent.name
            if name in self._threads:
                continue
            places = ApplicationPlaces(path.parent)
            signal = places.signal_seen()
            if signal.run is None or signal.stop:
                continue
            thread = threading.Thread(
                target=self._run_one, args=(places, signal.run), name=name, daemon=True
            )
            self._threads[name] = (signal.run, thread)
            thread.start()

    def _run_one(self, places: ApplicationPlaces, run: str) -> None:
        try:
            application = places.application()
            HostedInstance(places, application, run, 0, has_process=False).run()
        except Exception:
            _log.exception("%s cannot be run", places.folder.name)
            # The next look tries again.
            time.sleep(_POLL_SECONDS)


def main(argv: list[str] | None = None) -> int:
    folder = Path((sys.argv[1:] if argv is None else argv)[0])
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    with (folder / _LOCK).open("a") as lock:
        for _ in range(20):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                # Somebody may just be checking for a host.
                time.sleep(0.05)
        else:
            return 0
        TaskHost(folder).run()
        # Threads of pipelines that hang own nothing that a successor would miss.
        os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
