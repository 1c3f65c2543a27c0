"""Workers of one group: work moves when one is killed or comes, and any worker answers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from moldau.client import Consumer
from moldau.config import dump_properties
from support.connect_workers import call, distributed_settings, distributed_worker, is_healthy
from support.ports import free_port
from support.processes import BrokerProcess
from support.waiting import eventually


@contextmanager
def worker_process(settings: dict[str, str], folder: Path) -> Iterator[tuple[str, int]]:
    """A worker as a process of its own: its URL and process id."""
    port = free_port()
    file = folder / f"worker-{port}.properties"
    file.write_text(dump_properties({**settings, "listeners": f"http://127.0.0.1:{port}"}))
    with (folder / f"worker-{port}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "moldau.cli", "connect", "start", str(file)],
            stdout=log,
            stderr=log,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        eventually(lambda: is_healthy(url), what=f"the worker at {url}")
        yield url, process.pid
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def placed(url: str, names: list[str]) -> dict[str, str] | None:
    """Where each task runs; None unless all of them run."""
    found: dict[str, str] = {}
    for name in names:
        status = call(url, "GET", f"/connectors/{name}/status")
        if status.status != 200:
            return None
        parts = [status.body["connector"], *status.body["tasks"]]
        if len(parts) != 2 or any(each["state"] != "RUNNING" for each in parts):
            return None
        found[name] = status.body["tasks"][0]["worker_id"]
    return found


@pytest.mark.slow("starts three worker processes and waits for a session to end")
def test_one_of_two_workers_is_killed(broker: BrokerProcess, tmp_path: Path) -> None:
    """The other takes over all connectors, and not one line is lost."""
    settings = distributed_settings(
        broker.bootstrap, "killed", session_timeout_ms="6000", offset_flush_interval_ms="200"
    )
    names = [f"file-{n}" for n in range(4)]
    with (
        worker_process(settings, tmp_path) as (first, _),
        worker_process(settings, tmp_path) as (second, second_pid),
    ):
        for name in names:
            file = tmp_path / name
            file.write_text("".join(f"{name} {n}\n" for n in range(100)))
            config = {"connector.class": "FileStreamSource", "file": str(file), "topic": "merged"}
            # To the worker that may not be the leader: it forwards.
            assert call(second, "PUT", f"/connectors/{name}/config", config).status == 201
        workers = {each.removeprefix("http://") for each in (first, second)}
        eventually(
            lambda: set((placed(first, names) or {}).values()) == workers,
            what="both workers to have tasks",
        )
        os.kill(second_pid, signal.SIGKILL)
        for name in names:
            with (tmp_path / name).open("a") as more:
                more.write(f"{name} after\n")
        survivor = first.removeprefix("http://")
        eventually(
            lambda: set((placed(first, names) or {}).values()) == {survivor},
            what="the survivor to run everything",
        )
        wanted = {f"{name} {n}" for name in names for n in (*range(100), "after")}
        assert read_all(broker.bootstrap, "merged", wanted) >= wanted
        with worker_process(settings, tmp_path) as (third, _):
            eventually(
                lambda: (
                    set((placed(third, names) or {}).values())
                    == {survivor, third.removeprefix("http://")}
                ),
                what="the third worker to get its share",
            )


def read_all(bootstrap: str, topic: str, wanted: set[str]) -> set[str]:
    found: set[str] = set()

    def all_there() -> bool:
        found.update(each.value.decode() for each in consumer.poll(0.5))
        return found >= wanted

    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        eventually(lambda: consumer.partitions_for(topic), what=f"the topic {topic}")
        consumer.assign([(topic, each.partition) for each in consumer.partitions_for(topic)])
        eventually(all_there, what="all lines")
    return found


def test_a_worker_that_is_not_the_leader_forwards(broker: BrokerProcess, tmp_path: Path) -> None:
    file = tmp_path / "in.txt"
    file.write_text("x\n")
    config = {"connector.class": "FileStreamSource", "file": str(file), "topic": "forwarded"}
    with (
        distributed_worker(broker.bootstrap, "forwarding") as one,
        distributed_worker(broker.bootstrap, "forwarding") as two,
    ):
        eventually(
            lambda: (
                one.service.herder.membership.leader_url == two.service.herder.membership.leader_url
            ),
            what="one leader",
        )
        other = two if one.service.herder.membership.is_leader else one
        assert not other.service.herder.membership.is_leader
        for n in range(3):
            made = other.call("POST", "/connectors", {"name": f"c{n}", "config": config})
            assert made.status == 201, made.body
            assert made.headers["location"] == f"{other.url}/connectors/c{n}"
        for n in range(3):
            one.wait_for(f"c{n}", "RUNNING", "RUNNING")
            # Whichever worker has it.
            assert one.call("POST", f"/connectors/c{n}/restart").status == 204
            assert two.call("POST", f"/connectors/c{n}/tasks/0/restart").status == 204
            assert other.call("PUT", f"/connectors/c{n}/stop").status == 204
            one.wait_for(f"c{n}", "STOPPED")
            assert other.call("DELETE", f"/connectors/c{n}").status == 204
        refused = one.call("POST", "/connectors/c0/tasks", [{}])
        assert (refused.status, refused.body["message"]) == (
            400,
            "Internal request missing required signature",
        )
