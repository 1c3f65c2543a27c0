"""The processes of a deployment, found where they are, and killed with SIGKILL by their ids."""

from __future__ import annotations

import contextlib
import os
import random
import signal
from pathlib import Path

from moldau.pipelines import daemon
from moldau.spark import ConnectServer

KINDS = ("driver", "executor", "worker", "broker", "loop", "commit")
COMMITTER = "python_streaming_sink_runner"


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""


def _parents() -> dict[int, int]:
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                found[int(entry.name)] = int(fields[1])
    return found


def descendants(root: int) -> list[int]:
    """Children, their children, and so on."""
    parents = _parents()
    found, frontier = [], {root}
    while frontier:
        frontier = {pid for pid, parent in parents.items() if parent in frontier}
        found += sorted(frontier)
    return found


class Deployment:
    """One folder's server and loop."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def driver(self) -> int | None:
        server = ConnectServer(self.folder)
        return server.pid if server.attach() else None

    def executors(self) -> list[int]:
        driver = self.driver()
        below = [] if driver is None else descendants(driver)
        return [pid for pid in below if "CoarseGrainedExecutorBackend" in _command(pid)]

    def workers(self) -> list[int]:
        """Python processes of executors, and the driver's own, which plan and commit batches."""
        parents, python = _parents(), self._python()
        # A daemon's children are those that do the work.
        return [pid for pid in python if parents.get(pid) in python] or python

    def _python(self) -> list[int]:
        driver = self.driver()
        below = {} if driver is None else {pid: _command(pid) for pid in descendants(driver)}
        return [pid for pid, each in below.items() if "pyspark" in each and "java" not in each]

    def committers(self) -> list[int]:
        """The driver's Python processes that decide about a batch and commit it."""
        return [pid for pid in self._python() if COMMITTER in _command(pid)]

    def loop(self) -> int | None:
        return daemon.status(self.folder).pid

    def pick(self, kind: str, choose: random.Random) -> int | None:
        """One that can be killed now."""
        match kind:
            case "driver":
                return self.driver()
            case "executor":
                found = self.executors()
            case "worker":
                found = self.workers()
            case _:
                return self.loop()
        return choose.choice(found) if found else None


def kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
