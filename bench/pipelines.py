"""Many small pipelines: latency, CPU, memory and processes for 1, 10 and 50 of them.

    python -m bench.pipelines [--counts 1,10,50] [--engines task,spark,kafka] [--seconds 30]

Each pipeline is `SELECT id, at FROM input WHERE id >= 0` from one topic to a topic of its own, at 2
records/s. `task` runs it without Spark, `spark` in micro-batches of our connector, exactly once,
`kafka` in those of Spark's own connector, at least once. Figures are of everything but the broker:
control loop, Spark server, Python processes. `start` is `moldau start --spark` with pipelines of
which it decides itself how they run, and its figures are of everything, broker and Spark included.
Memory is the proportional set size.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from bench.deployments import Costs, started
from moldau.client import Admin, Consumer, NewTopic, Producer, TopicPartition
from moldau.pipelines import Pipelines, daemon
from moldau.pipelines.definition import Pipeline, Topic
from moldau.spark import ConnectServer
from moldau.testing import Broker

INPUT = "bench-in"
ENGINES = ("start", "task", "spark", "kafka")
RECORDS_PER_SECOND = 2
_ENGINE_OF = {"start": "auto", "task": "task", "spark": "spark", "kafka": "spark"}
RESULTS = Path(__file__).parent / "results" / "pipelines.json"


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one engine with a number of pipelines."""

    engine: str
    count: int
    p50_ms: float
    p95_ms: float
    #: The same after a pause without records.
    paused_p50_ms: float
    paused_p95_ms: float
    #: Of one core.
    cpu_percent: float
    idle_cpu_percent: float
    processes: int
    memory_mb: float
    load: float


class Bench:
    """One deployment with its broker."""

    def __init__(self, folder: Path, bootstrap: str, engine: str, count: int) -> None:
        self._costs = Costs(folder)
        self._bootstrap = bootstrap
        self._engine = engine
        self._count = count
        self._outputs = [f"bench-out-{number}" for number in range(count)]
        self._latencies: list[float] = []
        self._lock = threading.Lock()

    def start(self, pipelines: Pipelines) -> None:
        with Admin({"bootstrap.servers": self._bootstrap}) as admin:
            admin.create_topics([NewTopic(name, 1, 1) for name in (INPUT, *self._outputs)])
        for number, output in enumerate(self._outputs):
            definition = Pipeline(
                f"small-{number}",
                source=Topic(INPUT, schema="id BIGINT, at BIGINT", startingOffsets="earliest"),
                steps=["SELECT id, at FROM input WHERE id >= 0"],
                sink=Topic(output),
                engine=_ENGINE_OF[self._engine],
                connector="kafka" if self._engine == "kafka" else "auto",
            )
            pipelines.start(definition, wait=False)
        for number in range(self._count):
            pipelines.wait(f"small-{number}", "running", timeout=600)

    def _send(self, producer: Producer, number: int) -> None:
        value = json.dumps({"id": number, "at": int(time.time() * 1000)}).encode()
        producer.send(INPUT, value).result(30)

    def _receive(self, ending: threading.Event) -> None:
        config = {
            "bootstrap.servers": self._bootstrap,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
        with Consumer(config) as consumer:
            consumer.assign([TopicPartition(name, 0) for name in self._outputs])
            while not ending.is_set():
                for record in consumer.poll(0.2):
                    taken = time.time() * 1000 - json.loads(record.value)["at"]
                    with self._lock:
                        self._latencies.append(taken)

    def _take(self) -> list[float]:
        with self._lock:
            taken, self._latencies = self._latencies, []
        return taken

    def _drain(self, wanted: int, seconds_max: float) -> list[float]:
        deadline = time.monotonic() + seconds_max
        found: list[float] = []
        while len(found) < wanted and time.monotonic() < deadline:
            found += self._take()
            time.sleep(0.05)
        return found

    def measure(self, *, seconds: float, warm: float, pause: float) -> Figures:
        ending = threading.Event()
        receiver = threading.Thread(target=self._receive, args=(ending,))
        receiver.start()
        try:
            with Producer({"bootstrap.servers": self._bootstrap}) as producer:
                return self._measure(producer, seconds=seconds, warm=warm, pause=pause)
        finally:
            ending.set()
            receiver.join()

    def _measure(self, producer: Producer, *, seconds: float, warm: float, pause: float) -> Figures:
        sent = self._send_for(producer, warm, 0)
        self._drain(sent * self._count, 120)
        with self._costs.cpu_percent() as busy:
            first = self._send_for(producer, seconds, sent)
        found = self._drain(first * self._count, 60)
        processes = len(self._costs.processes())
        memory = self._costs.memory_mb()
        with self._costs.cpu_percent() as idle:
            time.sleep(pause)
        self._take()
        again = self._send_for(producer, 3, sent + first)
        paused = self._drain(again * self._count, 60)
        return Figures(
            engine=self._engine,
            count=self._count,
            p50_ms=round(statistics.median(found)),
            p95_ms=round(_quantile(found, 0.95)),
            paused_p50_ms=round(statistics.median(paused)),
            paused_p95_ms=round(_quantile(paused, 0.95)),
            cpu_percent=round(busy[0], 1),
            idle_cpu_percent=round(idle[0], 1),
            processes=processes,
            memory_mb=round(memory),
            load=round(psutil.getloadavg()[0], 1),
        )

    def _send_for(self, producer: Producer, seconds: float, start: int) -> int:
        end, sent = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            self._send(producer, start + sent)
            sent += 1
            time.sleep(1 / RECORDS_PER_SECOND)
        return sent


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def run(engine: str, count: int, *, seconds: float, warm: float, pause: float) -> Figures:
    with tempfile.TemporaryDirectory(prefix="bench-pipelines-") as name:
        if engine == "start":
            with started(Path(name)) as bootstrap:
                return _measured(
                    Path(name, "data-spark"),
                    Bench(Path(name), bootstrap, engine, count),
                    bootstrap,
                    seconds=seconds,
                    warm=warm,
                    pause=pause,
                )
        return _without_broker(Path(name, "spark"), engine, count, seconds, warm, pause)


def _measured(folder: Path, bench: Bench, bootstrap: str, **times: float) -> Figures:
    with Pipelines(bootstrap, folder=folder, timeout=600) as pipelines:
        bench.start(pipelines)
        return bench.measure(**times)


def _without_broker(
    folder: Path, engine: str, count: int, seconds: float, warm: float, pause: float
) -> Figures:
    folder.mkdir()
    with Broker() as broker:
        bootstrap = str(broker.bootstrap_servers)
        server = ConnectServer(folder, connector="kafka" if engine == "kafka" else "moldau")
        server.remember()
        try:
            bench = Bench(folder, bootstrap, engine, count)
            return _measured(folder, bench, bootstrap, seconds=seconds, warm=warm, pause=pause)
        finally:
            daemon.stop(folder, timeout=300)
            server.stop()


def show(figures: Sequence[Figures]) -> None:
    table = Table(
        *("pipelines", "engine", "p50 / p95", "after a pause", "CPU", "CPU idle", "processes"),
        "memory",
    )
    for each in figures:
        table.add_row(
            str(each.count),
            each.engine,
            f"{each.p50_ms / 1000:.2f} / {each.p95_ms / 1000:.2f} s",
            f"{each.paused_p50_ms / 1000:.2f} / {each.paused_p95_ms / 1000:.2f} s",
            f"{each.cpu_percent:.0f} %",
            f"{each.idle_cpu_percent:.1f} %",
            str(each.processes),
            f"{each.memory_mb:.0f} MB",
        )
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.pipelines")
    parser.add_argument("--counts", default="1,10,50", help="numbers of pipelines")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--warm", type=float, default=20.0)
    parser.add_argument("--pause", type=float, default=45.0)
    given = parser.parse_args()
    figures: list[Figures] = []
    for count in map(int, given.counts.split(",")):
        for engine in given.engines.split(","):
            # Fifty queries of Spark do not fit on a small machine.
            if engine in ("task", "start") or count <= 10:
                made = run(engine, count, seconds=given.seconds, warm=given.warm, pause=given.pause)
                print(made, flush=True)
                figures.append(made)
    show(figures)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps([asdict(each) for each in figures], indent=2) + "\n")


if __name__ == "__main__":
    main()
