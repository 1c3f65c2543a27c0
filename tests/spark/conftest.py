"""One Spark Connect server and one broker for all tests of a run that need them.

A virtual machine takes seconds to start, so every test works in the same server, in topics and
checkpoints of its own. What a test leaves running in it is stopped after the test, and the server
itself at the end of the run. All processes that tests start have their temporary files in the
run's own folder.

A machine that is busy with other things takes ten times as long for everything: bounds of waits are
for what never comes, and far above what such a machine needs.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.spark import ConnectServer, session
from moldau.spark.runtime.errors import JavaNotFound
from moldau.testing import Broker
from support.processes import ROOT, BrokerProcess, apache_kafka, kafka_missing

HERE = Path(__file__).resolve().parent
# What is fetched or made once is kept beside Apache Kafka's jars.
os.environ.setdefault("MOLDAU_CACHE", str(ROOT / ".cache" / "spark"))
# Python workers that a test itself lets Spark start must have the packages of this interpreter.
os.environ["PYSPARK_PYTHON"] = sys.executable

#: For servers of tests: little memory, quick to start, and no UI unless it is the point.
SMALL = {
    # Spark gives up a Python worker that has not called back by then.
    "spark.python.authenticate.socketTimeout": "240s",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.ui.enabled": "false",
    "spark.eventLog.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}
START_SECONDS_MAX = 300.0
TEST_SECONDS_MAX = 900
_numbers = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """More than the 300 s of other tests: a test may have to start the server first."""
    for item in items:
        if item.path.is_relative_to(HERE) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TEST_SECONDS_MAX))


@pytest.fixture(scope="session", autouse=True)
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where processes that tests start have their temporary files; Java has a mind of its own."""
    folder = tmp_path_factory.mktemp("temporary")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TMPDIR", str(folder))
        patched.setenv("JDK_JAVA_OPTIONS", f"-Djava.io.tmpdir={folder}")
        yield folder


@pytest.fixture(scope="session")
def small() -> dict[str, str]:
    """Settings for a server of a test's own."""
    return dict(SMALL)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """The run's Connect server; it has Spark's own connector where that can be had."""
    folder = tmp_path_factory.mktemp("spark-server")
    made = ConnectServer(
        folder,
        master="local[2]",
        conf=SMALL,
        connector="kafka",
        start_seconds_max=START_SECONDS_MAX,
    )
    try:
        made.start()
    except JavaNotFound as error:
        pytest.skip(f"Spark cannot run here: {error}")
    for notice in made.notices:
        print(notice)
    yield made
    made.stop()


@pytest.fixture(scope="session")
def spark_url(server: ConnectServer) -> str:
    return server.session_url


@pytest.fixture(scope="session")
def spark_session(spark_url: str) -> Iterator[Any]:
    made = session(spark_url)
    yield made
    made.stop()


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


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Apache Kafka, for what runs against either."""
    missing = kafka_missing()
    if missing:
        pytest.skip(missing)
    with apache_kafka(tmp_path_factory.mktemp("kafka")) as made:
        yield made


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that no other test of the run has; the topic itself is not made."""
    return f"{request.node.originalname.replace('_', '-')}-{next(_numbers)}"


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")


@pytest.fixture(scope="session")
def connectors(server: ConnectServer) -> tuple[str, ...]:
    """The formats of topics that the server has: ours, and Spark's own where its jars are."""
    return tuple(dict.fromkeys(("moldau", server.state.connector)))


@pytest.fixture(scope="session")
def official(server: ConnectServer) -> str:
    """Spark's own format; tests that need it are skipped where it cannot be had."""
    if server.state.connector != "kafka":
        pytest.skip("; ".join(server.notices) or "Spark's own connector is not here")
    return "kafka"
