"""Ten pipelines left alone for an hour with a record a second each: does anything grow?

    python -m bench.pipelines_hour [--minutes 60] [--tasks 7] [--on-spark 3] [--csv hour.csv]

`moldau start --spark` runs as a user would run it. `--tasks` pipelines run without Spark, because
`engine: auto` finds that they can; `--on-spark` ones need it: in turn a copy by a row step, counts
of windows, and a Delta table. Every minute a line says what all processes and folders of the
deployment hold. At the end the last ten minutes are compared with ten minutes near the beginning:
the least of each, for threads, files of checkpoints and Java's heap go up and down by a tenth
within minutes, and what is never given back shows in what is left at their lowest. Each record must
have been written once. The exit code is 0 if nothing grew and nothing is missing. Topics and the
Delta table grow with the data, of course, and are not counted. `--of hour.csv` compares what an
earlier run has noted.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import psutil
from deltalake import DeltaTable

from bench.deployments import Costs, files_below, started
from moldau.client import Admin, Consumer, NewTopic, Producer, TopicPartition
from moldau.pipelines import Delta, Pipeline, Pipelines, RowStep, Topic, Window

SCHEMA = "id BIGINT, at BIGINT"
#: The first minutes compile, fork and fill: they are left out of the comparison.
WARM_SHARE, COMPARED_SHARE = 0.25, 0.15
#: What is no growth: a share of the value, and a number on top of it.
ALLOWED = {
    "memory_mb": (0.05, 10.0),
    "processes": (0.0, 1.0),
    "threads": (0.02, 3.0),
    "open_files": (0.02, 3.0),
    "checkpoint_files": (0.05, 5.0),
    "checkpoint_kb": (0.05, 20.0),
    "other_files": (0.05, 3.0),
}


@dataclass(frozen=True, slots=True)
class Sample:
    """What the deployment held at one moment."""

    minute: float
    memory_mb: float
    processes: int
    threads: int
    open_files: int
    checkpoint_files: int
    checkpoint_kb: float
    #: Logs, events and states beside the checkpoints; logs roll over, so their number counts.
    other_files: int
    other_kb: float
    #: Of one core, since the last sample.
    cpu_percent: float
    #: Of the records that came out since the last sample.
    p50_ms: float
    p95_ms: float
    sent: int
    received: int
    load: float


def passed_on(row: dict[str, object]) -> dict[str, object]:
    return row


class Hour:
    def __init__(self, folder: Path, bootstrap: str, *, tasks: int, on_spark: int) -> None:
        self._folder = folder
        self._deployment = folder / "data-spark"
        self._bootstrap = bootstrap
        self._costs = Costs(folder)
        self._tables: list[str] = []
        self._windows: list[str] = []
        self._definitions = [self._task(number) for number in range(tasks)]
        self._definitions += [self._on_spark(number) for number in range(on_spark)]
        self.sent = 0
        self._received: dict[str, Counter[int]] = {each: Counter() for each in self._copies()}
        self._counted = 0
        self._latencies: list[float] = []
        self._lock = threading.Lock()

    # Definitions.

    def _source(self, name: str) -> Topic:
        return Topic(f"{name}-in", schema=SCHEMA, startingOffsets="earliest")

    def _task(self, number: int) -> Pipeline:
        name = f"task-{number}"
        steps = ["SELECT id, at FROM input WHERE id >= 0"]
        return Pipeline(name, source=self._source(name), steps=steps, sink=Topic(f"{name}-out"))

    def _on_spark(self, number: int) -> Pipeline:
        name = f"spark-{number}"
        source = self._source(name)
        if number % 3 == 1:
            self._windows.append(f"{name}-out")
            step = Window("time", {"count": "count(*)"}, size="10 seconds", delay="5 seconds")
            steps = ["SELECT timestamp_millis(at) AS time FROM input", step]
            return Pipeline(name, source=source, steps=steps, sink=Topic(f"{name}-out"))
        if number % 3 == 2:
            table = str(self._folder / "tables" / name)
            self._tables.append(table)
            return Pipeline(name, source=source, sink=Delta(table), trigger="5 seconds")
        steps = [RowStep(passed_on)]
        return Pipeline(name, source=source, steps=steps, sink=Topic(f"{name}-out"))

    def _copies(self) -> list[str]:
        topics = [f"{each.name}-out" for each in self._definitions if isinstance(each.sink, Topic)]
        return [name for name in topics if name not in self._windows]

    # The run.

    def start(self) -> None:
        names = [each.name for each in self._definitions]
        topics = [f"{name}-{end}" for name in names for end in ("in", "out")]
        with Admin({"bootstrap.servers": self._bootstrap}) as admin:
            admin.create_topics([NewTopic(topic, 1, 1) for topic in topics])
        with Pipelines(self._bootstrap, folder=self._deployment, timeout=600) as pipelines:
            for definition in self._definitions:
                pipelines.start(definition, wait=False)
            for name in names:
                pipelines.wait(name, "running", timeout=600)
                print(f"{name} runs as {pipelines.show(name).engine}", flush=True)

    @contextmanager
    def flowing(self) -> Iterator[None]:
        """A record a second to each pipeline, until the block ends."""
        ending = threading.Event()
        threads = [threading.Thread(target=self._send, args=(ending,))]
        threads.append(threading.Thread(target=self._receive, args=(ending,)))
        for thread in threads:
            thread.start()
        try:
            yield
            self._drain()
        finally:
            ending.set()
            for thread in threads:
                thread.join()

    def _send(self, ending: threading.Event) -> None:
        begun = time.monotonic()
        patient = {"delivery.timeout.ms": 600_000, "max.block.ms": 600_000}
        with Producer({"bootstrap.servers": self._bootstrap, **patient}) as producer:
            while not ending.wait(max(0.0, begun + self.sent - time.monotonic())):
                value = json.dumps({"id": self.sent, "at": int(time.time() * 1000)}).encode()
                for each in self._definitions:
                    producer.send(f"{each.name}-in", value)
                producer.flush(600.0)
                self.sent += 1

    def _receive(self, ending: threading.Event) -> None:
        config = {
            "bootstrap.servers": self._bootstrap,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
        with Consumer(config) as consumer:
            places = [*self._received, *self._windows]
            consumer.assign([TopicPartition(name, 0) for name in places])
            while not ending.is_set():
                for record in consumer.poll(0.2):
                    row = json.loads(record.value)
                    with self._lock:
                        if record.topic in self._received:
                            self._received[record.topic][row["id"]] += 1
                            self._latencies.append(time.time() * 1000 - row["at"])
                        else:
                            self._counted += row["count"]

    def _drain(self) -> None:
        """Until all that was sent a little ago is there."""
        wanted, deadline = self.sent, time.monotonic() + 120.0
        while time.monotonic() < deadline:
            with self._lock:
                if all(len(each) >= wanted for each in self._received.values()):
                    return
            time.sleep(0.1)

    def samples(self, minutes: float) -> Iterator[Sample]:
        begun = last = time.monotonic()
        used = self._costs.cpu_seconds()
        for number in range(1, max(2, round(minutes)) + 1):
            time.sleep(max(0.0, begun + number * minutes * 60 / max(2, round(minutes)) - last))
            now, used_now = time.monotonic(), self._costs.cpu_seconds()
            yield self._sample((now - begun) / 60, 100 * (used_now - used) / (now - last))
            last, used = time.monotonic(), used_now

    def _sample(self, minute: float, cpu_percent: float) -> Sample:
        with self._lock:
            latencies, self._latencies = sorted(self._latencies) or [0.0], []
            received = sum(each.total() for each in self._received.values())
        checkpoints = files_below(self._deployment / "checkpoints")
        everything = files_below(self._deployment)
        return Sample(
            minute=round(minute, 1),
            memory_mb=round(self._costs.memory_mb(), 1),
            processes=len(self._costs.processes()),
            threads=self._costs.threads(),
            open_files=self._costs.open_files(),
            checkpoint_files=checkpoints[0],
            checkpoint_kb=round(checkpoints[1] / 1e3, 1),
            other_files=everything[0] - checkpoints[0],
            other_kb=round((everything[1] - checkpoints[1]) / 1e3, 1),
            cpu_percent=round(cpu_percent, 1),
            p50_ms=round(statistics.median(latencies)),
            p95_ms=round(latencies[int(0.95 * (len(latencies) - 1))]),
            sent=self.sent,
            received=received,
            load=round(psutil.getloadavg()[0], 1),
        )

    def problems(self) -> list[str]:
        """Records that are missing or more than there should be."""
        found = []
        for topic, seen in self._received.items():
            missing = sum(1 for number in range(self.sent - 1) if number not in seen)
            twice = sum(1 for times in seen.values() if times > 1)
            if missing or twice:
                found.append(f"{topic}: {missing} missing, {twice} more than once")
        if self._windows and not 0 <= self.sent * len(self._windows) - self._counted <= 60:
            found.append(f"windows counted {self._counted} of {self.sent}")
        for table in self._tables:
            ids = Counter(DeltaTable(table).to_pyarrow_table()["id"].to_pylist())
            missing = sum(1 for number in range(self.sent - 60) if number not in ids)
            if missing or max(ids.values()) > 1:
                found.append(f"{table}: {missing} missing, {max(ids.values())} times at most")
        return found


def growth(samples: Sequence[Sample]) -> Iterator[tuple[str, float, float, bool]]:
    """The least of each figure near the beginning and at the end, and whether that is growth."""
    warm = int(len(samples) * WARM_SHARE)
    width = max(1, int(len(samples) * COMPARED_SHARE))
    for name, (share, number) in ALLOWED.items():
        values = [getattr(each, name) for each in samples]
        before, after = min(values[warm : warm + width]), min(values[-width:])
        yield name, before, after, after > before * (1 + share) + number


def tell(samples: Sequence[Sample]) -> bool:
    """Whether nothing has grown."""
    grown = list(growth(samples))
    for name, before, after, is_growth in grown:
        print(f"{name:18} {before:10,.1f} -> {after:10,.1f}{'  GREW' if is_growth else ''}")
    return not any(is_growth for *_, is_growth in grown)


def noted(path: Path) -> list[Sample]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [Sample(**{name: float(value) for name, value in row.items()}) for row in rows]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.pipelines_hour")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--tasks", type=int, default=7)
    parser.add_argument("--on-spark", type=int, default=3)
    parser.add_argument("--csv", type=Path, default=Path("pipelines-hour.csv"))
    parser.add_argument("--keep", action="store_true", help="keep the folder with all logs")
    parser.add_argument("--of", type=Path, help="only compare what an earlier run has noted")
    given = parser.parse_args()
    if given.of is not None:
        return 0 if tell(noted(given.of)) else 1
    # Ends the deployment too, also where a shell has let background jobs ignore Ctrl-C.
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="moldau-hour-"))
    print(f"folder {folder}", flush=True)
    samples: list[Sample] = []
    with started(folder) as bootstrap, given.csv.open("w", newline="") as file:
        hour = Hour(folder, bootstrap, tasks=given.tasks, on_spark=given.on_spark)
        hour.start()
        writer = csv.DictWriter(file, [each.name for each in fields(Sample)])
        writer.writeheader()
        with hour.flowing():
            for sample in hour.samples(given.minutes):
                samples.append(sample)
                writer.writerow(asdict(sample))
                file.flush()
                print(sample, flush=True)
        problems = hour.problems()
        sent = hour.sent
    nothing_grew = tell(samples)
    print(f"{sent} records to each pipeline: {'; '.join(problems) or 'each written once'}")
    is_good = not problems and nothing_grew
    if is_good and not given.keep:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
