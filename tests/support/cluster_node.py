"""One node of a cluster under test: a process on 127.0.0.1, of Moldau or of Apache Kafka."""

from __future__ import annotations

import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from support import forks
from support.cli import moldau_cli
from support.ports import free_port
from support.processes import (
    SERVER_CLASSES,
    START_SECONDS_MAX,
    BrokerProcess,
    java,
    kafka_tool,
)

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
BROKER, CONTROLLER = "broker", "controller"
# No outgoing connection takes it while its node is down.
lasting_port = free_port


class ClusterNode(BrokerProcess):
    """One node; `port` is where clients reach it, or its controller listener if it has no other."""

    def __init__(
        self, node_id: int, roles: Sequence[str], kind: str, folder: Path, with_proxy: bool
    ) -> None:
        self.node_id = node_id
        self.roles = tuple(roles)
        self.kind = kind
        self.folder = folder
        self.listeners = {"PLAINTEXT": free_port()} if BROKER in roles else {}
        if CONTROLLER in roles:
            self.listeners["CONTROLLER"] = free_port()
        self.advertised = {
            name: free_port() if with_proxy else port for name, port in self.listeners.items()
        }
        self.config = folder / "server.properties"
        self.properties: dict[str, str] = {}
        super().__init__(
            self._command(), next(iter(self.advertised.values())), folder / f"{kind}.log"
        )
        self.paused = False

    def _command(self) -> list[str]:
        if self.kind == "moldau":
            return [sys.executable, "-m", "moldau.cli", "server-start", str(self.config)]
        temporary = f"-Djava.io.tmpdir={self.config.parent}"
        return [*java(SERVER_CLASSES, temporary), "kafka.Kafka", str(self.config)]

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def format(self, *how: str, cluster_id: str = CLUSTER_ID) -> None:
        """Moldau's folders in this process: not in several threads at once."""
        arguments = ("format", "-t", cluster_id, "-c", str(self.config), *how)
        if self.kind == "moldau":
            ended = moldau_cli("storage", *arguments)
            code, said = ended.status, ended.out + ended.err
        else:
            done = kafka_tool("kafka.tools.StorageTool", *arguments)
            code, said = done.returncode, done.stdout + done.stderr
        if code:
            raise RuntimeError(said)

    def spawn(self) -> None:
        """Start the process and wait for nothing."""
        assert not self.is_running
        self.process = forks.start(self.command, self.log)

    def wait_until_listening(self) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        own = next(iter(self.listeners.values()))
        while True:
            if not self.is_running:
                raise RuntimeError(f"node {self.node_id} ended at start:\n{self.output()}")
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", own), timeout=1).close()
                return
            if time.monotonic() > deadline:
                raise RuntimeError(f"node {self.node_id} does not listen:\n{self.output()}")
            time.sleep(0.01)

    def start(self) -> ClusterNode:
        self.spawn()
        self.wait_until_listening()
        return self

    def kill(self) -> None:
        super().kill()
        self.paused = False

    def pause(self) -> None:
        """SIGSTOP: it lives, holds its connections, and does nothing."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        self.paused = True

    def resume(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)
        self.paused = False

    def ends(self, seconds_max: float = START_SECONDS_MAX) -> int:
        """The exit code of a process that is expected to end by itself."""
        assert self.process is not None
        return self.process.wait(seconds_max)
