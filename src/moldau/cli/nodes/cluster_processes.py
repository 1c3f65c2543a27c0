"""Processes of a cluster's nodes: those that `moldau cluster` started, and those started by hand.

A node that was started again with `moldau start node-2.properties` is not a child of this process:
it is found by its command line and can be watched and stopped, but its exit code is not known.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from moldau.cli.nodes.machine.cluster_plan import NodePlan
from moldau.cli.nodes.machine.cluster_watch import last_lines
from moldau.cli.nodes.stop import Broker, matching_brokers

__all__ = ["AdoptedProcess", "Child", "NodeProcess", "running_nodes"]

_POLL_S = 0.1


class NodeProcess(Protocol):
    """A node's process, however it was started."""

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None: ...

    async def wait(self) -> int: ...

    def send_signal(self, signal: int, /) -> None: ...

    def kill(self) -> None: ...


class AdoptedProcess:
    """A process that is not a child of this one. Its unknown exit code counts as success."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._ended = False

    @property
    def returncode(self) -> int | None:
        if not self._ended:
            self._send(0)
            self._ended = self._ended or _is_zombie(self.pid)
        return 0 if self._ended else None

    async def wait(self) -> int:
        while self.returncode is None:  # noqa: ASYNC110 - nothing reports the end of such a process
            await asyncio.sleep(_POLL_S)
        return 0

    def send_signal(self, number: int, /) -> None:
        self._send(number)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        try:
            os.kill(self.pid, number)
        except (ProcessLookupError, PermissionError):
            # Gone, or its number is another user's process by now.
            self._ended = True


@dataclass(slots=True)
class Child:
    """A node of the cluster and the process that runs it."""

    node: NodePlan
    log: Path
    log_start: int  # earlier output in the file is of earlier starts
    process: NodeProcess
    started_s: float

    def output(self) -> bytes:
        with self.log.open("rb") as file:
            file.seek(self.log_start)
            return file.read()

    def last_lines(self) -> list[str]:
        lines = last_lines(self.output().decode(errors="replace"))
        return [f"  | {line}" for line in lines]


def _is_zombie(pid: int) -> bool:
    """Whether it has ended and its parent has not read the exit code."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return state[:1] == ["Z"]


def running_nodes(data: Path) -> dict[str, int]:
    """Nodes of the cluster in `data` that run now, by name: their process ids."""
    listing = subprocess.run(
        ["ps", "-axwwo", "pid=,args="], capture_output=True, text=True, check=False
    )
    return dict(_nodes_of(data, matching_brokers(listing.stdout)))


def _nodes_of(data: Path, brokers: Iterable[Broker]) -> Iterable[tuple[str, int]]:
    for broker in brokers:
        if broker.file is None:
            continue
        file = Path(os.path.abspath(_folder_of(broker.pid) / broker.file))
        if file.parent == data and file.name.startswith("node-"):
            yield file.stem, broker.pid


def _folder_of(pid: int) -> Path:
    """The directory of relative paths on a process's command line."""
    try:
        return Path(os.readlink(f"/proc/{pid}/cwd"))
    except OSError:
        # This system has no such directory, or it is not readable.
        return Path.cwd()
