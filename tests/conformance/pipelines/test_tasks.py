"""Small pipelines run without Spark: exactly once through kills, with the same commands."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client import Admin, Consumer, NewTopic, Producer
from moldau.pipelines import PipelineError, Pipelines, daemon
from moldau.spark.hosting.machine.beats import InstanceState
from moldau.spark.hosting.places import ApplicationPlaces
from moldau.spark.runtime.processes import is_running, start_mark
from moldau.testing import Broker
from support.cli import moldau_cli
from support.waiting import eventually

SECONDS_MAX = 120.0
DEFINITION = """\
name: evens
source: {topic: tasks-in, schema: 'id BIGINT, name STRING', startingOffsets: earliest}
steps:
  - sql: SELECT id, upper(name) AS name FROM input WHERE id >= 0
  - rename: {name: label}
sink: {topic: tasks-out, key: cast(id AS STRING)}
"""


class Deployment:
    """A folder with a pipeline `evens` in it, from topic to topic."""

    def __init__(self, folder: Path, bootstrap: str) -> None:
        self.folder = folder / "spark"
        self.bootstrap = bootstrap
        self.pipelines = Pipelines(bootstrap, folder=self.folder, timeout=SECONDS_MAX)
        self.file = folder / "evens.yaml"
        self.file.write_text(DEFINITION)
        self.sent = 0
        with Admin({"bootstrap.servers": bootstrap}) as admin:
            admin.create_topics([NewTopic("tasks-in", 2, 1), NewTopic("tasks-out", 1, 1)])

    def send(self, count: int) -> None:
        with Producer({"bootstrap.servers": self.bootstrap}) as producer:
            for number in range(self.sent, self.sent + count):
                for id_ in (number, -1 - number):
                    value = json.dumps({"id": id_, "name": "ab"}).encode()
                    producer.send("tasks-in", value)
        self.sent += count

    def received(self) -> Counter[int]:
        """How often each id is in the output, as a careful reader sees it."""
        config = {"bootstrap.servers": self.bootstrap, "isolation.level": "read_committed"}
        ids: Counter[int] = Counter()
        with Consumer(config) as consumer:
            partition = ("tasks-out", 0)
            consumer.assign([partition])
            consumer.seek_to_beginning([partition])
            (end,) = consumer.end_offsets([partition]).values()
            while consumer.position(partition) < end:
                for record in consumer.poll(1.0):
                    row = json.loads(record.value)
                    assert (record.key, row["label"]) == (str(row["id"]).encode(), "AB")
                    ids[row["id"]] += 1
        return ids

    def wait_for_all(self) -> None:
        """Until everything sent has come out; then each exactly once."""
        wanted = set(range(self.sent))
        eventually(
            lambda: set(self.received()) == wanted,
            what=f"all {self.sent} records in the output",
            seconds_max=SECONDS_MAX,
        )
        assert set(self.received().values()) <= {1}

    def runner(self) -> int:
        """The process that runs the pipeline."""
        (beat,) = ApplicationPlaces(self.folder / "tasks" / "evens").beats(1)
        return beat.pid

    def run(self, *words: str) -> str:
        answer = moldau_cli("pipelines", "--data", str(self.folder), *words)
        assert answer.status == 0, answer.err
        return answer.out


def kill(pid: int) -> None:
    """Until it is gone: on a busy machine a process that is killed has its locks for a while."""
    mark = start_mark(pid)
    assert mark is not None
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not is_running(pid, mark), what="the end of what was killed")


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with Broker() as broker:
        made = Deployment(tmp_path_factory.mktemp("tasks"), str(broker.bootstrap_servers))
        try:
            yield made
        finally:
            made.pipelines.close()
            daemon.stop(made.folder, timeout=SECONDS_MAX)


def test_a_small_pipeline_runs_without_spark_through_kills(deployment: Deployment) -> None:
    deployment.send(20)
    start = ("start", str(deployment.file), "--bootstrap-server", deployment.bootstrap)
    assert deployment.run(*start) == "evens is running.\n"
    deployment.wait_for_all()
    (info,) = deployment.pipelines.list()
    assert info.engine == "task"
    assert not (deployment.folder / "server.json").exists()
    # Its process is killed in the middle of its work, and then the control loop with it.
    for victims in (["runner"], ["runner", "loop"]):
        deployment.send(500)
        for victim in victims:
            loop = daemon.status(deployment.folder).pid
            pid = deployment.runner() if victim == "runner" else loop
            assert pid is not None
            kill(pid)
        deployment.send(500)
        daemon.ensure_running(deployment.folder, deployment.bootstrap)
        deployment.wait_for_all()


def test_a_run_that_a_lost_loop_has_stopped_is_started_again(deployment: Deployment) -> None:
    # A loop whose broker has gone with its owner stops what runs, and cannot write that down.
    loop = daemon.status(deployment.folder).pid
    assert loop is not None
    kill(loop)
    places = ApplicationPlaces(deployment.folder / "tasks" / "evens")
    (beat,) = places.beats(1)
    places.signal(beat.run, stop=True)
    eventually(
        lambda: places.beats(1)[0].state is InstanceState.ENDED,
        what="the end of the run",
        seconds_max=SECONDS_MAX,
    )
    deployment.send(5)
    daemon.ensure_running(deployment.folder, deployment.bootstrap)
    deployment.wait_for_all()
    assert places.beats(1)[0].run != beat.run


def test_it_is_listed_stopped_and_continued(deployment: Deployment) -> None:
    shown = eventually(
        lambda: (
            info
            if (info := deployment.pipelines.show("evens")).progress is not None
            and info.progress.lag_records == 0
            else None
        ),
        what="no lag",
        seconds_max=SECONDS_MAX,
    )
    assert shown.activity == "waiting for records"
    header, row = deployment.run("list").splitlines()
    assert header.split()[-1] == "ENGINE"
    assert row.split()[-1] == "task"
    assert deployment.run("stop", "evens") == "evens is stopped.\n"
    runner = deployment.runner()
    deployment.send(5)
    assert deployment.run("start", "evens") == "evens is running.\n"
    deployment.wait_for_all()
    assert deployment.runner() == runner


def test_what_needs_spark_is_refused_for_the_engine_task(deployment: Deployment) -> None:
    text = DEFINITION.replace("evens", "other").replace("upper(name)", "md5(name)")
    file = deployment.file.with_name("other.yaml")
    file.write_text(text + "engine: task\n")
    with pytest.raises(PipelineError, match=r"engine: task cannot run other: md5\(\) needs Spark"):
        deployment.pipelines.start(file)
    file.write_text(text + "engine: tsak\n")
    with pytest.raises(PipelineError, match=r"unknown engine 'tsak'"):
        deployment.pipelines.start(file)


@pytest.mark.slow("the process waits for another pipeline before it ends")
def test_its_process_ends_with_the_last_pipeline(deployment: Deployment) -> None:
    runner = deployment.runner()
    deployment.run("delete", "evens")
    eventually(lambda: start_mark(runner) is None, what="its end", seconds_max=SECONDS_MAX)
