"""A start that is refused or given up leaves the marks of a clean stop: the next one need not
recover what nobody has changed."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from moldau.client import Admin
from support.ports import free_port
from support.processes import BrokerProcess, kafka_properties, write_properties
from support.waiting import eventually

START_SECONDS_MAX = 120


class Place:
    """A node's folders and configuration; it has run once and was stopped cleanly."""

    def __init__(self, folder: Path, **changes: str) -> None:
        self.port = free_port()
        self.folder = folder
        self.data = [folder / "data-1", folder / "data-2"]
        self.properties = kafka_properties(folder, self.port) | {
            "log.dirs": ",".join(map(str, self.data))
        }
        self.properties |= changes
        self.run("storage", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "--standalone", "-c")
        with self.running():
            pass
        self.left = self.found()

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        config = write_properties(self.folder / "server.properties", self.properties)
        command = [sys.executable, "-m", "moldau.cli", *words, str(config)]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=START_SECONDS_MAX, check=False
        )

    def broker(self, **changes: str) -> BrokerProcess:
        config = write_properties(self.folder / "server.properties", self.properties | changes)
        command = [sys.executable, "-m", "moldau.cli", "server-start", str(config)]
        return BrokerProcess(command, self.port, self.folder / "moldau.log")

    @contextmanager
    def running(self) -> Iterator[None]:
        """While it serves clients, which is later than that it listens."""
        with self.broker() as broker, Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.describe_cluster()
            yield

    @property
    def marks(self) -> list[Path]:
        return [each / ".kafka_cleanshutdown" for each in self.data]

    def found(self) -> list[str]:
        return [mark.read_text() for mark in self.marks]


def test_a_port_in_use(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with socket.create_server(("127.0.0.1", place.port)):
        refused = place.run("server-start")
    assert refused.returncode == 1
    assert f"127.0.0.1:{place.port}" in refused.stderr
    assert place.found() == place.left
    with place.running():
        assert not any(mark.exists() for mark in place.marks)


def test_a_folder_for_metadata_that_is_anothers(tmp_path: Path) -> None:
    metadata = tmp_path / "metadata"
    place = Place(tmp_path, **{"metadata.log.dir": str(metadata)})
    owner = metadata / "meta.properties"
    owner.write_text(owner.read_text().replace("node.id=1", "node.id=7"))
    refused = place.run("server-start")
    assert refused.returncode == 1
    assert "is of node 7" in refused.stderr
    assert place.found() == place.left


@pytest.mark.parametrize("separate", [False, True])
def test_a_start_that_is_given_up_while_it_waits_for_controllers(
    tmp_path: Path, separate: bool
) -> None:
    place = Place(tmp_path, **({"metadata.log.dir": str(tmp_path / "m")} if separate else {}))
    alone = {
        "process.roles": "broker",
        "listeners": f"PLAINTEXT://127.0.0.1:{place.port}",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{free_port()}",
    }
    broker = place.broker(**alone)
    with broker.log.open("ab") as output:
        broker.process = subprocess.Popen(broker.command, stdout=output, stderr=output)
    try:
        # From here on it may change something.
        eventually(lambda: not any(mark.exists() for mark in place.marks), what="it has begun")
        assert broker.stop() == 0, broker.output()
        assert place.found() == place.left
    finally:
        broker.kill()
