"""Sets the scene: a broker unless there is one, the topics, and each service as its own process.

Children end when their standard input does, so they end with this process however it ends. They are
distinguished by process id; nothing else is ever signalled.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from moldau.testing import Broker
from orders import topics
from orders.services import NAMES

__all__ = ["Stage", "StageError"]

_START_S_MAX: Final = 60.0
_STOP_S_MAX: Final = 15.0
#: What `kill_next` kills, in turn.
_KILLED: Final = ("aggregator", "inventory", "fraud", "emails", "order-details", "payments")


class StageError(Exception):
    """Something did not start or ended by itself; the text says where to read on."""


class Stage:
    def __init__(self, folder: Path, bootstrap_servers: str | None = None) -> None:
        self.folder = folder
        self.mailbox = folder / "mailbox"
        self.bootstrap_servers = bootstrap_servers or ""
        self.url = ""
        self._closing = ExitStack()
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self.kills = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop_children()
        self._closing.close()

    def log(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.log"

    def pids(self) -> dict[str, int]:
        return {name: child.pid for name, child in self._children.items()}

    def start_broker(self) -> None:
        if not self.bootstrap_servers:
            data = self.folder / "broker"
            data.mkdir(parents=True, exist_ok=True)
            self.bootstrap_servers = self._closing.enter_context(
                Broker(data=data)
            ).bootstrap_servers
        topics.create(self.bootstrap_servers)

    def start_services(self) -> None:
        """Returns when orders are taken. The others may still be starting: nothing gets lost."""
        self.log("x").parent.mkdir(parents=True, exist_ok=True)
        self._address_file = self.folder / "orders.address"
        self._address_file.unlink(missing_ok=True)
        for name in NAMES:
            self._start(name)
        deadline = time.monotonic() + _START_S_MAX
        while not self._address_file.exists():
            self.check()
            if time.monotonic() > deadline:
                raise StageError(f"no orders service in {_START_S_MAX:.0f} s: {self.log('orders')}")
            time.sleep(0.05)
        self.url = self._address_file.read_text()

    def _start(self, name: str) -> None:
        command = [sys.executable, "-m", "orders.services", name, "--end-with-stdin",
                   "--bootstrap-server", self.bootstrap_servers, "--port", "0",
                   "--address-file", str(self.folder / "orders.address"),
                   "--mailbox", str(self.mailbox)]  # fmt: skip
        # The package is found by the children wherever this process has found it.
        paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, paths)))
        with self.log(name).open("ab") as output:
            self._children[name] = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                # Ctrl-C is for the demo, which ends its children when orders have drained.
                start_new_session=True,
            )

    def check(self) -> None:
        """Raises if a service has ended by itself."""
        for name, child in self._children.items():
            if child.poll() is not None:
                raise StageError(
                    f"service {name} ended with {child.returncode}, see {self.log(name)}:\n"
                    + _last_lines(self.log(name))
                )

    def kill_next(self) -> str:
        """Kills a service as a crash would, in the middle of whatever it does, and starts it
        again."""
        name = _KILLED[self.kills % len(_KILLED)]
        self.kills += 1
        child = self._children.pop(name)
        child.kill()
        child.wait()
        if child.stdin is not None:
            child.stdin.close()
        self._start(name)
        return name

    def _stop_children(self) -> None:
        for child in self._children.values():
            if child.stdin is not None:
                child.stdin.close()
        deadline = time.monotonic() + _STOP_S_MAX
        for child in self._children.values():
            try:
                child.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        self._children.clear()


def _last_lines(path: Path, count: int = 5) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-count:])
