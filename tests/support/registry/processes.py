"""Registries in processes of their own, as an operator starts them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from support.ports import free_port
from support.processes import write_properties
from support.registry.client import RestClient

__all__ = ["RegistryProcess"]

_START_SECONDS_MAX = 60.0


class RegistryProcess:
    """`with` starts it and ends it; it may be killed before."""

    def __init__(self, folder: Path, name: str, properties: dict[str, str]) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = RestClient(self.url)
        self.log = folder / f"{name}.log"
        file = write_properties(
            folder / f"{name}.properties",
            {
                "listeners": self.url,
                "kafkastore.timeout.ms": "10000",
                **properties,
            },
        )
        self._command = [sys.executable, "-m", "moldau.cli", "registry", "start", str(file)]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> RegistryProcess:
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(self._command, stdout=output, stderr=output)
        deadline = time.monotonic() + _START_SECONDS_MAX
        while "Ctrl-C stops it" not in self.output():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"the registry did not start:\n{self.output()}")
            time.sleep(0.02)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(20)
            finally:
                self.kill()

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def pause(self) -> None:
        """Stop it without its noticing, as a machine that hangs."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    @property
    def is_primary(self) -> bool:
        health = self.client.ask("GET", "/health", headers={"Accept": "application/json"})
        return bool(health.json["is_primary"])
