"""Pipelines on clusters: a real YARN, and a standalone cluster whose workers are killed in turn."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin, NewTopic, Producer
from moldau.pipelines import Pipeline, Topic, build
from moldau.spark import ConnectServer, session
from moldau.spark.runtime.places import spark_home
from spark.running import SECONDS_MAX, committed, finished
from spark.test_standalone import daemon
from support.java_servers import running_yarn, yarn_missing
from support.processes import free_port
from support.waiting import eventually


def send(bootstrap: str, topic: str, numbers: range) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in numbers:
            producer.send(topic, json.dumps({"id": number}), partition=number % 4)


def make_topics(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 4), NewTopic(f"{topic}-out", 2)])


def copied(bootstrap: str, topic: str) -> Counter[int]:
    """How often each number is in the output."""
    return Counter(
        json.loads(record.value or b"")["twice"] // 2
        for record in committed(bootstrap, f"{topic}-out")
    )


def twice(name: str, topic: str, trigger: str) -> Pipeline:
    return Pipeline(
        name,
        source=Topic(topic, schema="id INT", startingOffsets="earliest"),
        steps=["SELECT id * 2 AS twice FROM input"],
        sink=Topic(f"{topic}-out"),
        connector="moldau",
        trigger=trigger,
    )


@pytest.mark.long("starts a YARN and an application in it")
def test_a_pipeline_runs_on_yarn(
    small: dict[str, str],
    tmp_path: Path,
    bootstrap: str,
    topic: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if reason := yarn_missing():
        pytest.skip(reason)
    make_topics(bootstrap, topic)
    send(bootstrap, topic, range(100))
    jars = spark_home() / "jars"
    logs = [path for name in ("1.2-api", "api", "core") for path in jars.glob(f"log4j-{name}-*")]
    with running_yarn(logs, nodes=2) as conf:
        monkeypatch.setenv("HADOOP_CONF_DIR", str(conf))
        settings = small | {
            "spark.submit.deployMode": "client",
            "spark.yarn.stagingDir": (tmp_path / "staging").as_uri(),
            "spark.yarn.jars": f"local:{jars}/*",
            "spark.yarn.am.memory": "512m",
            "spark.executor.memory": "512m",
            "spark.executor.instances": "2",
            "spark.pyspark.python": sys.executable,
        }
        made = ConnectServer(
            tmp_path / "deploy",
            master="yarn",
            conf=settings,
            connector="moldau",
            start_seconds_max=SECONDS_MAX,
        )
        with made as server:
            spark = session(server)
            where = spark.range(2, numPartitions=2).mapInPandas(container(), "told string")
            told = {row.told for row in where.collect()}
            assert all("container_" in folder for folder in told), told
            checkpoint = str(tmp_path / "checkpoint")
            pipeline = twice("on-yarn", topic, "available now")
            finished(
                lambda: build.start(spark, pipeline, bootstrap=bootstrap, checkpoint=checkpoint)
            )
            spark.stop()
    assert copied(bootstrap, topic) == Counter(range(100))


def container() -> Any:
    """Tells of the folder that a task runs in; made here, as executors do not have this file."""

    def tell(frames: Iterator[Any]) -> Iterator[Any]:
        import os

        import pandas

        for _ in frames:
            yield pandas.DataFrame({"told": [os.getcwd()]})

    return tell


class Worker:
    """One of the cluster's workers, which can be killed and started again."""

    def __init__(self, master: str, folder: Path, number: int) -> None:
        self._command = [
            *(sys.executable, "-m", "moldau.cli", "spark", "worker", master),
            *("--host", "127.0.0.1", "--cores", "1", "--memory", "700m"),
            *("--work-dir", str(folder / f"work-{number}")),
        ]
        self._log = folder / f"worker-{number}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        environ = os.environ | {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": quick}
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                self._command,
                stdout=output,
                stderr=output,
                cwd=self._log.parent,
                env=environ,
                start_new_session=True,
            )
        eventually(
            lambda: "Successfully registered with master" in self._log.read_text(),
            what="the worker is registered",
            seconds_max=SECONDS_MAX,
        )

    def kill(self) -> None:
        """The worker and the executors that it has started, which are in its process group."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[tuple[str, list[Worker]]]:
    """A master and three workers with a core each."""
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    at = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
    with daemon(tmp_path / "master.log", "master", *at, ready="New state: ALIVE"):
        made = [Worker(address, tmp_path, number) for number in range(3)]
        try:
            for worker in made:
                worker.start()
            yield address, made
        finally:
            for worker in made:
                worker.kill()


class Running:
    """A query that is started again, as the control loop does, if the machine was too busy for the
    ten seconds that Spark gives a Python process. Every other failure is a failure."""

    def __init__(self, start: Callable[[], Any]) -> None:
        self._start = start
        self._starts_left = 5
        self.query = start()

    def wait_for(self, bootstrap: str, topic: str, count: int) -> None:
        """Until so many records are written."""

        def is_written() -> bool:
            error = self.query.exception()
            if error is not None:
                if "connect back" not in str(error) or not self._starts_left:
                    raise error
                self._starts_left -= 1
                self.query = self._start()
            return sum(copied(bootstrap, topic).values()) >= count

        eventually(is_written, what=f"{count} records are written", seconds_max=SECONDS_MAX)


@pytest.mark.long("kills each of three workers in turn while a pipeline writes")
def test_each_record_is_written_once_while_workers_are_killed_in_turn(
    workers: tuple[str, list[Worker]],
    small: dict[str, str],
    tmp_path: Path,
    bootstrap: str,
    topic: str,
) -> None:
    master, made = workers
    make_topics(bootstrap, topic)
    settings = small | {
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.task.maxFailures": "20",
        # A worker that is back gets tasks at once.
        "spark.excludeOnFailure.enabled": "false",
    }
    server = ConnectServer(
        tmp_path / "deploy",
        master=master,
        conf=settings,
        connector="moldau",
        start_seconds_max=SECONDS_MAX,
    )
    with server:
        spark = session(server)
        pipeline = twice("through-kills", topic, "200 milliseconds")
        checkpoint = str(tmp_path / "checkpoint")
        running = Running(
            lambda: build.start(spark, pipeline, bootstrap=bootstrap, checkpoint=checkpoint)[0]
        )
        sent = 0
        for worker in made:
            send(bootstrap, topic, range(sent, sent + 200))
            sent += 200
            worker.kill()
            send(bootstrap, topic, range(sent, sent + 200))
            sent += 200
            running.wait_for(bootstrap, topic, sent)
            worker.start()
        running.query.stop()
        spark.stop()
    assert copied(bootstrap, topic) == Counter(range(sent))
