"""Pipelines that keep running: started by the command, through kills of the loop and the server.

One deployment of its own, because its server and its control loop are killed; the tests follow
each other in it as a user's day would.
"""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.cli.main import main
from moldau.client import Admin, Consumer, NewTopic, Producer
from moldau.pipelines import PipelineError, Pipelines, daemon
from moldau.spark import ConnectServer
from support.waiting import eventually

SECONDS_MAX = 300.0
STEPS = """\
def double(frame):
    return frame.selectExpr("id", "amuont * 2 AS amount")
"""


class Deployment:
    """A folder with a pipeline `doubled` in it, from topic to topic."""

    def __init__(self, folder: Path, bootstrap: str, server: ConnectServer) -> None:
        self.folder = folder
        self.bootstrap = bootstrap
        self.server = server
        self.pipelines = Pipelines(bootstrap, folder=folder / "spark", timeout=SECONDS_MAX)
        self.sent = 0
        with Admin({"bootstrap.servers": bootstrap}) as admin:
            admin.create_topics([NewTopic("control-in", 2, 1), NewTopic("control-out", 1, 1)])
        self.file = folder / "doubled.yaml"
        self.file.write_text(
            "name: doubled\n"
            "source: {topic: control-in, schema: 'id INT, amount INT', startingOffsets: earliest}\n"
            "steps:\n"
            "  - python: steps.py:double\n"
            "sink: {topic: control-out, key: cast(id AS STRING)}\n"
            "trigger: 200 milliseconds\n"
        )
        self.steps = folder / "steps.py"
        self.steps.write_text(STEPS)

    def send(self, count: int) -> None:
        with Producer({"bootstrap.servers": self.bootstrap}) as producer:
            for number in range(self.sent, self.sent + count):
                value = json.dumps({"id": number, "amount": number}).encode()
                producer.send("control-in", value=value)
            producer.flush()
        self.sent += count

    def received(self) -> Counter[int]:
        """How often each id is in the output, as a careful reader sees it."""
        config = {
            "bootstrap.servers": self.bootstrap,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
        ids: Counter[int] = Counter()
        with Consumer(config) as consumer:
            partition = ("control-out", 0)
            consumer.assign([partition])
            consumer.seek_to_beginning([partition])
            end = next(iter(consumer.end_offsets([partition]).values()))
            while consumer.position(partition) < end:
                for record in consumer.poll(1.0):
                    row = json.loads(record.value)
                    assert row["amount"] == 2 * row["id"]
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
        assert set(self.received().values()) == {1}

    def run(self, *words: str) -> int:
        return main(["pipelines", "--data", str(self.folder / "spark"), *words])

    def loop_pid(self) -> int:
        pid = daemon.status(self.folder / "spark").pid
        assert pid is not None
        return pid

    def mend(self) -> None:
        self.steps.write_text(STEPS.replace("amuont", "amount"))

    def run_id(self) -> str:
        """Of its query, once it runs: on a busy machine it may just be started again."""
        (query,) = self.pipelines.wait("doubled", "running").queries
        return query.run_id


@pytest.fixture(scope="module")
def deployment(
    tmp_path_factory: pytest.TempPathFactory, bootstrap: str, small: dict[str, str]
) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("control")
    (folder / "spark").mkdir()
    server = ConnectServer(folder / "spark", master="local[2]", conf=small, connector="moldau")
    server.remember()
    made = Deployment(folder, bootstrap, server)
    try:
        yield made
    finally:
        made.pipelines.close()
        daemon.stop(folder / "spark", timeout=SECONDS_MAX)
        server.stop()


@pytest.fixture
def doubled(deployment: Deployment) -> Deployment:
    """With its pipeline running, whichever test comes first."""
    known = deployment.pipelines.list()
    if not any(info.state == "running" and info.stale is None for info in known):
        deployment.mend()
        deployment.pipelines.start(deployment.file)
    deployment.pipelines.wait("doubled", "running")
    return deployment


Capture = pytest.CaptureFixture[str]


@pytest.mark.slow("the Spark server starts, and a failing query is tried again")
def test_a_definition_that_fails_says_so_and_mended_it_brings_everything_out(
    deployment: Deployment, capsys: Capture
) -> None:
    deployment.send(5)
    start = ("start", str(deployment.file), "--timeout", str(SECONDS_MAX))
    assert deployment.run(*start, "--bootstrap-server", deployment.bootstrap) == 1
    told = capsys.readouterr().err
    assert told.startswith("steps.py:")
    assert "`amuont` cannot be resolved" in told
    assert "org.apache.spark" not in told
    info = deployment.pipelines.show("doubled")
    assert info.state == "failed"
    deployment.mend()
    assert deployment.run(*start) == 0
    assert capsys.readouterr().out == "doubled is running.\n"
    deployment.wait_for_all()
    assert deployment.run("list") == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.split()[:2] == ["NAME", "STATE"]
    assert row.split()[:2] == ["doubled", "running"]
    eventually(
        lambda: deployment.pipelines.show("doubled").progress,
        what="a progress",
        seconds_max=SECONDS_MAX,
    )
    assert deployment.run("show", "doubled", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["progress"]["lag_records"] == 0
    assert shown["connector"] == "moldau"
    assert deployment.run("logs", "doubled") == 0
    logged = capsys.readouterr().out
    assert "running: doubled" in logged
    assert "steps.py:" in logged
    # As it was said to its user; pages of Java are there for who asks.
    assert "\tat org.apache.spark" not in logged


def test_a_killed_loop_is_followed_by_one_that_takes_its_queries_over(
    doubled: Deployment,
) -> None:
    before, killed = doubled.run_id(), doubled.loop_pid()
    os.kill(killed, signal.SIGKILL)
    eventually(
        lambda: not daemon.status(doubled.folder / "spark").alive,
        what="its end",
        seconds_max=SECONDS_MAX,
    )
    assert doubled.pipelines.show("doubled").stale is not None
    # Without a loop the query goes on.
    doubled.send(5)
    doubled.wait_for_all()
    pid = daemon.ensure_running(doubled.folder / "spark", doubled.bootstrap)
    assert pid != killed
    doubled.pipelines.wait("doubled", "running")
    assert doubled.run_id() == before
    eventually(
        lambda: any("taking over" in line for line in doubled.pipelines.logs("doubled")),
        what="a line about it in the log",
        seconds_max=SECONDS_MAX,
    )
    doubled.send(5)
    doubled.wait_for_all()


def test_stop_keeps_its_place_and_restart_makes_a_new_run(doubled: Deployment) -> None:
    before = doubled.run_id()
    assert doubled.pipelines.stop("doubled").queries == ()
    doubled.send(5)
    assert doubled.pipelines.restart("doubled").state == "running"
    assert doubled.run_id() != before
    doubled.wait_for_all()


@pytest.mark.long("the Spark server starts twice; test_hosting and `make chaos` kill one, too")
@pytest.mark.slow("the Spark server starts twice")
def test_a_killed_server_comes_back_with_all_queries_and_nothing_twice(
    doubled: Deployment,
) -> None:
    before, server_pid = doubled.run_id(), doubled.server.pid
    doubled.send(20)
    os.kill(server_pid, signal.SIGKILL)
    doubled.send(20)
    doubled.wait_for_all()
    doubled.pipelines.wait("doubled", "running")
    assert doubled.run_id() != before
    assert doubled.server.attach()
    assert doubled.server.pid != server_pid


def test_a_clean_stop_of_the_loop_keeps_what_is_wanted(doubled: Deployment) -> None:
    assert daemon.stop(doubled.folder / "spark", timeout=SECONDS_MAX)
    info = doubled.pipelines.show("doubled")
    assert (info.desired, info.queries) == ("running", ())
    doubled.send(5)
    daemon.ensure_running(doubled.folder / "spark", doubled.bootstrap)
    doubled.wait_for_all()


def test_delete_forgets_it_with_its_checkpoint(doubled: Deployment, capsys: Capture) -> None:
    checkpoint = Path(doubled.pipelines.show("doubled").checkpoint)
    assert checkpoint.exists()
    assert doubled.run("delete", "doubled", "--checkpoint") == 0
    assert not checkpoint.exists()
    assert doubled.pipelines.list() == []
    with pytest.raises(PipelineError, match="there is no pipeline doubled"):
        doubled.pipelines.restart("doubled")
    capsys.readouterr()
    assert doubled.run("stop", "doubled") == 1
    assert "there is no pipeline doubled" in capsys.readouterr().err
