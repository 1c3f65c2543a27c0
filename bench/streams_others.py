"""Streams beside other libraries, in one run: `python -m bench.streams_others [--quick]`.

The programs of `bench/stream_programs` run one after the other against the same broker, each with
the same input, without caches, so that every update is written. CPU is counted from a third of the
updates on, when a virtual machine has compiled what is hot, until a committed reader has the last.
A start is timed from the process to the first update, and a restore from the process with empty
state to the first update after it. Latencies are those of `bench.streams_latency`, at ten records a
second and at half the rate that the count on disk reached. Nothing is installed: Kafka Streams runs
where its jars are (`make kafka`), Quix Streams and Faust where `--others` has a Python with them,
such as the one that `make bench-streams-others` makes in .cache/streams-others. `--starts N` only
starts each of them N times, in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from rich.console import Console
from rich.table import Table

from bench.servers import KAFKA_JARS, Server, environment, kafka_available, moldau
from moldau.client import Consumer, Producer

if TYPE_CHECKING:
    from bench.streams_latency import Latency

ROOT = Path(__file__).parents[1]
PROGRAMS = Path(__file__).parent / "stream_programs"
RESULTS = Path(__file__).parent / "results"
OTHERS = ROOT / ".cache" / "streams-others" / "bin" / "python"
OURS = "moldau.streams"
JAVA = "Kafka Streams (Java)"
GUARANTEES = ("exactly_once_v2", "at_least_once")
SECONDS_MAX = 300.0
IDLE_S = 5.0
WARM_UP = 1 / 3
#: Which part of the records the slow ones get.
PART_OF_SLOW = 1 / 20
VALUE = b"a value of some thirty-two bytes"
#: Programs wait for nobody else to join their group.
SETTINGS = (
    "group.initial.rebalance.delay.ms=0",
    "group.streams.initial.rebalance.delay.ms=0",
)


@dataclass(frozen=True, slots=True)
class Row:
    """A program, where its input comes from, and who has it."""

    name: str
    what: str
    inputs: tuple[str, ...] = ("bench-in",)
    store: str = "disk"
    #: Records that are read for each that is written.
    reads: int = 1
    slow: str = ""


ROWS = [
    Row("stateless", "stateless", slow="Quix Streams, Faust"),
    Row("count, 1,000 keys, on disk", "count", slow="Quix Streams"),
    Row("count, 1,000 keys, in memory", "count", store="memory", slow="Faust"),
    Row("count, 1 M keys, on disk", "count", ("bench-million",)),
    Row("count, 1 M keys, in memory", "count", ("bench-million",), store="memory"),
    Row("windowed count, on disk", "windowed", slow="Quix Streams"),
    Row("windowed count, in memory", "windowed", store="memory", slow="Faust"),
    Row("stream-table join, on disk", "stream-table", ("bench-in", "bench-table")),
    Row("stream-stream join, on disk", "stream-stream", ("bench-in", "bench-right"), reads=2),
]
START = Row("start", "count", ("bench-one",))
#: The row whose rate is the full load.
LOADED = "count, 1,000 keys, on disk"
MEMORY = ("resident", "proportional", "own")
#: What one sender in Python does beside a broker on two cores.
HALF_MAX = 10_000.0


@dataclass(frozen=True, slots=True)
class Figures:
    """What a program did with all records; without `records` only its start was measured."""

    row: str
    program: str
    guarantee: str
    records: int
    seconds: float
    cpu_s: float
    #: From the process to the first update.
    start_s: float
    start_cpu_s: float
    memory_mb: float
    idle_share: float | None = None
    restore_s: float | None = None

    @property
    def per_cpu_second(self) -> float:
        return self.records / self.cpu_s if self.cpu_s else 0.0


def programs(others: Path, classes: Path) -> dict[str, list[str]]:
    """The commands that are at hand, by name; `classes` is for compiled Java."""
    found = {OURS: [sys.executable, str(PROGRAMS / "moldau_program.py")]}
    # An installed package has its modules compiled; those of a checkout are compiled now.
    ready = [sys.executable, "-c", "from moldau.streams import KafkaStreams"]
    subprocess.run(ready, env=environment(), cwd=ROOT, check=True)
    if kafka_available():
        path = f"{classes}:{KAFKA_JARS}/*"
        source = PROGRAMS / "KafkaProgram.java"
        subprocess.run(["javac", "-d", str(classes), "-cp", path, str(source)], check=True)
        found[JAVA] = ["java", "-cp", path, "KafkaProgram"]
    for name, module in (("Quix Streams", "quixstreams"), ("Faust", "faust")):
        if others.exists() and _has(others, module):
            program = f"{module.removesuffix('streams')}_program.py"
            found[name] = [str(others), str(PROGRAMS / program)]
    return found


def _has(python: Path, module: str) -> bool:
    command = [str(python), "-c", f"import {module}"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def fill(server: Server, count: int, rows: list[Row]) -> None:
    """The inputs of the rows: keys in a fixed, mixed order, ten records in each millisecond."""
    keys_of = {"bench-in": 1_000, "bench-right": 1_000, "bench-million": 1_000_000}
    wanted = {topic for row in (START, *rows) for topic in row.inputs}
    began_ms = time.time_ns() // 1_000_000 - count // 10
    with Producer(bootstrap_servers=server.bootstrap, linger_ms=20) as producer:
        for topic, keys in {**keys_of, "bench-table": 1_000, "bench-one": 1}.items():
            if topic not in wanted:
                continue
            server.create_topic(topic)
            for number in range(count if topic in keys_of else keys):
                key = f"key{number * 7_919 % keys}".encode()
                at = began_ms + number // 10 if topic in keys_of else began_ms - 1
                producer.send(topic, VALUE, key, timestamp=at)


@dataclass(frozen=True, slots=True)
class Start:
    """A program at its first update; megabytes are resident, proportional and own."""

    seconds: float
    cpu_s: float
    resident: float
    proportional: float
    own: float


class Running:
    """A program that runs, and what it has taken of the machine."""

    def __init__(self, process: subprocess.Popen[bytes], said: Callable[[], str]) -> None:
        self._process = process
        self._watched = psutil.Process(process.pid)
        self._said = said

    def check(self) -> None:
        if self._process.poll() is not None:
            raise RuntimeError(f"the program ended by itself:\n{self._said()}")

    def cpu_s(self) -> float:
        self.check()
        times = self._watched.cpu_times()
        return float(times.user + times.system)

    def memory_mb(self) -> float:
        self.check()
        return float(self._watched.memory_info().rss / 1e6)

    def start_since(self, began: float) -> Start:
        seconds = time.monotonic() - began
        used = self._watched.memory_full_info()
        megabytes = (used.rss / 1e6, used.pss / 1e6, used.uss / 1e6)
        return Start(seconds, self.cpu_s(), *megabytes)


@contextmanager
def running_program(command: list[str]) -> Iterator[Running]:
    """A program while it runs, with a state directory of its own."""
    with tempfile.TemporaryFile() as log, tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [*command, folder], stdout=log, stderr=log, cwd=ROOT, env=environment()
        )

        def said() -> str:
            log.seek(0)
            return log.read().decode(errors="replace")[-2000:]

        try:
            yield Running(process, said)
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Bench:
    """All programs on one broker."""

    def __init__(
        self,
        server: Server,
        commands: dict[str, list[str]],
        count: int,
        guarantees: tuple[str, ...] = GUARANTEES,
    ) -> None:
        self.guarantees = guarantees
        self.server = server
        self.commands = commands
        self._count = count
        self._number = 0

    def _arguments(self, row: Row, guarantee: str) -> list[str]:
        number = self._number
        inputs, target = ",".join(row.inputs), f"bench-out-{number}"
        application = f"bench-{number}"
        bootstrap = self.server.bootstrap
        return [bootstrap, inputs, target, application, guarantee, row.what, row.store]

    def _reader(self) -> Consumer[bytes, bytes]:
        reader: Consumer[bytes, bytes] = Consumer(
            bootstrap_servers=self.server.bootstrap,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            max_poll_records=10_000,
        )
        reader.assign([(f"bench-out-{self._number}", 0)])
        return reader

    def measure(self, row: Row, name: str, guarantee: str) -> Figures:
        """One program from its start to its last update; raises TimeoutError."""
        self._number += 1
        self.server.create_topic(f"bench-out-{self._number}")
        count = self._count if name in (OURS, JAVA) else int(self._count * PART_OF_SLOW)
        command = [*self.commands[name], *self._arguments(row, guarantee)]
        began = time.monotonic()
        with running_program(command) as program, self._reader() as reader:
            seen, first, warm = 0, (0.0, 0.0), (0, 0.0, 0.0)
            while seen < count:
                found = len(reader.poll(0.5))
                program.check()
                now = time.monotonic()
                if found and not seen:
                    first = (now, program.cpu_s())
                seen += found
                if not warm[0] and seen >= count * WARM_UP:
                    warm = (seen, now, program.cpu_s())
                if now - began > SECONDS_MAX:
                    raise TimeoutError(f"{name} wrote {seen} of {count} in {SECONDS_MAX:g} s")
            seconds, cpu_s = time.monotonic() - warm[1], program.cpu_s() - warm[2]
            records = (seen - warm[0]) * row.reads
            memory_mb = program.memory_mb()
        times = (seconds, cpu_s, first[0] - began, first[1])
        return Figures(row.name, name, guarantee, records, *times, memory_mb)

    def measure_start(self, name: str, guarantee: str) -> Figures:
        """Until the first update, and what it costs to run without records."""
        self._number += 1
        self.server.create_topic(f"bench-out-{self._number}")
        command = [*self.commands[name], *self._arguments(START, guarantee)]
        began = time.monotonic()
        with running_program(command) as program, self._reader() as reader:
            start_s, start_cpu_s = self._until_update(reader, program, began), program.cpu_s()
            time.sleep(1.0)
            cpu_s = program.cpu_s()
            time.sleep(IDLE_S)
            share = (program.cpu_s() - cpu_s) / IDLE_S
            memory_mb = program.memory_mb()
        times = (0.0, 0.0, start_s, start_cpu_s)
        return Figures(START.name, name, guarantee, 0, *times, memory_mb, idle_share=share)

    def start(self, name: str, guarantee: str) -> Start:
        self._number += 1
        self.server.create_topic(f"bench-out-{self._number}")
        command = [*self.commands[name], *self._arguments(START, guarantee)]
        with self._reader() as reader:
            # Before the program: its start is not to wait for the reader's.
            reader.poll(0.0)
            began = time.monotonic()
            with running_program(command) as program:
                self._until_update(reader, program, began)
                return program.start_since(began)

    def measure_restore(self, found: Figures, row: Row) -> Figures:
        """Start what was measured last again, without its state."""
        command = [*self.commands[found.program], *self._arguments(row, found.guarantee)]
        with self._reader() as reader, Producer(bootstrap_servers=self.server.bootstrap) as sender:
            reader.seek_to_end([(f"bench-out-{self._number}", 0)])
            reader.poll(0.0)
            sender.send(row.inputs[0], VALUE, b"key1")
            sender.flush()
            began = time.monotonic()
            with running_program(command) as program:
                restore_s = self._until_update(reader, program, began)
        return replace(found, restore_s=restore_s)

    def _until_update(
        self, reader: Consumer[bytes, bytes], program: Running, began: float
    ) -> float:
        while not reader.poll(0.5):
            program.check()
            if time.monotonic() - began > SECONDS_MAX:
                raise TimeoutError(f"no update within {SECONDS_MAX:g} s")
        return time.monotonic() - began


def run_starts(bench: Bench, names: list[str], console: Console) -> list[Figures]:
    found: list[Figures] = []
    for name in names:
        for guarantee in bench.guarantees:
            try:
                found.append(bench.measure_start(name, guarantee))
            except (TimeoutError, RuntimeError, psutil.Error) as error:
                console.print(f"start of {name}, {guarantee}: {error}", markup=False)
    return found


def run_many_starts(bench: Bench, names: list[str], count: int, console: Console) -> None:
    """Starts in turns, so that what else the machine does meets all alike: best (median)."""
    kinds = [(name, guarantee) for guarantee in bench.guarantees for name in names]
    found: dict[tuple[str, str], list[Start]] = {kind: [] for kind in kinds}
    for _ in range(count):
        for kind in kinds:
            found[kind].append(bench.start(*kind))
    table = Table("started for one record", "first update, s", "CPU, s", *MEMORY)
    for (name, guarantee), starts in found.items():
        cells = []
        for column, digits in (("seconds", 3), ("cpu_s", 3), *((each, 0) for each in MEMORY)):
            values = [getattr(each, column) for each in starts]
            cells.append(f"{min(values):.{digits}f} ({statistics.median(values):.{digits}f})")
        table.add_row(f"{name}, {guarantee}", *cells)
    console.print(table)
    console.print(f"{count} starts each, load {os.getloadavg()[0]:.1f}; memory in MB")


def run_rows(bench: Bench, names: list[str], rows: list[Row], console: Console) -> list[Figures]:
    found: list[Figures] = []
    for row in rows:
        for guarantee in bench.guarantees:
            for name in names:
                if name not in (OURS, JAVA) and name not in row.slow:
                    continue
                try:
                    figures = bench.measure(row, name, guarantee)
                    if row.store == "memory" and "1 M" in row.name:
                        figures = bench.measure_restore(figures, row)
                except (TimeoutError, RuntimeError, psutil.Error) as error:
                    console.print(f"{row.name}, {name}, {guarantee}: {error}", markup=False)
                    continue
                found.append(figures)
                rate = f"{figures.per_cpu_second:,.0f} per CPU second"
                console.print(f"{row.name}, {guarantee}, {name}: {rate}", markup=False)
    return found


def run_latencies(
    bench: Bench, found: list[Figures], seconds: float, console: Console
) -> list[Latency]:
    """Of us and Kafka Streams, at low load and at half of what they did in this run."""
    from bench import streams_latency

    latencies: list[Latency] = []
    for number, each in enumerate(found):
        if each.row != LOADED or each.program not in (OURS, JAVA):
            continue
        half = min(HALF_MAX, each.records / each.seconds / 2)
        command = bench.commands[each.program]
        try:
            latencies += streams_latency.measure(
                bench.server, each.program, command, each.guarantee, number, [10.0, half], seconds
            )
        except (TimeoutError, RuntimeError, psutil.Error) as error:
            console.print(f"latency of {each.program}, {each.guarantee}: {error}", markup=False)
    streams_latency.show(latencies, console)
    return latencies


def show(found: list[Figures], console: Console) -> None:
    """Each row with our part of the others' records per CPU second."""
    table = Table("program", "guarantee", "library", "records/s", "per CPU s", "ours", "MB")
    starts = Table("library", "guarantee", "first update, s", "CPU s", "MB", "idle, % of a core")
    ours = {(each.row, each.guarantee): each for each in found if each.program == OURS}
    for each in found:
        if not each.records:
            share = f"{100 * (each.idle_share or 0):.1f}"
            times = (f"{each.start_s:.2f}", f"{each.start_cpu_s:.2f}")
            starts.add_row(each.program, each.guarantee, *times, f"{each.memory_mb:.0f}", share)
            continue
        our = ours.get((each.row, each.guarantee))
        ratio = our.per_cpu_second / each.per_cpu_second if our and each.cpu_s else 0.0
        rates = (f"{each.records / each.seconds:,.0f}", f"{each.per_cpu_second:,.0f}")
        memory = f"{each.memory_mb:.0f}"
        table.add_row(each.row, each.guarantee, each.program, *rates, f"{ratio:.2f}", memory)
        if each.restore_s is not None:
            restored = f"{each.restore_s:.1f} s"
            table.add_row("", "", "restored in", restored)
    console.print(table)
    console.print(starts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_200_000)
    parser.add_argument("--quick", action="store_true", help="60,000 records; no file of results")
    parser.add_argument("--others", type=Path, default=OTHERS, help="a Python with other libraries")
    parser.add_argument("--only", default="", help="libraries whose name contains one of these")
    parser.add_argument("--rows", default="", help="rows whose name contains this")
    parser.add_argument("--guarantee", choices=GUARANTEES, help="only this one")
    parser.add_argument(
        "--starts", type=int, default=0, help="only so many starts of each, in turns"
    )
    parser.add_argument("--no-starts", action="store_true", help="only the rows")
    parser.add_argument("--latency", type=float, default=10.0, help="seconds per rate; 0: none")
    parser.add_argument("--keep", type=Path, help="write the figures into this file")
    options = parser.parse_args()
    count = 60_000 if options.quick else options.records
    console = Console(width=120)
    with tempfile.TemporaryDirectory() as classes, moldau(*SETTINGS) as server:
        commands = programs(options.others, Path(classes))
        wanted = options.only.split(",")
        names = [name for name in commands if any(each in name for each in wanted)]
        rows = [row for row in ROWS if options.rows in row.name]
        fill(server, count, [] if options.starts else rows)
        guarantees = (options.guarantee,) if options.guarantee else GUARANTEES
        bench = Bench(server, commands, count, guarantees)
        if options.starts:
            run_many_starts(bench, names, options.starts, console)
            return
        found = [] if options.no_starts else run_starts(bench, names, console)
        found += run_rows(bench, names, rows, console)
        show(found, console)
        latencies = run_latencies(bench, found, options.latency, console) if options.latency else []
    keep = options.keep or (None if options.quick else RESULTS / "streams-others.json")
    if keep is not None:
        figures = [asdict(each) for each in (*found, *latencies)]
        keep.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
