"""`moldau start --spark`: up together and down together; a small program is in Spark's place."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from moldau import __version__
from moldau.cli.brokers.start_with_spark import look, spark_address
from moldau.cli.support.failures import Failure
from moldau.client import Admin
from moldau.pipelines import daemon
from moldau.pipelines.control.folder import ControlFolder
from moldau.spark.runtime.machine.settings import ServerState
from moldau.spark.runtime.processes import start_mark
from moldau.spark.runtime.server import ConnectServer
from moldau.spark.runtime.state_files import write
from support.processes import free_port
from support.small_spark import MOLDAU, install
from support.waiting import eventually

SERVER = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:29093
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:29093
log.dirs={data}
"""


class Deployment:
    """`moldau start --spark`, and what there is to see of it from outside."""

    def __init__(self, folder: Path, *, port: int = 0, stdout: int | None = None) -> None:
        self.data, self.spark = folder / "data", folder / "data-spark"
        self._output = folder / "output"
        self._output.touch()
        self._begin = self._output.stat().st_size
        self.environ = install(folder)
        self.command = [*MOLDAU, "start", "--spark", "--port", str(port), "--data", str(self.data)]
        with self._output.open("ab") as file:
            self.process = subprocess.Popen(
                self.command,
                stdout=file if stdout is None else stdout,
                stderr=file if stdout is None else stdout,
                env=self.environ,
            )
        self.server = ConnectServer(self.spark, stop_seconds_max=5)

    @property
    def shown(self) -> str:
        return self._output.read_text()[self._begin :]

    def wait_for(self, text: str) -> None:
        eventually(
            lambda: text in self.shown or self.process.poll() is not None,
            what=f"{text!r} in {self.shown!r}",
            seconds_max=120,
        )
        assert text in self.shown, self.shown

    @property
    def loop(self) -> int | None:
        return daemon.status(self.spark).pid

    @property
    def broker(self) -> int:
        (child,) = [
            int(each)
            for path in Path(f"/proc/{self.process.pid}/task").glob("*/children")
            for each in path.read_text().split()
            if b"start\0" in Path(f"/proc/{each}/cmdline").read_bytes()
        ]
        return child

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(120)
        finally:
            self.process.kill()
            daemon.kill(self.spark)
            self.server.kill()


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    made = Deployment(tmp_path)
    try:
        made.wait_for("Ctrl-C stops all of it.")
        yield made
    finally:
        made.stop()


@pytest.mark.parametrize(
    ("listeners", "secured", "address"),
    [
        ("PLAINTEXT://127.0.0.1:9092", False, "127.0.0.1:9092"),
        ("SSL://h:9093, PLAINTEXT://0.0.0.0:9092", False, "127.0.0.1:9092"),
        ("PLAINTEXT://broker.example:9092", False, "broker.example:9092"),
        ("SASL_SSL://0.0.0.0:9094", True, "127.0.0.1:9094"),
        ("SSL://h:9093, PLAINTEXT://0.0.0.0:9092", True, "h:9093"),
    ],
)
def test_where_spark_finds_the_broker(listeners: str, secured: bool, address: str) -> None:
    assert spark_address(listeners, secured=secured) == address


def test_a_broker_that_wants_a_password_needs_the_settings_of_a_client() -> None:
    with pytest.raises(Failure, match="--command-config FILE"):
        spark_address("SASL_SSL://127.0.0.1:9092", secured=False)


def test_all_comes_up_and_goes_down_together(tmp_path: Path) -> None:
    port = free_port()
    deployment = Deployment(tmp_path, port=port)
    try:
        deployment.wait_for("Ctrl-C stops all of it.")
        assert f"Moldau {__version__} is up." in deployment.shown
        assert "\nStarting Spark, which takes" in deployment.shown
        assert "\nSpark 4.3.0 is up.\n" in deployment.shown
        assert f"on 127.0.0.1:{port}\n" in deployment.shown
        assert "Ctrl-C stops it." not in deployment.shown
        assert deployment.server.attach()
        assert deployment.loop is not None
    finally:
        code = deployment.stop()
    assert code == 0, deployment.shown
    assert not deployment.server.alive()
    assert deployment.loop is None
    assert "all data is on disk" in deployment.shown
    # Apache Kafka refuses a data folder that has more than partitions in it.
    assert not [
        each for each in deployment.data.iterdir() if each.is_dir() and "-" not in each.name
    ]


def test_a_second_start_touches_nothing(deployment: Deployment, tmp_path: Path) -> None:
    parts = deployment.broker, deployment.loop, deployment.server.pid
    second = subprocess.run(
        deployment.command,
        env=deployment.environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert second.returncode == 1
    (line,) = second.stderr.splitlines()
    assert f"is running with {deployment.spark} already (process {deployment.process.pid})" in line
    # A broker of its own, which is refused by the lock of the data directory.
    other = tmp_path / "other"
    other.mkdir()
    properties = other / "server.properties"
    properties.write_text(SERVER.format(data=deployment.data))
    (other / "moldau-data-spark").symlink_to(deployment.spark)
    (deployment.spark / "owner.lock").rename(other / "owner.lock")
    try:
        third = subprocess.run(
            [*MOLDAU, "start", "--spark", str(properties)],
            cwd=other,
            env=deployment.environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        (other / "owner.lock").rename(deployment.spark / "owner.lock")
    assert third.returncode == 1
    assert "another broker is using this" in third.stderr
    assert (deployment.broker, deployment.loop, deployment.server.pid) == parts
    assert deployment.server.alive()


def test_commands_find_the_deployment_without_options(
    deployment: Deployment, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def run(*words: str) -> str:
        done = subprocess.run(
            [*MOLDAU, *words],
            cwd=elsewhere,
            env=deployment.environ,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done
        return done.stdout

    assert f"process    {deployment.server.pid}, up " in run("spark", "status")
    assert "There are no pipelines." in run("pipelines", "list")
    assert "There are no pipelines." in run("pipelines", "--data", str(deployment.data), "list")
    assert run("topics", "--create", "--topic", "found") == "Created topic found.\n"
    assert list(elsewhere.iterdir()) == []


def test_what_is_killed_is_started_again_and_reported(deployment: Deployment) -> None:
    broker, loop, spark = deployment.broker, deployment.loop, deployment.server.pid
    address = re.search(r"listening  PLAINTEXT://(127.0.0.1:\d+)", deployment.shown)
    assert address is not None
    os.kill(broker, signal.SIGKILL)
    deployment.wait_for("The broker was killed (SIGKILL")
    deployment.wait_for("The broker is up again; pipelines continue.")
    assert deployment.broker != broker
    with Admin(bootstrap_servers=address[1]) as admin:
        admin.list_topics(timeout=60)
    assert loop is not None
    os.kill(loop, signal.SIGKILL)
    deployment.wait_for(f"The control loop (process {loop}) has ended unexpectedly")
    deployment.wait_for("The control loop is up again")
    assert deployment.server.pid == spark
    os.kill(spark, signal.SIGKILL)
    deployment.wait_for(f"Spark (process {spark}) has ended unexpectedly")
    deployment.wait_for("Spark is up again")
    assert deployment.process.poll() is None
    # One line for each event, and no second banner.
    assert deployment.shown.count(f"Moldau {__version__} is up.") == 1
    assert deployment.stop() == 0


def test_spark_that_only_begins_to_start_is_not_up(tmp_path: Path) -> None:
    server, folder = ConnectServer(tmp_path), ControlFolder(tmp_path)
    mark = start_mark(os.getpid())
    assert mark is not None
    state = ServerState(
        pid=os.getpid(), mark=mark, url="sc://127.0.0.1:1", master="local", log="log"
    )
    write(server.places.state, state.to_json())
    assert look(server, folder).spark is None
    write(server.places.state, replace(state, ready=True).to_json())
    assert look(server, folder).spark == os.getpid()


def test_spark_that_was_stopped_stays_down_until_it_is_started(deployment: Deployment) -> None:
    words = [*MOLDAU, "spark"]
    there = ["--data", str(deployment.spark)]
    subprocess.run([*words, "stop", *there], env=deployment.environ, timeout=120, check=True)
    deployment.wait_for("were stopped by `moldau spark stop`")
    subprocess.run([*words, "start", *there], env=deployment.environ, timeout=120, check=True)
    deployment.wait_for("The control loop is up again")
    assert "unexpectedly" not in deployment.shown


def test_nothing_outlives_a_command_that_is_killed(deployment: Deployment) -> None:
    broker, server = deployment.broker, deployment.server
    deployment.process.kill()
    deployment.process.wait()
    eventually(lambda: not is_process(broker), what="the broker's end")
    eventually(lambda: deployment.loop is None, what="the control loop's end")
    eventually(lambda: not server.alive(), what="Spark's end")
    log = (deployment.spark / "control.log").read_text()
    assert "`moldau start --spark` was killed: ending Spark and the control loop, too" in log


@pytest.mark.long("two whole starts; a second start beside the first is shown above")
def test_what_an_earlier_command_has_left_is_used(deployment: Deployment, tmp_path: Path) -> None:
    spark, loop = deployment.server.pid, deployment.loop
    assert loop is not None
    os.kill(loop, signal.SIGKILL)
    deployment.process.kill()
    deployment.process.wait()
    again = Deployment(tmp_path)
    try:
        again.wait_for(f"Spark of {deployment.spark} is running (process {spark}): using it.")
        again.wait_for("Ctrl-C stops all of it.")
        assert again.server.pid == spark
    finally:
        assert again.stop() == 0


@pytest.mark.long("a whole start; a broker without a reader is in test_cli_closed_output")
def test_a_deployment_runs_without_a_reader_of_its_output(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    deployment = Deployment(tmp_path, stdout=writing)
    os.close(writing)
    try:
        eventually(lambda: deployment.loop is not None, what="a control loop", seconds_max=120)
    finally:
        assert deployment.stop() == 0


def is_process(pid: int) -> bool:
    return start_mark(pid) is not None
