"""From a record to the update that it causes: `python -m bench.streams_latency [--quick]`.

A program of `bench/stream_programs` counts by key in a process of its own. Records are sent one by
one at times that do not keep step with its commits, and each is timed from before it is sent until
a committed reader has its update. So the figures contain a produce request and a fetch. librdkafka
sends and reads, because it adds least: a record straight from it to it takes 1.3 ms here, and 3 ms
between two clients in Python that share a process.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import confluent_kafka
import psutil
from rich.console import Console
from rich.table import Table

from bench.servers import Server, moldau
from bench.streams_others import (
    GUARANTEES,
    OTHERS,
    RESULTS,
    SETTINGS,
    programs,
    running_program,
)

WARM_UP_S = 3.0
WAIT_S_MAX = 60.0
#: Above this rate not every record is timed, so that the reader does little beside reading.
TIMED_PER_S_MAX = 200.0
#: A shorter sleep takes longer than it says.
SLEEP_S_MIN = 0.001


@dataclass(frozen=True, slots=True)
class Latency:
    """Of one program at one rate, in milliseconds."""

    program: str
    guarantee: str
    per_second: float
    records: int
    p50_ms: float
    p99_ms: float


class Reader:
    """Notes when each key's update is read first, in a thread of its own."""

    def __init__(self, server: Server, topic: str) -> None:
        self.seen: dict[bytes, float] = {}
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": server.bootstrap,
                "group.id": "latency-reader",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        self._consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.is_set():
            # One at a time: `consume` waits until it has as many as it may return.
            record = self._consumer.poll(0.2)
            if record is not None and record.error() is None:
                self.seen.setdefault(record.key(), time.perf_counter())
        self._consumer.close()

    def wait(self, keys: list[bytes]) -> None:
        """Until all of them were seen; raises TimeoutError."""
        deadline = time.monotonic() + WAIT_S_MAX
        while not all(key in self.seen for key in keys):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not all updates came within {WAIT_S_MAX:g} s")
            time.sleep(0.05)

    def close(self) -> None:
        self._ended.set()
        self._thread.join()


def send(
    producer: confluent_kafka.Producer, source: str, name: str, rate: float, seconds: float
) -> dict[bytes, float]:
    """Records at random distances with this mean; when each that is timed was sent."""
    rng = random.Random(name)
    sent: dict[bytes, float] = {}
    share = min(1.0, TIMED_PER_S_MAX / rate)
    others = [f"{name}-other-{number}".encode() for number in range(1_000)]
    due = began = time.perf_counter()
    while due - began < seconds:
        due += rng.uniform(0.0, 2.0) / rate
        left = due - time.perf_counter()
        if left > SLEEP_S_MIN:
            time.sleep(left)
        if rng.random() < share:
            key = f"{name}-{len(sent)}".encode()
            sent[key] = time.perf_counter()
        else:
            key = rng.choice(others)
        producer.produce(source, b"a value of some thirty-two bytes", key)
        producer.poll(0)
    return sent


def measure(
    server: Server,
    program: str,
    command: list[str],
    guarantee: str,
    number: int,
    rates: list[float],
    seconds: float,
) -> list[Latency]:
    """One program at each rate, after it has answered for some seconds."""
    # Of its own: what was sent to the programs before would be a backlog.
    source, target = f"latency-in-{number}", f"latency-out-{number}"
    server.create_topic(source)
    server.create_topic(target)
    arguments = [server.bootstrap, source, target, f"latency-{number}", guarantee, "count", "disk"]
    found = []
    reader = Reader(server, target)
    try:
        producer = confluent_kafka.Producer({"bootstrap.servers": server.bootstrap, "linger.ms": 0})
        with running_program([*command, *arguments]):
            reader.wait(list(send(producer, source, f"{number}-warm", 20.0, WARM_UP_S)))
            for rate in rates:
                sent = send(producer, source, f"{number}-{rate:g}", rate, seconds)
                reader.wait(list(sent))
                taken = [1000 * (reader.seen[key] - at) for key, at in sent.items()]
                cuts = statistics.quantiles(taken, n=100, method="inclusive")
                found.append(Latency(program, guarantee, rate, len(sent), cuts[49], cuts[98]))
            producer.flush()
    finally:
        reader.close()
    return found


def show(found: list[Latency], console: Console) -> None:
    table = Table("program", "guarantee", "records/s", "p50, ms", "p99, ms")
    for each in found:
        times = (f"{each.p50_ms:.1f}", f"{each.p99_ms:.1f}")
        table.add_row(each.program, each.guarantee, f"{each.per_second:,.0f}", *times)
    console.print(table)


def keep(found: list[Latency]) -> None:
    figures = [asdict(each) for each in found]
    (RESULTS / "streams-latency.json").write_text(json.dumps(figures, indent=2) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rates", default="10,100,1000", help="records per second, in turn")
    parser.add_argument("--seconds", type=float, default=20.0, help="per rate")
    parser.add_argument("--quick", action="store_true", help="5 s per rate; no file of results")
    parser.add_argument("--others", type=Path, default=OTHERS, help="a Python with other libraries")
    parser.add_argument("--only", default="", help="programs whose name contains this")
    options = parser.parse_args()
    rates = [float(each) for each in options.rates.split(",")]
    seconds = 5.0 if options.quick else options.seconds
    console = Console()
    found: list[Latency] = []
    with tempfile.TemporaryDirectory() as classes, moldau(*SETTINGS) as server:
        number = 0
        for name, command in programs(options.others, Path(classes)).items():
            if options.only not in name:
                continue
            for guarantee in GUARANTEES:
                number += 1
                try:
                    found += measure(server, name, command, guarantee, number, rates, seconds)
                except (TimeoutError, RuntimeError, psutil.Error) as error:
                    console.print(f"{name}, {guarantee}: {error}", markup=False)
    show(found, console)
    if not options.quick:
        keep(found)


if __name__ == "__main__":
    main()
