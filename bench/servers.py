"""The servers that are measured: Moldau, Apache Kafka, and bare sinks that show the limit.

Each is a process of its own on 127.0.0.1, started by a context manager and stopped by its id.
"""

from __future__ import annotations

import os
import random
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from confluent_kafka.admin import AdminClient, NewTopic

ROOT = Path(__file__).resolve().parent.parent
KAFKA_JARS = ROOT / ".cache" / "kafka"
START_SECONDS_MAX = 180.0


@dataclass(frozen=True, slots=True)
class Server:
    name: str
    port: int
    pid: int
    started: float
    start_seconds: float
    #: The certificate that its clients trust, if its listener has TLS.
    ca: str | None = None

    @property
    def client_config(self) -> dict[str, str | int]:
        """How confluent-kafka reaches it."""
        config: dict[str, str | int] = {"bootstrap.servers": self.bootstrap, "log_level": 3}
        if self.ca is not None:
            config |= {"security.protocol": "SSL", "ssl.ca.location": self.ca}
        return config

    def connect(self) -> socket.socket:
        """A bare socket, encrypted if the listener is."""
        connection = socket.create_connection(("127.0.0.1", self.port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.ca is None:
            return connection
        tls = ssl.create_default_context(cafile=self.ca)
        return tls.wrap_socket(connection, server_hostname="127.0.0.1")

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def cpu_seconds(self) -> float:
        times = psutil.Process(self.pid).cpu_times()
        return times.user + times.system

    def main_thread_seconds(self) -> float:
        """The CPU time of its first thread, in nanoseconds' resolution: Moldau's event loop."""
        return int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[0]) / 1e9

    def memory_mb(self) -> float:
        return psutil.Process(self.pid).memory_info().rss / 1e6

    def create_topic(self, name: str, partitions: int = 1) -> None:
        admin = AdminClient(self.client_config)
        for future in admin.create_topics([NewTopic(name, partitions, 1)]).values():
            future.result(60)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def lasting_port() -> int:
    """A port that no outgoing connection takes while its node is down."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def wait_until_listening(
    port: int, process: subprocess.Popen[bytes], seconds_max: float = START_SECONDS_MAX
) -> None:
    deadline = time.monotonic() + seconds_max
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args!r} ended with {process.returncode} at start")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.002)
    raise RuntimeError(f"{process.args!r} did not listen within {seconds_max:.0f} s")


def environment() -> dict[str, str]:
    """As a user has it: without this variable Python keeps compiled modules between starts."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


@contextmanager
def _running(name: str, port: int, command: list[str], folder: Path) -> Iterator[Server]:
    with (folder / f"{name}.out").open("wb") as output:
        started = time.monotonic()
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, cwd=folder, env=environment()
        )
        try:
            wait_until_listening(port, process)
            yield Server(name, port, process.pid, started, time.monotonic() - started)
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def scratch_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="moldau-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def moldau(*overrides: str, python: str = sys.executable, name: str = "moldau") -> Iterator[Server]:
    """`python` is that of another checkout's environment if that one is measured."""
    with scratch_folder() as folder:
        port = free_port()
        command = [python, "-m", "moldau.cli", "start", "--port", str(port)]
        command += ["--data", str(folder / "data")]
        for override in overrides:
            command += ["--override", override]
        with _running(name, port, command, folder) as server:
            yield server


def kafka_available() -> bool:
    return shutil.which("java") is not None and any(KAFKA_JARS.glob("kafka_2.13-*.jar"))


@contextmanager
def apache_kafka(*overrides: str) -> Iterator[Server]:
    """Apache Kafka with its own defaults: one combined node, G1 and a 1 GB heap as its scripts."""
    with scratch_folder() as folder:
        port, controller = free_port(), free_port()
        properties = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(folder / "data"),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
        } | dict(override.split("=", 1) for override in overrides)
        config = folder / "server.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        java = ["java", "-Xmx1G", "-Xms1G", "-XX:+UseG1GC", "-cp", f"{KAFKA_JARS}/*"]
        tool = ["kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "--standalone"]
        subprocess.run([*java, *tool, "-c", str(config)], check=True, capture_output=True)
        with _running("kafka", port, [*java, "kafka.Kafka", str(config)], folder) as server:
            yield server


@contextmanager
def produce_sink() -> Iterator[Server]:
    """The C sink that acknowledges and forgets (bench/sink.c)."""
    with scratch_folder() as folder:
        binary = folder / "sink"
        source = Path(__file__).parent / "sink.c"
        subprocess.run(["cc", "-O2", "-o", str(binary), str(source)], check=True)
        process = subprocess.Popen([str(binary)], stdout=subprocess.PIPE)
        try:
            assert process.stdout is not None
            yield Server("sink", int(process.stdout.readline()), process.pid, 0.0, 0.0)
        finally:
            process.kill()
            process.wait()


@contextmanager
def bare_socket(mode: str) -> Iterator[Server]:
    """`bench.bare`: echoes requests (`echo`) or sends 1 MB answers (`send`) from plain sockets."""
    process = subprocess.Popen([sys.executable, "-m", "bench.bare", mode], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield Server(mode, int(process.stdout.readline()), process.pid, 0.0, 0.0)
    finally:
        process.kill()
        process.wait()
