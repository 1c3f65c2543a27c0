"""`moldau spark start --foreground`, for containers; a small program is in Spark's place."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.pipelines import daemon
from moldau.spark.runtime.server import ConnectServer
from moldau.testing import Broker
from support.small_spark import MOLDAU, install
from support.waiting import eventually


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as made:
        yield made


class Foreground:
    def __init__(self, folder: Path, *more: str) -> None:
        self.folder = folder / "spark"
        self._output = folder / "output"
        with self._output.open("wb") as file:
            self.process = subprocess.Popen(
                [*MOLDAU, "spark", "start", "--foreground", "--data", str(self.folder), *more],
                stdout=file,
                stderr=file,
                env=install(folder),
            )

    @property
    def shown(self) -> str:
        return self._output.read_text()

    @property
    def server(self) -> ConnectServer:
        return ConnectServer(self.folder, stop_seconds_max=5)

    def wait_until_up(self) -> None:
        eventually(
            lambda: "pipelines  kept running by" in self.shown or self.process.poll() is not None,
            what=f"it is up: {self.shown}",
            seconds_max=120,
        )
        assert self.process.poll() is None, self.shown

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        daemon.kill(self.folder)
        self.server.kill()


@pytest.fixture
def running(tmp_path: Path, broker: Broker) -> Iterator[Foreground]:
    made = Foreground(tmp_path, "--bootstrap-server", str(broker.bootstrap_servers))
    try:
        made.wait_until_up()
        yield made
    finally:
        made.kill()


def test_a_signal_stops_everything(running: Foreground) -> None:
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(60) == 0, running.shown
    assert daemon.status(running.folder).pid is None
    assert not running.server.attach()


def test_a_lost_loop_ends_it_so_that_it_is_started_again(running: Foreground) -> None:
    loop = daemon.status(running.folder).pid
    assert loop is not None
    os.kill(loop, signal.SIGKILL)
    assert running.process.wait(90) == 1
    assert "the control loop has ended unexpectedly" in running.shown
    assert not running.server.attach()
