"""Brokers under test: Moldau, and Apache Kafka as the control, each a process on 127.0.0.1.

Ready means that a connection is accepted; both servers listen only when they can serve. Processes
are stopped by their id, and their output is kept for the failure report.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from support import forks
from support.forks import Process
from support.ports import free_port

__all__ = [
    "KAFKA_JARS",
    "ROOT",
    "SERVER_CLASSES",
    "START_SECONDS_MAX",
    "TOOL_CLASSES",
    "BrokerProcess",
    "apache_kafka",
    "free_port",
    "java",
    "kafka_missing",
    "kafka_properties",
    "kafka_tool",
    "moldau",
    "write_properties",
]

ROOT = Path(__file__).resolve().parents[2]
KAFKA_JARS = ROOT / ".cache" / "kafka"
START_SECONDS_MAX = 240.0
STOP_SECONDS_MAX = 60.0
# What `make kafka` made of the classes that a server and that tools load.
SERVER_CLASSES, TOOL_CLASSES = KAFKA_JARS / "server.jsa", KAFKA_JARS / "tools.jsa"


def kafka_missing() -> str | None:
    """Why Apache Kafka cannot run here, or None."""
    if shutil.which("java") is None:
        return "no Java on this machine: Apache Kafka cannot run"
    if not any(KAFKA_JARS.glob("kafka_2.13-*.jar")):
        return "Apache Kafka's jars are not here: `make kafka` fetches them where Maven is"
    return None


def java(classes: Path, *options: str) -> list[str]:
    """Java with Apache Kafka's jars, for a short life: compiling little, collecting simply and
    taking classes from an archive starts in a second instead of eight."""
    command = ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *options]
    # What the virtual machine itself warns of would be in the midst of what a program prints.
    command += ["-Xlog:disable", "-Xlog:all=error:stderr", "-XX:+DisplayVMOutputToStderr"]
    if classes.exists():
        command += [f"-XX:SharedArchiveFile={classes}"]
    return [*command, "-cp", f"{KAFKA_JARS}/*"]


def kafka_tool(class_name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one of Apache Kafka's own command line tools."""
    command = [*java(TOOL_CLASSES), class_name, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


class BrokerProcess:
    """A broker in a process of its own; `with` starts it and stops it cleanly."""

    def __init__(self, command: list[str], port: int, log: Path) -> None:
        self.command = command
        self.port = port
        self.log = log
        self.process: Process | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def data_folders(self) -> list[Path]:
        """Where the replicas are, of all nodes."""
        return [self.log.parent / "data"]

    def folder_of(self, topic: str, index: int = 0) -> Path:
        """The log of a partition; the leader's where there are several."""
        return self.log.parent / "data" / f"{topic}-{index}"

    def start(self) -> BrokerProcess:
        self.process = forks.start(self.command, self.log)
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline:
            if (code := self.process.poll()) is not None:
                raise RuntimeError(f"the broker ended at start with {code}:\n{self.output()}")
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return self
            except OSError:
                time.sleep(0.005)
        raise RuntimeError(f"no broker on {self.bootstrap} in time:\n{self.output()}")

    def output(self) -> str:
        return self.log.read_text(errors="replace")[-4000:]

    def stop(self) -> int:
        """Stop as an operator would; returns the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_SECONDS_MAX)
        finally:
            self.kill()

    def kill(self) -> None:
        """SIGKILL: no handler runs, nothing is flushed by the program."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
        if self.process is not None:
            self.process.wait()

    def __enter__(self) -> BrokerProcess:
        return self.start()

    def __exit__(self, *_: object) -> None:
        assert self.process is not None
        if self.process.poll() is None:
            self.stop()


def moldau(folder: Path, overrides: Iterable[str] = (), port: int | None = None) -> BrokerProcess:
    """Moldau on `folder/data`, as `moldau start` runs it."""
    folder.mkdir(parents=True, exist_ok=True)
    port = port or free_port()
    command = [sys.executable, "-m", "moldau.cli", "start"]
    command += ["--port", str(port), "--data", str(folder / "data")]
    for override in overrides:
        command += ["--override", override]
    return BrokerProcess(command, port, folder / "moldau.log")


def kafka_properties(folder: Path, port: int) -> dict[str, str]:
    """A combined single node: the same file serves Apache Kafka and Moldau."""
    controller = free_port()
    return {
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
        "group.initial.rebalance.delay.ms": "0",
    }


def write_properties(path: Path, properties: Mapping[str, str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return path


def apache_kafka(folder: Path, properties: Mapping[str, str] | None = None) -> BrokerProcess:
    """Apache Kafka on `folder/data`; the folder is formatted unless it already is."""
    port = free_port()
    settings = kafka_properties(folder, port) | dict(properties or {})
    config = write_properties(folder / "server.properties", settings)
    if not (Path(settings["log.dirs"]) / "meta.properties").exists():
        # It has this module's ways to start Java.
        from support.java import KafkaTools

        arguments = ("format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "--standalone", "-c", str(config))
        with KafkaTools("nobody:1") as tools:
            formatted = tools.run_alone("kafka.tools.StorageTool", *arguments)
        if formatted.status:
            raise RuntimeError(formatted.output)
    # What it unpacks there is left behind when it is killed.
    temporary = f"-Djava.io.tmpdir={folder}"
    command = [*java(SERVER_CLASSES, temporary), "kafka.Kafka", str(config)]
    return BrokerProcess(command, port, folder / "kafka.log")
