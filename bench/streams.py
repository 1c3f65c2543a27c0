"""What the core of streams costs: `python -m bench.streams [--records 200000] [--plain]`.

Tasks process records in this process, without a broker: from the bytes of an input record to the
bytes of all that it writes. Records per CPU second, the best of some rounds. `--plain` measures the
same modules without their compiled form.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from moldau.client import ConsumerRecord

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.plain import PlainForms

if TYPE_CHECKING:
    from moldau.streams import StreamsBuilder

ROUNDS = 3
RESULTS = Path(__file__).parent / "results"
COMMIT_EVERY = 10_000
CACHE_BYTES = 10 * 1024 * 1024


def records(count: int, keys: int, span_ms: int = 60_000) -> list[ConsumerRecord[bytes, bytes]]:
    """Keys in a fixed, mixed order; times that go forth."""
    step = 7_919
    padding = b"x" * 80
    return [
        ConsumerRecord(
            "left",
            0,
            number,
            number * span_ms // count,
            key=b"%08d" % (number * step % keys),
            value=padding,
        )
        for number in range(count)
    ]


Program = Callable[["StreamsBuilder"], None]


def stateless(builder: StreamsBuilder) -> None:
    (
        builder.stream("left", key_serde="string", value_serde="string")
        .filter(lambda key, value: value is not None)
        .map_values(lambda value: value + "!")
        .map(lambda key, value: (key, value))
        .to("out", key_serde="string", value_serde="string")
    )


def count(builder: StreamsBuilder) -> None:
    stream = builder.stream("left", key_serde="string", value_serde="string")
    stream.group_by_key().count(store="counts").to_stream().to("out", value_serde="long")


def windowed_count(builder: StreamsBuilder) -> None:
    from moldau.streams import TimeWindows

    stream = builder.stream("left", key_serde="string", value_serde="string")
    windowed = stream.group_by_key().windowed_by(TimeWindows(size=5_000, grace=1_000))
    windowed.count(store="counts").to_stream().to("out", value_serde="long")


def stream_table(builder: StreamsBuilder) -> None:
    table = builder.table("right", key_serde="string", value_serde="string", store="rows")
    stream = builder.stream("left", key_serde="string", value_serde="string")
    joined = stream.join(table, lambda one, two: one)
    joined.to("out", key_serde="string", value_serde="string")


def stream_stream(builder: StreamsBuilder) -> None:
    from moldau.streams import JoinWindows

    left = builder.stream("left", key_serde="string", value_serde="string")
    right = builder.stream("right", key_serde="string", value_serde="string")
    joined = left.join(right, lambda one, two: one, windows=JoinWindows(time_difference=50))
    joined.to("out", key_serde="string", value_serde="string")


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    program: Program
    keys: int
    #: Whether the second topic is filled first, or read in turns with the first.
    right: str = ""
    persistent: bool = False
    cached: bool = False


ROWS = [
    Row("filter, map_values, map", stateless, 1_000),
    Row("count, 1,000 keys", count, 1_000),
    Row("count, 1,000 keys, cached", count, 1_000, cached=True),
    Row("count, 1,000 keys, on disk", count, 1_000, persistent=True),
    Row("count, 1 M keys", count, 1_000_000),
    Row("count, 1 M keys, on disk", count, 1_000_000, persistent=True),
    Row("windowed count, 1,000 keys", windowed_count, 1_000),
    Row("stream-table join, 1,000 rows", stream_table, 1_000, right="first"),
    Row("stream-stream join, 1,000 keys", stream_stream, 1_000, right="turns"),
    Row("stream-stream join, on disk", stream_stream, 1_000, right="turns", persistent=True),
]


def run(row: Row, inputs: list[ConsumerRecord[bytes, bytes]]) -> float:
    """Records per CPU second."""
    from moldau.streams import StreamsBuilder
    from moldau.streams.machine.task import Task, TaskSettings
    from moldau.streams.stores._cache import RecordCache
    from moldau.streams.stores.disk import open_state

    builder = StreamsBuilder()
    row.program(builder)
    assembly = builder.build().assembly
    written: list[Any] = []
    settings = TaskSettings(application_id="bench")
    with ExitStack() as stack:
        if row.persistent:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            settings.state = open_state(Path(folder))
        if row.cached:
            settings.cache = RecordCache(CACHE_BYTES)
        task = Task(assembly.nodes.values(), assembly.stores, settings, written.append)
        task.initialize()
        if row.right == "first":
            task.process_records("right", 0, inputs[: row.keys])
        chunks = [
            inputs[start : start + COMMIT_EVERY] for start in range(0, len(inputs), COMMIT_EVERY)
        ]
        started = time.process_time()
        for chunk in chunks:
            if row.right == "turns":
                half = len(chunk) // 2
                task.process_records("left", 0, chunk[:half])
                task.process_records("right", 0, chunk[half:])
            else:
                task.process_records("left", 0, chunk)
            task.punctuate_stream_time()
            task.prepare_commit()
            task.committed({})
            written.clear()
        task.committed({}, force=True)
        taken = time.process_time() - started
        task.close()
    return len(inputs) / taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--plain", action="store_true", help="without the compiled modules")
    parser.add_argument("--rows", default="", help="only rows whose name contains this")
    options = parser.parse_args()
    if options.plain:
        sys.meta_path.insert(0, PlainForms("moldau.streams."))
    console = Console()
    table = Table("core, one task, one core", "records per CPU second", "µs per record")
    found = {}
    for row in ROWS:
        if options.rows not in row.name:
            continue
        count = max(options.records, 2 * row.keys) if row.keys > 1_000 else options.records
        inputs = records(count, row.keys)
        best = max(run(row, inputs) for _ in range(ROUNDS))
        found[row.name] = round(best)
        table.add_row(row.name, f"{best:,.0f}", f"{1e6 / best:.2f}")
    console.print(table)
    if not options.rows:
        name = "streams-core-plain.json" if options.plain else "streams-core.json"
        (RESULTS / name).write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
