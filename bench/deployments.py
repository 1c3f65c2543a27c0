"""The processes and files of a running deployment: what it costs, and whether that grows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

__all__ = ["Costs", "files_below", "started"]

_UP = "Ctrl-C stops all of it."


class Costs:
    """Of all processes that belong to a folder, with their children."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        #: CPU seconds of processes when they were last seen, also of those that have ended.
        self._used: dict[tuple[int, float], float] = {}

    def processes(self) -> list[psutil.Process]:
        found: dict[int, psutil.Process] = {}
        own = psutil.Process().pid
        for process in psutil.process_iter(["cmdline", "cwd"]):
            words = " ".join(process.info["cmdline"] or ())
            here = self._folder in words or process.info["cwd"] == self._folder
            if here and process.pid != own:
                for each in (process, *_children(process)):
                    found[each.pid] = each
        return list(found.values())

    def cpu_seconds(self) -> float:
        """Since each process began. A process that has ended counts as far as it was seen."""
        for process in self.processes():
            try:
                times, since = process.cpu_times(), process.create_time()
            except psutil.Error:
                continue
            self._used[process.pid, since] = float(times.user + times.system)
        return sum(self._used.values())

    @contextmanager
    def cpu_percent(self) -> Iterator[list[float]]:
        """Of one core, while the block runs."""
        before, started = self.cpu_seconds(), time.monotonic()
        result: list[float] = []
        yield result
        result.append(100 * (self.cpu_seconds() - before) / (time.monotonic() - started))

    def memory_mb(self) -> float:
        """The proportional set size: what is shared counts once."""
        return sum(_pss(each) for each in self.processes()) / 1e6

    def open_files(self) -> int:
        return sum(_open_files(each) for each in self.processes())

    def threads(self) -> int:
        return sum(_threads(each) for each in self.processes())


@contextmanager
def started(folder: Path) -> Iterator[str]:
    """`moldau start --spark`; its address."""
    output = folder / "output.log"
    command = [sys.executable, "-m", "moldau.cli", "start", "--spark", "--port", "0"]
    environ = os.environ | {"XDG_STATE_HOME": str(folder / "state")}
    with output.open("wb") as file:
        process = subprocess.Popen(
            [*command, "--data", str(folder / "data")],
            stdout=file,
            stderr=file,
            cwd=folder,
            env=environ,
        )
    try:
        deadline = time.monotonic() + 300.0
        while _UP not in output.read_text():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"it did not start: {output.read_text()}")
            time.sleep(0.2)
        cluster = json.loads((folder / "data-spark" / "cluster.json").read_text())
        yield str(cluster["bootstrap.servers"])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(120)


def files_below(folder: Path) -> tuple[int, int]:
    """How many files there are, and how many bytes they have; those that vanish do not count."""
    count = size = 0
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                count, size = count + 1, size + path.stat().st_size
        except OSError:
            continue
    return count, size


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        found: list[psutil.Process] = process.children(recursive=True)
        return found
    except psutil.Error:
        return []


def _pss(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.Error:
        return 0


def _open_files(process: psutil.Process) -> int:
    try:
        return int(process.num_fds())
    except psutil.Error:
        return 0


def _threads(process: psutil.Process) -> int:
    try:
        return int(process.num_threads())
    except psutil.Error:
        return 0
