"""Applications on Spark: a word count through killed workers, a killed server and a rescale.

One deployment of its own, because its server is killed; the tests follow each other in it.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client import Admin, NewTopic, Producer
from moldau.pipelines import Pipeline, Pipelines, Topic, daemon
from moldau.spark import ConnectServer
from moldau.spark.hosting.places import ApplicationPlaces
from spark.running import committed
from support.cli import moldau_cli
from support.ports import free_port
from support.streams_counting import recomputed, updates
from support.waiting import eventually

SECONDS_MAX = 300.0
PROGRAM = """\
from beside import words
from moldau.streams import StreamsBuilder

builder = StreamsBuilder()
(
    builder.stream("hosted-text", key_serde="string", value_serde="string")
    .flat_map_values(words)
    .group_by(lambda key, word: word, key_serde="string", value_serde="string")
    .count(store="counts")
    .to_stream()
    .to("hosted-counts", key_serde="string", value_serde="long")
)
"""
PARTITIONS = 4


class Deployment:
    """A word count that runs on Spark, and what was sent to it."""

    def __init__(self, folder: Path, bootstrap: str, server: ConnectServer) -> None:
        self.folder = folder / "spark"
        self.bootstrap = bootstrap
        self.server = server
        self.pipelines = Pipelines(bootstrap, folder=self.folder, timeout=SECONDS_MAX)
        self.places = ApplicationPlaces(self.folder / "applications" / "hosted-words")
        self.lines: list[str] = []
        self.file = folder / "words.py"
        self.file.write_text(PROGRAM)
        (folder / "beside.py").write_text("def words(line):\n    return line.split()\n")
        with Admin({"bootstrap.servers": bootstrap}) as admin:
            admin.create_topics(
                [NewTopic(name, PARTITIONS, 1) for name in ("hosted-text", "hosted-counts")]
            )

    def send(self, count: int) -> None:
        start = len(self.lines)
        lines = [f"all w{number % 7} n{number}" for number in range(start, start + count)]
        with Producer({"bootstrap.servers": self.bootstrap}) as producer:
            for number, line in enumerate(lines):
                producer.send("hosted-text", line.encode(), partition=number % PARTITIONS)
        self.lines += lines

    def check(self) -> None:
        """Each word was counted from one to its number, without a gap and without a repetition."""
        total = sum(len(line.split()) for line in self.lines)
        found = updates(self.bootstrap, "hosted-counts", PARTITIONS, total)
        wanted = recomputed(self.lines)
        assert {word: counts[-1] for word, counts in found.items()} == wanted
        assert found == {word: list(range(1, count + 1)) for word, count in wanted.items()}

    def run(self, *words: str) -> str:
        data = ("--data", str(self.folder), "--bootstrap-server", self.bootstrap)
        answer = moldau_cli("streams", *words, *data)
        assert answer.status == 0, answer.err
        return answer.out

    def workers(self) -> list[int]:
        """The process of each instance that runs now."""
        run = self.pipelines.show("hosted-words").session_id
        beats = self.places.beats(PARTITIONS)
        return [each.pid for each in beats if each.run == run and each.state == "running"]

    def all_run(self, instances: int) -> bool:
        info = self.pipelines.show("hosted-words")
        return (info.state, info.instances_running) == ("running", instances)


@pytest.fixture(scope="module")
def deployment(
    tmp_path_factory: pytest.TempPathFactory, bootstrap: str, small: dict[str, str]
) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("hosting")
    (folder / "spark").mkdir()
    server = ConnectServer(folder / "spark", master="local[6,4]", conf=small, connector="moldau")
    server.remember()
    made = Deployment(folder, bootstrap, server)
    try:
        yield made
    finally:
        made.pipelines.close()
        daemon.stop(folder / "spark")
        server.stop()


@pytest.mark.slow("the Spark server starts and is killed once")
def test_a_word_count_survives_killed_workers_and_a_killed_server(deployment: Deployment) -> None:
    deployment.send(50)
    start = ("start", str(deployment.file), "--application-id", "hosted-words")
    # Without a cache each update is written, so that a lost or doubled one is seen.
    start += ("--property", "statestore.cache.max.bytes=0")
    assert "2 of 2 instances run" in deployment.run(*start, "--instances", "2")
    deployment.check()
    # A worker is killed in the middle of its work.
    deployment.send(50)
    killed = deployment.workers()[0]
    os.kill(killed, signal.SIGKILL)
    deployment.send(50)
    deployment.check()
    eventually(
        lambda: deployment.all_run(2) and killed not in deployment.workers(),
        what="its successor",
        seconds_max=SECONDS_MAX,
    )
    # The server is killed: the control loop starts both again.
    deployment.send(50)
    os.kill(deployment.server.pid, signal.SIGKILL)
    deployment.send(50)
    eventually(
        lambda: deployment.pipelines.show("hosted-words").restarts and deployment.all_run(2),
        what="both instances again",
        seconds_max=SECONDS_MAX,
    )
    deployment.check()


def test_it_is_listed_scaled_described_logged_and_stopped(deployment: Deployment) -> None:
    assert "3 of 3 instances run" in deployment.run("scale", "hosted-words", "3")
    deployment.send(20)
    deployment.check()

    def tasks() -> list[str]:
        shown = json.loads(deployment.run("describe", "hosted-words", "--json"))
        return sorted(task for each in shown["instances"] for task in each["tasks"])

    wanted = [f"{number}_{partition}" for number in (0, 1) for partition in range(PARTITIONS)]
    eventually(lambda: tasks() == wanted, what="all tasks in place", seconds_max=SECONDS_MAX)
    (listed,) = [
        each
        for each in json.loads(deployment.run("list", "--json"))
        if each["application"] == "hosted-words"
    ]
    assert listed["spark"] == "running, 3 of 3"
    log = "\n".join(deployment.pipelines.logs("hosted-words"))
    assert "instance 2: " in log
    refused = moldau_cli("streams", "scale", "hosted-words", "5", "--data", str(deployment.folder))
    assert refused.status == 1
    assert "5 instances need a slot each. Spark has 6" in refused.err
    workers = deployment.workers()
    assert deployment.run("stop", "hosted-words") == "hosted-words is stopped.\n"
    assert deployment.workers() == []
    assert len(workers) in (0, 3)


@pytest.mark.long("a whole hand-over; both engines give the same in test_tasks_same")
def test_a_small_pipeline_is_handed_over_at_the_record_that_needs_spark(
    deployment: Deployment,
) -> None:
    definition = Pipeline(
        "mixed",
        source=Topic("mixed-in", schema="id BIGINT", startingOffsets="earliest"),
        steps=["SELECT id FROM input WHERE id >= 0"],
        sink=Topic("mixed-out"),
        dead_letter="mixed-dead",
    )
    with Admin({"bootstrap.servers": deployment.bootstrap}) as admin:
        admin.create_topics([NewTopic("mixed-in", 1, 1), NewTopic("mixed-out", 1, 1)])
    with Producer({"bootstrap.servers": deployment.bootstrap}) as producer:

        def send(*values: bytes) -> None:
            for value in values:
                producer.send("mixed-in", value).result(30)

        send(b'{"id": 1}', b'{"id": -1}', b'{"id": 2}')
        assert deployment.pipelines.start(definition).engine == "task"
        # Spark reads the first of these as 3; the second is bad.
        send(b"{'id': 3}", b"nothing", b'{"id": 4}')
        eventually(
            lambda: len(committed(deployment.bootstrap, "mixed-out")) >= 4,
            what="all four results",
            seconds_max=SECONDS_MAX,
        )
    values = [record.value for record in committed(deployment.bootstrap, "mixed-out")]
    assert values == [b'{"id":1}', b'{"id":2}', b'{"id":3}', b'{"id":4}']
    (letter,) = committed(deployment.bootstrap, "mixed-dead")
    assert letter.value == b"nothing"
    assert deployment.pipelines.show("mixed").engine == "spark"
    log = "\n".join(deployment.pipelines.logs("mixed"))
    assert "record mixed-in-0 at offset 3 needs Spark" in log
    deployment.pipelines.delete("mixed")


@pytest.mark.long("workers of Connect on Spark; a word count is hosted above")
def test_connect_workers_run_on_spark(deployment: Deployment, tmp_path: Path) -> None:
    port = free_port()
    data = ("--data", str(deployment.folder))
    start = ("connect", "start", "--instances", "1", "--port", str(port), *data)
    answer = moldau_cli(*start, "--bootstrap-server", deployment.bootstrap)
    assert answer.status == 0, answer.err
    assert "1 of 1 instances run" in answer.out
    (tmp_path / "lines").write_text("one\ntwo\n")
    create = (
        "connect",
        "create",
        "lines",
        "connector.class=FileStreamSource",
        "topic=hosted-lines",
    )
    url = ("--url", f"http://127.0.0.1:{port}")
    eventually(
        lambda: moldau_cli(*create, f"file={tmp_path / 'lines'}", *url).status == 0,
        what="the worker answers",
        seconds_max=SECONDS_MAX,
    )
    eventually(
        lambda: (
            "hosted-lines" in topics(deployment.bootstrap)
            and len(committed(deployment.bootstrap, "hosted-lines")) == 2
        ),
        what="both lines",
        seconds_max=SECONDS_MAX,
    )
    listed = {info.name: info for info in deployment.pipelines.list()}
    assert listed["connect-cluster"].instances == 1
    assert moldau_cli("pipelines", *data, "stop", "connect-cluster").status == 0


def topics(bootstrap: str) -> set[str]:
    with Admin({"bootstrap.servers": bootstrap}) as admin:
        return set(admin.list_topics())
