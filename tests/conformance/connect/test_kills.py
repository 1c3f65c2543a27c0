"""A worker that is killed again and again, exactly once: every line is there, none twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from moldau.client import Consumer
from moldau.config import dump_properties
from support.connect_kills import missing, run
from support.connect_workers import call, distributed_settings, is_healthy
from support.ports import free_port
from support.processes import BrokerProcess
from support.waiting import eventually

KILLS = int(os.environ.get("KILLS", "5"))
LINES = 20_000


@contextmanager
def killable(
    settings: dict[str, str], folder: Path
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    port = free_port()
    file = folder / f"worker-{port}.properties"
    file.write_text(dump_properties({**settings, "listeners": f"http://127.0.0.1:{port}"}))
    with (folder / f"worker-{port}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "moldau.cli", "connect", "start", str(file)],
            stdout=log,
            stderr=log,
        )
    try:
        yield f"http://127.0.0.1:{port}", process
    finally:
        process.kill()
        process.wait()


def is_running(url: str) -> bool:
    try:
        found = call(url, "GET", "/connectors/lines/status")
    except OSError:
        return False
    return (
        found.status == 200
        and [each["state"] for each in found.body["tasks"]] == ["RUNNING"]
        and found.body["tasks"][0]["worker_id"] in url
    )


@pytest.mark.long(
    "kills workers; `make connect-kills` kills more, test_failures shows exactly once"
)
@pytest.mark.slow("kills a worker and waits for its session to end, then kills the database")
@pytest.mark.parametrize(
    ("flow", "kills", "seed", "wanted"),
    [
        pytest.param("jdbc", 2, 6, (1, 1), id="jdbc"),
        pytest.param(
            "cdc", 1, 4, (0, 1), id="cdc", marks=pytest.mark.long("the same with another flow")
        ),
    ],
)
def test_each_record_arrives_once_through_kills(
    broker: BrokerProcess, tmp_path: Path, flow: str, kills: int, seed: int, wanted: tuple[int, int]
) -> None:
    """`make connect-kills` does this at length, also with S3."""
    if why := missing(flow):
        pytest.skip(why)
    found = run(flow, tmp_path, broker.bootstrap, kills=kills, seed=seed)
    assert (found["workers"], found["target"]) == wanted


@pytest.mark.long("kills a worker KILLS times (5), each time waiting for its session to end")
def test_exactly_once_through_kills(broker: BrokerProcess, tmp_path: Path) -> None:
    file = tmp_path / "in.txt"
    file.write_text("".join(f"{n}\n" for n in range(LINES)))
    settings = distributed_settings(
        broker.bootstrap,
        "kills",
        exactly_once_source_support="enabled",
        session_timeout_ms="6000",
    )
    config = {
        "connector.class": "FileStreamSource",
        "file": str(file),
        "topic": "killed-lines",
        "batch.size": "20",
        "exactly.once.support": "required",
    }
    chance = random.Random(7)
    for kill in range(KILLS + 1):
        with killable(settings, tmp_path) as (url, process):
            eventually(lambda url=url: is_healthy(url), what="the worker")  # type: ignore[misc]
            if kill == 0:
                assert call(url, "PUT", "/connectors/lines/config", config).status == 201
            eventually(lambda url=url: is_running(url), what="the task")  # type: ignore[misc]
            if kill < KILLS:
                # In the middle of the work, at some point of some transaction.
                time.sleep(chance.uniform(0.0, 0.5))
                process.send_signal(signal.SIGKILL)
                process.wait()
                with file.open("a") as more:
                    more.write(f"kill {kill}\n")
            else:
                wanted = [*map(str, range(LINES)), *(f"kill {n}" for n in range(KILLS))]
                assert read(broker.bootstrap, len(wanted)) == wanted


def read(bootstrap: str, count: int) -> list[str]:
    found: list[str] = []

    def enough() -> bool:
        found.extend(each.value.decode() for each in consumer.poll(0.5))
        return len(found) >= count

    with Consumer(
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as consumer:
        consumer.assign([("killed-lines", 0)])
        eventually(enough, what="all lines", seconds_max=120)
        # What comes after the last one would be a double.
        found.extend(each.value.decode() for each in consumer.poll(1.0))
    return found
