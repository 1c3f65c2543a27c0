"""`moldau cluster` as a developer uses it: one command, three nodes, one dies, Ctrl-C."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from support.processes import BrokerProcess
from support.waiting import eventually

STOP_SECONDS_MAX = 90


class ClusterCommand:
    """The command in a process of its own, its output in a file."""

    def __init__(self, data: Path, output: Path, *options: str) -> None:
        self.data = data
        self._output = output
        command = [sys.executable, "-m", "moldau.cli", "cluster", "--port", "0"]
        with output.open("wb") as file:
            self.process = subprocess.Popen(
                [*command, "--data", str(data), *options], stdout=file, stderr=file
            )
        eventually(self._is_up_or_ended, what="the cluster is up", seconds_max=90)
        assert self.process.poll() is None, self.output()

    def _is_up_or_ended(self) -> bool:
        return "Ctrl-C stops it." in self.output() or self.process.poll() is not None

    def output(self) -> str:
        return self._output.read_text()

    @property
    def addresses(self) -> list[str]:
        return re.findall(r"node \d+ +PLAINTEXT://(\S+) \(broker, controller\)", self.output())

    @property
    def bootstrap(self) -> str:
        return ",".join(self.addresses)

    def nodes(self) -> dict[str, psutil.Process]:
        """Running nodes by name."""
        found = {}
        for child in psutil.Process(self.process.pid).children():
            names = re.findall(r"node-\d+(?=\.properties)", " ".join(child.cmdline()))
            found |= dict.fromkeys(names, child)
        return found

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(STOP_SECONDS_MAX)


@pytest.fixture
def no_orphans(tmp_path: Path) -> Iterator[None]:
    """Ends what a failed test leaves running."""
    yield
    for process in _processes_of(tmp_path):
        process.kill()


def _processes_of(folder: Path) -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if any(word.startswith(str(folder)) for word in process.info["cmdline"] or ())
        and process.status() != psutil.STATUS_ZOMBIE
    ]


def write(bootstrap: str, first: int, count: int) -> None:
    """Records first, first+1, ...; all are acknowledged by all replicas in sync."""
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failed.append(error)

    producer = Producer({
        "bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0,
    })  # fmt: skip
    for number in range(first, first + count):
        producer.produce("greetings", b"%d" % number, partition=0, on_delivery=delivered)
    assert producer.flush(60) == 0
    assert failed == []


def read(bootstrap: str, count: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "any", "log_level": 0})
    consumer.assign([TopicPartition("greetings", 0, 0)])
    found: list[int] = []
    deadline = time.monotonic() + 60
    while len(found) < count and time.monotonic() < deadline:
        for message in consumer.consume(count, timeout=1):
            assert message.error() is None
            found.append(int(message.value() or b"-1"))
    consumer.close()
    return found


@pytest.mark.usefixtures("no_orphans")
@pytest.mark.slow("three nodes start twice, one of them three times")
def test_three_nodes_of_which_one_dies(tmp_path: Path) -> None:
    data = tmp_path / "cluster"
    first = ClusterCommand(data, tmp_path / "first.out")
    assert len(first.addresses) == 3
    assert sorted(first.nodes()) == ["node-1", "node-2", "node-3"]
    write(first.bootstrap, 0, 100)
    assert read(first.bootstrap, 100) == list(range(100))
    admin = AdminClient({"bootstrap.servers": first.bootstrap, "log_level": 0})
    partition = admin.list_topics("greetings", timeout=30).topics["greetings"].partitions[0]
    assert sorted(partition.replicas) == [1, 2, 3]

    # Its leader dies: the others go on, and the command says what to do.
    name = f"node-{partition.leader}"
    first.nodes()[name].kill()
    eventually(lambda: "To start it again" in first.output(), what="the death is reported")
    assert f"{name} was killed by SIGKILL" in first.output()
    assert len(first.nodes()) == 2
    write(first.bootstrap, 100, 100)
    assert read(first.bootstrap, 200) == list(range(200))

    # What it says works, and is noticed.
    (advice,) = re.findall(r"To start it again: \S*moldau (.*)", first.output())
    port = int(first.addresses[partition.leader - 1].rpartition(":")[2])
    command = [sys.executable, "-m", "moldau.cli", *shlex.split(advice)]
    # No fork: nodes are recognised by their command lines.
    with BrokerProcess(["env", *command], port, tmp_path / "again.log") as again:
        eventually(lambda: "is up." in again.log.read_text(), what="it is up again", seconds_max=60)
        back = f"{name} is back on 127.0.0.1:{port} (process {again.pid})."
        eventually(lambda: back in first.output(), what="its return is reported")
        write(first.bootstrap, 200, 100)

        # A node did not end well, so neither did the command; those that were left did, also the
        # one that was started by hand.
        assert first.interrupt() == 1
        assert again.process is not None
        assert again.process.wait(STOP_SECONDS_MAX) == 0
    assert _processes_of(data) == []
    assert len(list(data.glob("node-*/.kafka_cleanshutdown"))) == 3
    assert "Traceback" not in "".join(log.read_text() for log in data.glob("*.log"))

    # Other ports, as many nodes as before, and everything is there.
    second = ClusterCommand(data, tmp_path / "second.out")
    assert sorted(second.nodes()) == ["node-1", "node-2", "node-3"]
    assert read(second.bootstrap, 300) == list(range(300))
    assert second.interrupt() == 0
    assert second.output().endswith("all data is on disk.\n")
    assert len(list(data.glob("node-*/.kafka_cleanshutdown"))) == 3
    assert _processes_of(data) == []


@pytest.mark.usefixtures("no_orphans")
def test_nodes_end_with_a_command_that_is_killed(tmp_path: Path) -> None:
    data = tmp_path / "cluster"
    cluster = ClusterCommand(data, tmp_path / "one.out", "--brokers", "1")
    cluster.process.kill()
    cluster.process.wait()
    eventually(lambda: not _processes_of(data), what="its node has ended", seconds_max=60)
    assert (data / "node-1" / ".kafka_cleanshutdown").exists()


@pytest.mark.usefixtures("no_orphans")
def test_a_node_that_dies_is_restarted_if_asked(tmp_path: Path) -> None:
    data = tmp_path / "cluster"
    cluster = ClusterCommand(data, tmp_path / "one.out", "--brokers", "1", "--restart")
    write(cluster.bootstrap, 0, 10)
    cluster.nodes()["node-1"].kill()
    eventually(lambda: "node-1 is back on" in cluster.output(), what="it is back", seconds_max=60)
    killed = cluster.output().partition("node-1 was killed by SIGKILL.")[2]
    assert "node-1 will be restarted in 1 s." in killed
    assert "Try it" not in killed
    assert read(cluster.bootstrap, 10) == list(range(10))
    assert cluster.interrupt() == 0
    assert _processes_of(data) == []


@pytest.mark.usefixtures("no_orphans")
def test_a_node_that_runs_already_is_recognised(tmp_path: Path) -> None:
    data = tmp_path / "cluster"
    cluster = ClusterCommand(data, tmp_path / "one.out", "--brokers", "1")
    port = int(cluster.bootstrap.rpartition(":")[2])
    assert cluster.interrupt() == 0
    # By a path that counts from where it was started.
    command = [sys.executable, "-m", "moldau.cli", "start", "node-1.properties"]
    with BrokerProcess(["env", "-C", str(data), *command], port, tmp_path / "alone.log") as alone:
        refused = subprocess.run(
            [sys.executable, "-m", "moldau.cli", "cluster", "--port", "0", "--data", str(data)],
            capture_output=True,
            text=True,
            timeout=STOP_SECONDS_MAX,
            check=False,
        )
        assert refused.returncode == 1
        assert f"node-1 (process {alone.pid}) of the cluster in {data}" in refused.stderr
        assert f"kill {alone.pid}" in refused.stderr
