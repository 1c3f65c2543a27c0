"""An application of Streams on a Spark server of its own, whose instances are killed."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from moldau.client import Admin, NewTopic, Producer
from moldau.pipelines import Pipelines, daemon
from moldau.spark import ConnectServer
from moldau.spark.hosting.places import ApplicationPlaces
from support.cli import moldau_cli
from support.streams_counting import check, updates
from support.waiting import eventually

SECONDS_MAX = 300.0
PARTITIONS = 4
INSTANCES = 2
#: Without a cache each update is written, so that a lost or doubled one is seen.
NO_CACHE = ("--property", "statestore.cache.max.bytes=0")


class SparkDeployment:
    """A Spark server for applications; `folder` is its place."""

    def __init__(self, folder: Path, bootstrap: str, conf: Mapping[str, str]) -> None:
        self.bootstrap = bootstrap
        self.folder = folder / "spark"
        self.folder.mkdir(parents=True)
        self.server = ConnectServer(
            self.folder, master="local[6,4]", conf=dict(conf), connector="moldau"
        )
        self.server.remember()
        self.pipelines = Pipelines(bootstrap, folder=self.folder, timeout=SECONDS_MAX)

    def close(self) -> None:
        self.pipelines.close()
        daemon.stop(self.folder)
        self.server.stop()

    def run(self, *words: str) -> str:
        data = ("--data", str(self.folder), "--bootstrap-server", self.bootstrap)
        answer = moldau_cli("streams", *words, *data)
        assert answer.status == 0, answer.err
        return answer.out


class SparkApplication:
    """A program that reads `NAME-in` and counts into `NAME-out`."""

    def __init__(self, deployment: SparkDeployment, name: str, program: str) -> None:
        self.name = name
        self._deployment = deployment
        self._places = ApplicationPlaces(deployment.folder / "applications" / name)
        self.file = deployment.folder.parent / f"{name}.py"
        self.file.write_text(program)
        with Admin({"bootstrap.servers": deployment.bootstrap}) as admin:
            topics = (f"{name}-in", f"{name}-out")
            admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in topics])

    def start(self, **settings: Any) -> None:
        words = ["start", str(self.file), "--application-id", self.name, *NO_CACHE]
        for name, value in settings.items():
            words += ["--property", f"{name}={value}"]
        self._deployment.run(*words, "--instances", str(INSTANCES))

    def stop(self) -> None:
        self._deployment.run("stop", self.name)

    def send(self, rows: Iterable[tuple[str, str]]) -> None:
        with Producer({"bootstrap.servers": self._deployment.bootstrap}) as producer:
            # By key, so that each key is counted in one place also without a repartition.
            for key, value in rows:
                producer.send(f"{self.name}-in", value.encode(), key.encode())

    def workers(self) -> list[int]:
        """The process of each instance that runs now."""
        run = self._deployment.pipelines.show(self.name).session_id
        beats = self._places.beats(INSTANCES)
        return [each.pid for each in beats if each.run == run and each.state == "running"]

    def kill_one(self, chance: random.Random) -> None:
        """Kill the process of an instance; returns when all run again."""
        eventually(self._all_run, what="all instances", seconds_max=SECONDS_MAX)
        killed = chance.choice(self.workers())
        os.kill(killed, signal.SIGKILL)
        try:
            eventually(
                lambda: self._all_run() and killed not in self.workers(),
                what=f"the successor of {killed}",
                seconds_max=SECONDS_MAX,
            )
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.report()}") from None

    def report(self) -> str:
        """What the deployment says of the application, and the ends of all logs."""
        parts = [repr(self._deployment.pipelines.show(self.name))]
        parts += [repr(beat) for beat in self._places.beats(INSTANCES)]
        for path in sorted(self._deployment.folder.rglob("*.log")):
            parts.append(f"--- {path}\n{path.read_text(errors='replace')[-3000:]}")
        return "\n".join(parts)

    def _all_run(self) -> bool:
        info = self._deployment.pipelines.show(self.name)
        is_running = (info.state, info.instances_running) == ("running", INSTANCES)
        return is_running and len(self.workers()) == INSTANCES

    def check(self, expected: Mapping[str, int]) -> None:
        """Each key was counted from one to its number, without a gap or a repetition."""
        total = sum(expected.values())
        found = updates(self._deployment.bootstrap, f"{self.name}-out", PARTITIONS, total)
        check(found, expected)
        assert found == {key: list(range(1, count + 1)) for key, count in expected.items()}


@contextmanager
def spark_deployment(
    folder: Path, bootstrap: str, conf: Mapping[str, str]
) -> Iterator[SparkDeployment]:
    made = SparkDeployment(folder, bootstrap, conf)
    try:
        yield made
    finally:
        made.close()
