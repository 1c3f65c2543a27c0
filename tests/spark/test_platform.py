"""Spark as a part of `moldau up`: started with it, and gone with it, however it ends."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from moldau.cli.brokers.start_with_spark import look
from moldau.pipelines.control.folder import ControlFolder
from moldau.spark.runtime.server import ConnectServer
from support.platform import Platform, are_gone, is_free
from support.waiting import eventually

START_SECONDS_MAX = 300


@pytest.mark.long("a Spark server of its own; test_platform kills the command without one")
def test_nothing_survives_the_command_with_spark(tmp_path: Path) -> None:
    made = Platform(tmp_path)
    command = made.open("--port", "0", "--only", "broker", "--spark")
    folder = made.data / "spark"
    eventually(
        lambda: (made.data / "status.json").exists() and made.status()["allUp"],
        what="the platform is up",
        seconds_max=START_SECONDS_MAX,
    )
    server, control = ConnectServer(folder), ControlFolder(folder)
    eventually(
        lambda: look(server, control).spark is not None,
        what="Spark is up",
        seconds_max=START_SECONDS_MAX,
    )
    seen = look(server, control)
    processes = {each.pid: each for each in made.processes()}
    # The control loop and Spark are not children of the command, but they belong to it.
    for pid in (seen.loop, seen.spark):
        assert pid is not None
        process = psutil.Process(pid)
        processes |= {each.pid: each for each in (process, *process.children(recursive=True))}
    ports = made.ports()
    command.kill()
    command.wait()
    eventually(
        lambda: are_gone(list(processes.values())), what="all of it has ended", seconds_max=120
    )
    assert all(map(is_free, ports))
    made.call("destroy", "--yes")
