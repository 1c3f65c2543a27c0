"""Connect: `python -m bench.connect [--quick] [--records 500000] [--size 100] [--without-kafka]`.

In one run, on one broker, workers in processes of their own:

- how long a distributed worker takes until its REST interface answers and until it is in its group;
- a file to a topic and the topic to a file, by Moldau and, where its jars are (`make kafka`), by
  Apache Kafka's Connect 4.3;
- a topic to PostgreSQL, the changes of a table to a topic, a topic to S3, where those servers are.

Measured are records a second from the first to the last, and records per second of the worker's
CPU: that is what counts on a machine with neighbours (for Java it has the warm-up in it). Results
go to the terminal and to bench/results/*-connect.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

from bench.servers import environment
from moldau.client import Consumer
from moldau.testing import Broker

JARS = Path(__file__).parents[1] / ".cache" / "kafka"
RESULTS = Path(__file__).parent / "results"
SETTINGS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "offset.flush.interval.ms": "10000",
    "plugin.discovery": "only_scan",
}
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
ROLES = {
    "standalone": "org.apache.kafka.connect.cli.ConnectStandalone",
    "distributed": "org.apache.kafka.connect.cli.ConnectDistributed",
}
STARTS = 3


@dataclass
class Results:
    """What was measured, as one row of JSON each."""

    rows: list[dict[str, object]] = field(default_factory=list)

    def flow(self, what: str, kind: str, flow: Flow) -> None:
        rate = flow.count / flow.took_s
        self.rows.append({"what": what, "program": kind, **asdict(flow)})
        print(
            f"{kind + ' ' + what:<34}{flow.start_s:>7.2f} s to start{rate:>11,.0f} records/s"
            f"{rate * flow.size / 1e6:>8.1f} MB/s{flow.count / flow.cpu_s:>11,.0f} per CPU s",
            flush=True,
        )

    def start(self, kind: str, times: dict[str, float]) -> None:
        self.rows.append({"what": "start", "program": kind, **times})
        shown = ", ".join(f"{name} {value:.2f} s" for name, value in times.items())
        print(f"{kind + ' distributed worker':<34}{shown}", flush=True)

    def write(self, path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        machine = {"cores": psutil.cpu_count(), "load": psutil.getloadavg()[0]}
        path.write_text(json.dumps({"machine": machine, "rows": self.rows}, indent=1) + "\n")
        print(f"written: {path}")


@dataclass(frozen=True)
class Flow:
    count: int
    size: int
    start_s: float
    took_s: float
    cpu_s: float


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
def process_of(
    kind: str, role: str, bootstrap: str, folder: Path, *connectors: dict[str, str],
    **settings: str,
) -> Iterator[tuple[psutil.Process, str, float]]:  # fmt: skip
    """The process, its URL, and when it was started."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    given = {**SETTINGS, "bootstrap.servers": bootstrap, "listeners": url}
    given |= {key.replace("_", "."): value for key, value in settings.items()}
    files = [write(folder / f"worker-{port}.properties", given)]
    for number, each in enumerate(connectors):
        files.append(write(folder / f"connector-{port}-{number}.properties", each))
    if kind == "moldau":
        word = "start" if role == "distributed" else role
        command = [sys.executable, "-m", "moldau.cli", "connect", word]
    else:
        command = ["java", "-Xmx512m", "-cp", f"{JARS}/*", ROLES[role]]
    began = time.perf_counter()
    process = psutil.Popen(
        [*command, *map(str, files)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(),
    )
    try:
        yield process, url, began
    finally:
        process.terminate()
        process.wait(60)


def wait_for(process: psutil.Process, url: str) -> None:
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).read()
            return
        except OSError:
            if process.poll() is not None:
                raise RuntimeError(f"the worker at {url} has ended") from None
            time.sleep(0.005)


@contextmanager
def worker(
    kind: str, bootstrap: str, folder: Path, connector: dict[str, str]
) -> Iterator[tuple[psutil.Process, float]]:
    """A standalone worker with one connector, and the seconds until it answered."""
    offsets = str(folder / f"offsets-{free_port()}")
    with process_of(
        kind, "standalone", bootstrap, folder, connector, offset_storage_file_filename=offsets
    ) as (process, url, began):
        wait_for(process, f"{url}/connectors")
        yield process, time.perf_counter() - began


def cpu_s(process: psutil.Process) -> float:
    found = process.cpu_times()
    return float(found.user + found.system)


def start(kind: str, broker: Broker, folder: Path) -> dict[str, float]:
    """Of a distributed worker, whose topics do not exist yet."""
    group = f"start-{kind}-{free_port()}"
    settings = {"group_id": group}
    for each in ("config", "offset", "status"):
        settings[f"{each}_storage_topic"] = f"{group}-{each}"
        settings[f"{each}_storage_replication_factor"] = "1"
    with process_of(kind, "distributed", broker.bootstrap_servers, folder, **settings) as (
        process,
        url,
        began,
    ):
        wait_for(process, f"{url}/connectors")
        answers_s, cpu = time.perf_counter() - began, cpu_s(process)
        wait_for(process, f"{url}/health")
        return {
            "answers": answers_s,
            "answers_cpu": cpu,
            "ready": time.perf_counter() - began,
            "ready_cpu": cpu_s(process),
        }


def to_topic(kind: str, broker: Broker, folder: Path, file: Path, count: int, size: int) -> Flow:
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
            return Flow(count, size, start_s, took_s, cpu_s(process))


def to_file(kind: str, broker: Broker, folder: Path, count: int, size: int) -> Flow:
    result = folder / f"out-{kind}"
    config = {
        "name": f"sink-{kind}",
        "connector.class": SINK,
        "file": str(result),
        "topics": "lines-moldau",
    }
    wanted = count * size
    began = time.perf_counter()
    with worker(kind, broker.bootstrap_servers, folder, config) as (process, start_s):
        first = None
        while not result.exists() or result.stat().st_size < wanted * 0.99:
            if first is None and result.exists() and result.stat().st_size:
                first = time.perf_counter()
            time.sleep(0.01)
        took_s = time.perf_counter() - (first or began)
        return Flow(count, size, start_s, took_s, cpu_s(process))


def files(kinds: list[str], broker: Broker, folder: Path, count: int, size: int,
          results: Results) -> None:  # fmt: skip
    file = folder / "in.txt"
    with file.open("w") as lines:
        for n in range(count):
            lines.write(f"{n:0{size - 1}d}\n")
    for kind in kinds:
        results.flow("file to topic", kind, to_topic(kind, broker, folder, file, count, size))
    for kind in kinds:
        results.flow("topic to file", kind, to_file(kind, broker, folder, count, size))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=500_000, help="of FileStream")
    parser.add_argument("--targets", type=int, default=50_000, help="records of the other flows")
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--quick", action="store_true", help="fewer records")
    parser.add_argument("--without-kafka", action="store_true", help="leave Apache Kafka out")
    options = parser.parse_args()
    count, targets = options.records, options.targets
    if options.quick:
        count, targets = count // 5, targets // 2
    kinds = ["moldau"]
    if not options.without_kafka and any(JARS.glob("connect-file-*.jar")):
        kinds.append("kafka")
    results = Results()
    # Python compiles modules once, at the first start after an installation.
    subprocess.run(
        [sys.executable, "-c", "import moldau.services.connect.app, moldau.cli.services.connect"],
        env=environment(),
        stdout=subprocess.DEVNULL,
        check=True,
    )
    # Not above: that module uses this one.
    from bench.connect_targets import all_targets

    with tempfile.TemporaryDirectory(prefix="bench-connect-") as name, Broker() as broker:
        folder = Path(name)
        for kind in kinds:
            for _ in range(STARTS if kind == "moldau" else 1):
                results.start(kind, start(kind, broker, folder))
        files(kinds, broker, folder, count, options.size, results)
        all_targets(broker, folder, targets, options.size, results)
    stamp = time.strftime("%Y-%m-%dT%H%M%SZ", time.gmtime())
    results.write(RESULTS / f"{stamp}-connect.json")


if __name__ == "__main__":
    main()
