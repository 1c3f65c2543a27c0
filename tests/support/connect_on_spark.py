"""Two workers of Connect as an application on a Spark server of their own."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from moldau.config import dump_properties
from moldau.spark.hosting.places import ApplicationPlaces
from support.cli import moldau_cli
from support.connect_workers import is_healthy
from support.ports import free_port
from support.streams_on_spark import SECONDS_MAX, SparkDeployment
from support.waiting import eventually

INSTANCES = 2


class SparkWorkers:
    """`settings` are the workers', without listeners; they are killed as Spark's Python workers."""

    def __init__(self, folder: Path, bootstrap: str, settings: Mapping[str, str]) -> None:
        self._bootstrap = bootstrap
        self._group = settings["group.id"]
        first = _two_ports()
        self.urls = [f"http://127.0.0.1:{first + each}" for each in range(INSTANCES)]
        self._file = folder / "workers.properties"
        self._file.write_text(dump_properties({**settings, "listeners": self.urls[0]}))
        # Memory and cores as the tests of Spark have them.
        conf = {"spark.driver.memory": "1g", "spark.ui.enabled": "false"}
        self._deployment = SparkDeployment(folder, bootstrap, conf)
        self._places = ApplicationPlaces(self._deployment.folder / "applications" / self._group)

    def start(self) -> None:
        words = ("connect", "start", str(self._file), "--instances", str(INSTANCES))
        answer = moldau_cli(*words, "--data", str(self._deployment.folder))
        assert answer.status == 0, answer.err
        for url in self.urls:
            eventually(partial(is_healthy, url), what=f"the worker {url}", seconds_max=SECONDS_MAX)

    def kill(self, number: int) -> None:
        """Kill the process of an instance; Spark starts it again."""
        running = eventually(self._processes, what="a worker that runs", seconds_max=SECONDS_MAX)
        os.kill(running[number % len(running)], signal.SIGKILL)

    def _processes(self) -> list[int]:
        run = self._deployment.pipelines.show(self._group).session_id
        beats = self._places.beats(INSTANCES)
        found = [each.pid for each in beats if each.run == run and each.state == "running"]
        # A heartbeat outlives its process for a moment.
        return [each for each in found if Path(f"/proc/{each}").exists()]

    def close(self) -> None:
        moldau_cli("pipelines", "--data", str(self._deployment.folder), "stop", self._group)
        self._deployment.close()


def _two_ports() -> int:
    """The first of two in a row: each instance listens one port higher than the one before it."""
    one, other = free_port(), free_port()
    while abs(one - other) != 1:
        one, other = other, free_port()
    return min(one, other)
