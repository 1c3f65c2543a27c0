"""One Spark Connect server and one broker for all tests of a run that need them.

A virtual machine takes seconds to start, so every test works in the same server, in topics and
checkpoints of its own. What a test leaves running in it is stopped after the test, and the server
itself by its id at the end of the run.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.testing import Broker
from support.processes import ROOT, free_port

CONNECTOR_JARS = ROOT / ".cache" / "spark" / "jars"
START_SECONDS_MAX = 120.0
_numbers = itertools.count(1)

# Python workers that Spark starts must have the packages of this interpreter.
os.environ["PYSPARK_PYTHON"] = sys.executable


def _jars() -> list[Path]:
    return sorted(CONNECTOR_JARS.glob("*.jar"))


def _command(folder: Path, port: int) -> list[str]:
    import pyspark

    conf = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
    }
    if _jars():
        conf["spark.jars"] = ",".join(map(str, _jars()))
    command = [f"{Path(pyspark.__file__).parent}/bin/spark-submit", "--master", "local[2]"]
    for key, value in conf.items():
        command += ["--conf", f"{key}={value}"]
    return [*command, "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]


@pytest.fixture(scope="session")
def spark_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the run's Connect server."""
    if shutil.which("java") is None:
        pytest.skip("no Java on this machine: Spark cannot run")
    folder = tmp_path_factory.mktemp("spark-server")
    port = free_port()
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*_command(folder, port), "spark-internal"],
            stdout=output,
            stderr=output,
            cwd=folder,
            start_new_session=True,
        )
    try:
        _wait_until_listening(process, port, log)
        yield f"sc://127.0.0.1:{port}"
    finally:
        # The Python workers are children of the server, in its process group.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_until_listening(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"no Connect server on {port}:\n{log.read_text(errors='replace')[-4000:]}")


@pytest.fixture(scope="session")
def spark_session(spark_url: str) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.remote(spark_url).getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def spark(spark_session: Any) -> Iterator[Any]:
    """The run's session; queries that the test leaves running are stopped after it."""
    yield spark_session
    for query in spark_session.streams.active:
        query.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with Broker() as made:
        yield made


@pytest.fixture(scope="session")
def bootstrap(broker: Broker) -> str:
    return str(broker.bootstrap_servers)


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that no other test of the run has; the topic itself is not made."""
    return f"{request.node.originalname.replace('_', '-')}-{next(_numbers)}"


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")


@pytest.fixture(scope="session")
def connectors() -> tuple[str, ...]:
    """The formats of topics that the server has: ours, and Spark's own where its jars are."""
    return ("moldau", "kafka") if _jars() else ("moldau",)
