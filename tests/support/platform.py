"""The whole platform of `moldau up` in a test, driven by its commands."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil


class Platform:
    """A platform in its own directory, driven by its commands."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "platform"
        self.environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}

    def call(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "moldau.cli", *words, "--data", str(self.data)],
            env=self.environment,
            cwd=self.data.parent,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def open(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "moldau.cli", "up", *words, "--data", str(self.data)],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def status(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads((self.data / "status.json").read_text())
        return answer

    def services(self) -> dict[str, dict[str, Any]]:
        return {one["name"]: one for one in self.status()["services"]}

    def processes(self) -> list[psutil.Process]:
        """Everything that runs for it: the command and all below it."""
        top = psutil.Process(self.status()["pid"])
        return [top, *top.children(recursive=True)]

    def ports(self) -> list[int]:
        addresses = [one["address"] for one in self.status()["services"] if one["address"]]
        return [int(address.rpartition(":")[2]) for address in addresses]


def are_gone(processes: list[psutil.Process]) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=0.1)
    return all(process.status() == psutil.STATUS_ZOMBIE for process in alive)


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
