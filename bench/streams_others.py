"""Streams beside other libraries, in one run: `python -m bench.streams_others [--quick]`.

Each program counts by key and writes every update; they are in `bench/stream_programs`. They run
one after the other against the same broker, each with the same input, and are timed from the first
to the last update that a committed reader sees. Nothing is installed: Kafka Streams runs where its
jars are (`make kafka`), Quix Streams and Faust where `--others` has a Python with them, such as the
one that `make bench-streams-others` makes in .cache/streams-others.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from bench.servers import Server, environment, kafka_available, moldau
from moldau.client import Consumer, Producer

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.java import JAVA

ROOT = Path(__file__).parents[1]
PROGRAMS = Path(__file__).parent / "stream_programs"
RESULTS = Path(__file__).parent / "results"
OTHERS = ROOT / ".cache" / "streams-others" / "bin" / "python"
GUARANTEES = ("exactly_once_v2", "at_least_once")
INPUT = "bench-in"
SECONDS_MAX = 300.0


@dataclass(frozen=True, slots=True)
class Figures:
    """What a program did with all records."""

    program: str
    guarantee: str
    records: int
    seconds: float
    cpu_s: float
    start_s: float

    @property
    def per_second(self) -> float:
        return self.records / self.seconds

    @property
    def cpu_us(self) -> float:
        return self.cpu_s / self.records * 1e6


def programs(others: Path) -> dict[str, list[str]]:
    """The commands that are at hand, by name."""
    found = {"moldau.streams": [sys.executable, str(PROGRAMS / "moldau_count.py")]}
    if kafka_available():
        found["Kafka Streams (Java)"] = [*JAVA, str(PROGRAMS / "KafkaCount.java")]
    for name, module in (("Quix Streams", "quixstreams"), ("Faust", "faust")):
        if others.exists() and _has(others, module):
            program = f"{module.removesuffix('streams')}_count.py"
            found[name] = [str(others), str(PROGRAMS / program)]
    return found


def _has(python: Path, module: str) -> bool:
    command = [str(python), "-c", f"import {module}"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def fill(server: Server, count: int, keys: int) -> None:
    """The input: keys in a fixed, mixed order."""
    server.create_topic(INPUT)
    with Producer(bootstrap_servers=server.bootstrap, linger_ms=20) as producer:
        for number in range(count):
            key = f"key{number * 7_919 % keys}".encode()
            producer.send(INPUT, b"a value of some thirty-two bytes", key)


def run(
    server: Server, name: str, command: list[str], guarantee: str, count: int, number: int
) -> Figures:
    """One program from its start to its last update; raises TimeoutError."""
    target, application_id = f"bench-out-{number}", f"bench-{number}"
    server.create_topic(target)
    arguments = [server.bootstrap, INPUT, target, application_id, guarantee]
    began = time.monotonic()
    with (
        running_program([*command, *arguments]) as cpu_seconds,
        Consumer(
            bootstrap_servers=server.bootstrap,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            max_poll_records=10_000,
        ) as reader,
    ):
        reader.assign([(target, 0)])
        seen, first, cpu = 0, 0.0, 0.0
        while seen < count:
            found = len(reader.poll(0.5))
            taken = cpu_seconds()  # Raises if the program has ended.
            if found and not seen:
                first, cpu = time.monotonic(), taken
            seen += found
            if time.monotonic() - began > SECONDS_MAX:
                raise TimeoutError(f"{name} wrote {seen} of {count} updates in {SECONDS_MAX:g} s")
        ended = time.monotonic()
        return Figures(name, guarantee, count, ended - first, cpu_seconds() - cpu, first - began)


@contextmanager
def running_program(command: list[str]) -> Iterator[Callable[[], float]]:
    """A program while it runs; the CPU seconds that it has taken."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment())
        watched = psutil.Process(process.pid)

        def cpu_seconds() -> float:
            if process.poll() is not None:
                log.seek(0)
                said = log.read().decode(errors="replace")[-2000:]
                raise RuntimeError(f"{command[0]} ended by itself:\n{said}")
            times = watched.cpu_times()
            return float(times.user + times.system)

        try:
            yield cpu_seconds
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--keys", type=int, default=1_000)
    parser.add_argument("--quick", action="store_true", help="5,000 records; no file of results")
    parser.add_argument("--others", type=Path, default=OTHERS, help="a Python with other libraries")
    parser.add_argument("--only", default="", help="programs whose name contains this")
    options = parser.parse_args()
    count = 5_000 if options.quick else options.records
    console = Console()
    found: list[Figures] = []
    with moldau() as server:
        fill(server, count, options.keys)
        for name, command in programs(options.others).items():
            if options.only not in name:
                continue
            for guarantee in GUARANTEES:
                try:
                    found.append(run(server, name, command, guarantee, count, len(found)))
                except (TimeoutError, RuntimeError, psutil.Error) as error:
                    console.print(f"{name}, {guarantee}: {error}", markup=False)
    table = Table("program", "guarantee", "records/s", "CPU µs/record", "first result, s")
    for each in found:
        table.add_row(
            each.program,
            each.guarantee,
            f"{each.per_second:,.0f}",
            f"{each.cpu_us:.1f}",
            f"{each.start_s:.1f}",
        )
    console.print(table)
    if not options.quick:
        figures = [asdict(each) for each in found]
        (RESULTS / "streams-others.json").write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
