"""Apache Kafka's own Connect, as a process beside ours."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.connect_workers import call, distributed_settings
from support.ports import free_port
from support.processes import java, kafka_missing, write_properties
from support.waiting import eventually


@contextmanager
def java_worker(bootstrap: str, group: str, folder: Path) -> Iterator[str]:
    """The URL of Apache Kafka's worker."""
    if reason := kafka_missing():
        pytest.skip(reason)
    port = free_port()
    settings = distributed_settings(bootstrap, group)
    settings["listeners"] = f"http://127.0.0.1:{port}"
    # It has no log here, and looks for plug-ins in the class path only.
    settings["plugin.discovery"] = "only_scan"
    file = write_properties(folder / f"java-{port}.properties", settings)
    with (folder / f"java-{port}.log").open("wb") as log:
        process = subprocess.Popen(
            [
                *java(Path("none")),
                "org.apache.kafka.connect.cli.ConnectDistributed",
                str(file),
            ],
            stdout=log,
            stderr=log,
        )
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        assert process.poll() is None, (folder / f"java-{port}.log").read_text()
        try:
            return call(url, "GET", "/connectors").status == 200
        except OSError:
            return False

    try:
        eventually(answers, what="Apache Kafka's worker", seconds_max=120)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
