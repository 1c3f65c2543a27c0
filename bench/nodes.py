"""Clusters that are measured: as many nodes of Moldau or of Apache Kafka, with the same settings.

Every node is broker and controller at once and a process of its own on 127.0.0.1. A broker's
session is shorter than the default, so that its death is noticed soon, and the same for both.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from bench.calls import Connection, Unreachable
from bench.servers import KAFKA_JARS, environment, lasting_port, wait_until_listening

TIMEOUTS = {
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "200",
    # Kafka's defaults: on two cores three nodes are late often enough for shorter ones to mislead.
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "2000",
}
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
SETTLE_SECONDS_MAX = 180.0
STOP_SECONDS_MAX = 60.0
JAVA = ["java", "-Xmx1G", "-Xms512M", "-XX:+UseG1GC", "-cp", f"{KAFKA_JARS}/*"]


@dataclass(slots=True)
class Node:
    node_id: int
    port: int
    controller_port: int
    folder: Path
    command: list[str]
    process: subprocess.Popen[bytes] | None = None

    @property
    def metadata_log(self) -> Path:
        return self.folder / "data" / "__cluster_metadata-0"

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        with (self.folder / "output.log").open("ab") as output:
            self.process = subprocess.Popen(
                self.command, stdout=output, stderr=output, cwd=self.folder, env=environment()
            )

    def wait_until_listening(self) -> None:
        assert self.process is not None
        wait_until_listening(self.port, self.process, SETTLE_SECONDS_MAX)

    def kill(self) -> float:
        """SIGKILL; when it was sent, as time.time()."""
        assert self.process is not None
        self.process.kill()
        sent = time.time()
        self.process.wait()
        return sent

    def stop(self) -> int:
        """SIGTERM, and wait for the end; the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise RuntimeError(
                f"node {self.node_id} did not stop within {STOP_SECONDS_MAX:.0f} s"
            ) from None


@dataclass(slots=True)
class Nodes:
    """A running cluster."""

    name: str
    nodes: list[Node] = field(default_factory=list)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    @property
    def running(self) -> list[Node]:
        return [node for node in self.nodes if node.running]

    def by_id(self, node_id: int) -> Node:
        return next(node for node in self.nodes if node.node_id == node_id)

    def cpu_seconds(self) -> float:
        times = [process.cpu_times() for process in self._processes()]
        return sum(each.user + each.system for each in times)

    def memory_mb(self) -> float:
        return sum(process.memory_info().rss for process in self._processes()) / 1e6

    def _processes(self) -> list[psutil.Process]:
        return [psutil.Process(node.process.pid) for node in self.nodes if node.process]

    def restart(self, node: Node) -> None:
        node.start()
        node.wait_until_listening()
        self.settle()

    def settle(self) -> None:
        """Wait until every node knows of all nodes."""
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        for node in self.nodes:
            while True:
                try:
                    with Connection(node.port) as to:
                        if len(to.metadata().brokers) == len(self.nodes):
                            break
                except Unreachable:
                    pass
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{self.name}: node {node.node_id} does not know all nodes")
                time.sleep(0.05)

    def active_controller(self) -> Node:
        """The node whose controller leads the quorum."""
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        while time.monotonic() < deadline:
            for node in self.running:
                try:
                    with Connection(node.controller_port) as to:
                        if to.is_quorum_leader():
                            return node
                except Unreachable:
                    continue
            time.sleep(0.01)
        raise RuntimeError(f"{self.name} has no active controller")


def _properties(node: Node, voters: str, count: int, overrides: dict[str, str]) -> dict[str, str]:
    replicas, in_sync = str(min(3, count)), "2" if count >= 3 else "1"
    return {
        "process.roles": "broker,controller",
        "node.id": str(node.node_id),
        "listeners": f"PLAINTEXT://127.0.0.1:{node.port},"
        f"CONTROLLER://127.0.0.1:{node.controller_port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": voters,
        "log.dirs": str(node.folder / "data"),
        "default.replication.factor": replicas,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": replicas,
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": in_sync,
        "group.initial.rebalance.delay.ms": "0",
        "auto.create.topics.enable": "false",
        # Leaders move only when a measurement moves them.
        "auto.leader.rebalance.enable": "false",
        **TIMEOUTS,
        **overrides,
    }


@contextmanager
def running(name: str, count: int = 3, **overrides: str) -> Iterator[Nodes]:
    """A cluster of `count` nodes of "moldau" or "kafka"."""
    root = Path(tempfile.mkdtemp(prefix=f"moldau-bench-{name}-"))
    cluster = Nodes(name)
    try:
        for node_id in range(1, count + 1):
            folder = root / f"node-{node_id}"
            folder.mkdir()
            file = str(folder / "server.properties")
            if name == "moldau":
                command = [sys.executable, "-m", "moldau.cli", "server-start", file]
            else:
                command = [*JAVA, "kafka.Kafka", file]
            cluster.nodes.append(Node(node_id, lasting_port(), lasting_port(), folder, command))
        voters = ",".join(f"{n.node_id}@127.0.0.1:{n.controller_port}" for n in cluster.nodes)
        for node in cluster.nodes:
            keys = {key.replace("_", "."): value for key, value in overrides.items()}
            properties = _properties(node, voters, count, keys)
            text = "".join(f"{key}={value}\n" for key, value in properties.items())
            (node.folder / "server.properties").write_text(text)
            _format(name, node)
        for node in cluster.nodes:
            node.start()
        for node in cluster.nodes:
            node.wait_until_listening()
        cluster.settle()
        yield cluster
    except BaseException:
        _show_logs(cluster)
        raise
    finally:
        for node in cluster.nodes:
            if node.running:
                assert node.process is not None
                node.process.kill()
                node.process.wait()
        shutil.rmtree(root, ignore_errors=True)


def _format(name: str, node: Node) -> None:
    if name == "moldau":
        tool = [sys.executable, "-m", "moldau.cli", "storage"]
    else:
        tool = [*JAVA, "kafka.tools.StorageTool"]
    file = str(node.folder / "server.properties")
    subprocess.run([*tool, "format", "-t", CLUSTER_ID, "-c", file], check=True, capture_output=True)


def _show_logs(cluster: Nodes) -> None:
    """What the nodes said last, where a measurement failed."""
    for node in cluster.nodes:
        log = node.folder / "output.log"
        if log.exists():
            lines = log.read_text(errors="replace").splitlines()[-15:]
            print(f"--- {cluster.name} node {node.node_id}", *lines, sep="\n", file=sys.stderr)
