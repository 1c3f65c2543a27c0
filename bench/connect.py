"""FileStream through Connect: `python -m bench.connect [--records 500000] [--size 100]`.

A standalone worker of Moldau and, where its jars are (`make kafka`), one of Apache Kafka's Connect
4.3 copy the same file to a topic and the topic to a file, one after the other, on the same broker.
Both run in a process of their own. Printed: the time until the worker answers, records a second
from the first to the last, and records per second of the worker's CPU (what counts on a machine
with neighbours; for Java it has the warm-up in it).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from bench.servers import environment
from moldau.client import Consumer
from moldau.testing import Broker

JARS = Path(__file__).parents[1] / ".cache" / "kafka"
SETTINGS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "offset.flush.interval.ms": "10000",
}
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"


def free_port() -> int:
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def write(path: Path, properties: dict[str, str]) -> Path:
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return path


@contextmanager
def worker(kind: str, bootstrap: str, folder: Path, connector: dict[str, str]) -> Iterator[tuple[
        psutil.Process, float]]:  # fmt: skip
    """The process, and the seconds until it answered."""
    port = free_port()
    settings = {
        **SETTINGS,
        "bootstrap.servers": bootstrap,
        "listeners": f"http://127.0.0.1:{port}",
        "offset.storage.file.filename": str(folder / f"offsets-{port}"),
        "plugin.discovery": "only_scan",
    }
    files = [
        write(folder / f"worker-{port}.properties", settings),
        write(folder / f"connector-{port}.properties", connector),
    ]
    if kind == "moldau":
        command = [sys.executable, "-m", "moldau.cli", "connect", "standalone"]
    else:
        java = ["java", "-Xmx512m", "-cp", f"{JARS}/*"]
        command = [*java, "org.apache.kafka.connect.cli.ConnectStandalone"]
    began = time.perf_counter()
    process = psutil.Popen(
        [*command, *map(str, files)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(),
    )
    try:
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/connectors", timeout=5).read()
                break
            except OSError:
                if process.poll() is not None:
                    raise RuntimeError(f"the worker {kind} has ended") from None
                time.sleep(0.005)
        yield process, time.perf_counter() - began
    finally:
        process.terminate()
        process.wait(30)


def cpu_s(process: psutil.Process) -> float:
    found = process.cpu_times()
    return float(found.user + found.system)


def report(what: str, count: int, size: int, start_s: float, took_s: float, cpu: float) -> None:
    rate = count / took_s
    print(
        f"{what:<26}{start_s:>7.2f} s to start{rate:>11,.0f} records/s"
        f"{rate * size / 1e6:>8.1f} MB/s{count / cpu:>11,.0f} per CPU s"
    )


def to_topic(kind: str, broker: Broker, folder: Path, file: Path, count: int, size: int) -> None:
    topic = f"lines-{kind}"
    broker.create_topic(topic, 1)
    config = {
        "name": "source",
        "connector.class": SOURCE,
        "file": str(file),
        "topic": topic,
    }
    at = (topic, 0)
    with Consumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
        began = time.perf_counter()
        with worker(kind, broker.bootstrap_servers, folder, config) as (process, start_s):
            first = None
            while (end := consumer.end_offsets([at])[at]) < count:
                if end and first is None:
                    first = time.perf_counter()
                time.sleep(0.01)
            took_s = time.perf_counter() - (first or began)
            report(f"{kind} file to topic", count, size, start_s, took_s, cpu_s(process))


def to_file(kind: str, broker: Broker, folder: Path, count: int, size: int) -> None:
    result = folder / f"out-{kind}"
    config = {
        "name": f"sink-{kind}",
        "connector.class": SINK,
        "file": str(result),
        "topics": "lines-moldau",
    }
    wanted = count * size
    with worker(kind, broker.bootstrap_servers, folder, config) as (process, start_s):
        first = None
        while not result.exists() or result.stat().st_size < wanted * 0.99:
            if first is None and result.exists() and result.stat().st_size:
                first = time.perf_counter()
            time.sleep(0.01)
        took_s = time.perf_counter() - (first or 0.0)
        report(f"{kind} topic to file", count, size, start_s, took_s, cpu_s(process))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--size", type=int, default=100)
    options = parser.parse_args()
    kinds = ["moldau"]
    if any(JARS.glob("connect-file-*.jar")):
        kinds.append("kafka")
    with tempfile.TemporaryDirectory(prefix="bench-connect-") as name, Broker() as broker:
        folder = Path(name)
        file = folder / "in.txt"
        with file.open("w") as lines:
            for n in range(options.records):
                lines.write(f"{n:0{options.size - 1}d}\n")
        # Python compiles modules once, at the first start after an installation.
        subprocess.run(
            [sys.executable, "-c", "import moldau.services.connect.app"],
            env=environment(),
            stdout=subprocess.DEVNULL,
            check=True,
        )
        for kind in kinds:
            to_topic(kind, broker, folder, file, options.records, options.size)
        for kind in kinds:
            to_file(kind, broker, folder, options.records, options.size)


if __name__ == "__main__":
    main()
