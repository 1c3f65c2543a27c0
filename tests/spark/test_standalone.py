"""A cluster from the same install: tasks run in a worker whose Python has no moldau."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin, NewTopic, Producer
from moldau.spark import ConnectServer, session
from spark.running import finished
from support.processes import free_port
from support.waiting import eventually

# What the archive must bring: a Python for Spark has the rest.
HIDDEN = ("moldau", "pyspark_moldau", "__editable__", "crc32c", "cramjam", "re2", "xxhash",
          "google_re2", "uvloop")  # fmt: skip


def python_without_moldau(folder: Path) -> Path:
    """An interpreter with pyspark, pyarrow and pandas of this one, and nothing of moldau."""
    venv.create(folder, with_pip=False, symlinks=True)
    packages = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    for path in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if not path.name.startswith(HIDDEN) and path.suffix != ".pth":
            (packages / path.name).symlink_to(path)
    return folder / "bin" / "python"


@contextmanager
def daemon(log: Path, *words: str, ready: str) -> Iterator[None]:
    """One of `moldau spark`'s daemons, in the foreground of a process of its own."""
    command = [sys.executable, "-m", "moldau.cli", "spark", *words]
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    environ = os.environ | {"SPARK_DAEMON_MEMORY": "512m", "SPARK_DAEMON_JAVA_OPTS": quick}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, cwd=log.parent, env=environ
        )
    try:
        eventually(
            lambda: ready in log.read_text() or process.poll() is not None,
            what=f"{words[0]} is ready",
            seconds_max=240,
        )
        assert ready in log.read_text(), log.read_text()[-3000:]
        yield
    finally:
        process.terminate()
        process.wait(120)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """A master and a worker with one core."""
    address = f"spark://127.0.0.1:{(port := free_port())}"
    at = ("--host", "127.0.0.1")
    offer = ("--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / "work"))
    with (
        daemon(
            tmp_path / "master.log",
            *("master", *at, "--port", str(port), "--webui-port", "0"),
            ready="New state: ALIVE",
        ),
        daemon(
            tmp_path / "worker.log",
            *("worker", address, *at, *offer),
            ready="Successfully registered with master",
        ),
    ):
        yield address


def where_it_runs() -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Tells of the Python that runs a task: itself, moldau, a dependency, its working directory.

    Made here and not by name: executors do not have this file.
    """

    def tell(frames: Iterator[Any]) -> Iterator[Any]:
        import os
        import sys

        import pandas
        import xxhash

        import moldau

        for _ in frames:
            told = [sys.executable, moldau.__file__, xxhash.__file__, os.getcwd()]
            yield pandas.DataFrame({"told": ["\n".join(told)]})

    return tell


@pytest.mark.long("makes an environment and a cluster of Spark's; other clusters are long, too")
@pytest.mark.slow("makes an environment without Moldau and starts a Spark cluster in it")
def test_executors_get_moldau_by_themselves(
    cluster: str, small: dict[str, str], tmp_path: Path, bootstrap: str, topic: str
) -> None:
    python = python_without_moldau(tmp_path / "venv")
    missing = subprocess.run([python, "-c", "import moldau"], capture_output=True, check=False)
    assert missing.returncode != 0
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 2), NewTopic(f"{topic}-out", 1)])
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(100):
            producer.send(topic, value=b"%d" % number, partition=number % 2)
    conf = small | {"spark.pyspark.python": str(python), "spark.executor.memory": "512m"}
    made = ConnectServer(
        tmp_path / "deploy",
        master=cluster,
        conf=conf,
        connector="moldau",
        start_seconds_max=300,
    )
    with made as server:
        spark = session(server)
        told = spark.range(1).mapInPandas(where_it_runs(), "told string").first().told
        interpreter, package, dependency, folder = told.split("\n")
        assert interpreter == str(python)
        assert folder.startswith(str(tmp_path / "work")), "it ran in the worker, not in the server"
        for file in (package, dependency):
            assert Path(file).is_relative_to(tmp_path / "work")
            assert "moldau_packages" in Path(file).parts
        options = {"kafka.bootstrap.servers": bootstrap, "startingOffsets": "earliest"}
        frame = spark.read.format("moldau").options(**options, subscribe=topic).load()
        assert frame.selectExpr("sum(cast(string(value) as int))").first()[0] == sum(range(100))
        writer = (
            spark.readStream.format("moldau")
            .options(**options, subscribe=topic)
            .load()
            .select("value")
            .writeStream.format("moldau")
            .options(**options, topic=f"{topic}-out")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
        )
        finished(lambda: [writer.start()])
        copied = spark.read.format("moldau").options(**options, subscribe=f"{topic}-out").load()
        assert copied.count() == 100
        spark.stop()
