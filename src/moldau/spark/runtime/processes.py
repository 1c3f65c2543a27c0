"""Processes that outlive the one that started them, known by id and time of start.

A process id alone is not enough: the system gives it to another one after the first has ended.
Spark's Python workers form process groups of their own but stay in the server's session, by which
they are found.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["end", "end_idle_daemons", "end_strays", "is_running", "start_mark"]

_POLL_SECONDS = 0.05
_PROC = Path("/proc")
_DAEMON = b"pyspark.daemon"


def start_mark(pid: int) -> str | None:
    """Distinguishes this process from a later one with the same id; None if it has ended."""
    if _PROC.joinpath("self").exists():
        fields = _stat(pid)
        # Field 3 is the state, 22 the start in ticks since the machine's boot.
        return None if fields is None or fields[0] in "ZX" else f"{_boot_id()}:{fields[19]}"
    done = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or None


def is_running(pid: int, mark: str) -> bool:
    _reap(pid)
    return start_mark(pid) == mark


def end(pid: int, mark: str, *, seconds_max: float) -> bool:
    """Ask the leader of a session to end, and kill all of it if it has not in time.

    True if it ended by itself.
    """
    asked = False
    deadline = time.monotonic() + seconds_max
    while is_running(pid, mark):
        if not asked:
            _signal(pid, signal.SIGTERM)
            asked = True
        if time.monotonic() > deadline:
            _signal(pid, signal.SIGKILL)
            while is_running(pid, mark):
                time.sleep(_POLL_SECONDS)
            end_strays(pid, mark)
            return False
        time.sleep(_POLL_SECONDS)
    end_strays(pid, mark)
    return True


def end_strays(pid: int, mark: str) -> list[int]:
    """Kill what a session's leader that has ended left behind; their ids."""
    if start_mark(pid) is not None:
        # It still runs, or another process has its id and perhaps a session under it.
        return []
    begun = int(mark.rpartition(":")[2]) if mark.rpartition(":")[2].isdigit() else 0
    strays = [
        member
        for member, ticks in _session_members(pid)
        if ticks >= begun and member != os.getpid()
    ]
    for stray in strays:
        _signal(stray, signal.SIGKILL)
    return strays


def end_idle_daemons(pid: int, *, seconds_min: float) -> list[int]:
    """End the forking daemons of a server that have been there for a while and have no worker now;
    their ids.

    Spark starts some for each session and keeps them when the session has ended. One that is still
    wanted is started again by Spark itself with the next task.
    """
    members = dict(_session_members(pid))
    parents = {each: int(fields[1]) for each in members if (fields := _stat(each)) is not None}
    working = set(parents.values())
    latest = _ticks_now() - seconds_min * os.sysconf("SC_CLK_TCK")
    # Workers are forks and look the same, but a daemon is the server's own child.
    idle = [
        member
        for member, parent in parents.items()
        if parent == pid
        and member not in working
        and members[member] <= latest
        and _DAEMON in _command(member)
    ]
    for daemon in idle:
        _signal(daemon, signal.SIGTERM)
    return idle


def _command(pid: int) -> list[bytes]:
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def _ticks_now() -> float:
    """Since the machine's boot, in the unit of processes' start times."""
    try:
        seconds = float((_PROC / "uptime").read_text().split()[0])
    except OSError:
        return 0.0
    return seconds * os.sysconf("SC_CLK_TCK")


def _session_members(session: int) -> Iterator[tuple[int, int]]:
    for entry in _PROC.glob("[0-9]*"):
        fields = _stat(int(entry.name))
        if fields is not None and int(fields[3]) == session and fields[0] not in "ZX":
            yield int(entry.name), int(fields[19])


def _stat(pid: int) -> list[str] | None:
    """The fields behind the name of the program, which may contain anything."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def _boot_id() -> str:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "boot"


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _reap(pid: int) -> None:
    """A child of ours that has ended keeps its id until it is asked for."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
