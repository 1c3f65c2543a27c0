"""Servers started by the lines that a command prints, as a user would paste them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.ports import free_port
from support.waiting import eventually


def consecutive_ports(count: int) -> int:
    ports = [free_port()]
    while len(ports) < count:
        port = free_port()
        # They are given out downwards.
        ports = [port, *ports] if port == ports[0] - 1 else [port]
    return ports[0]


@contextmanager
def started(*commands: str, folder: Path) -> Iterator[None]:
    """Servers by the lines that a user would paste, each in a shell of its own."""
    running: list[subprocess.Popen[bytes]] = []
    try:
        for number, command in enumerate(commands):
            log = folder / f"server-{number}.log"
            with log.open("wb") as output:
                # exec: the process that is ended is the server, not its shell.
                running.append(
                    subprocess.Popen(
                        ["bash", "-c", f"exec {command}"], cwd=folder, stdout=output, stderr=output
                    )
                )
            if number == len(commands) - 1:
                for each in range(len(commands)):
                    eventually(
                        lambda path=folder / f"server-{each}.log": (
                            "Kafka Server started" in path.read_text()
                        ),
                        what=f"server {each} has started",
                    )
        yield
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(60)
