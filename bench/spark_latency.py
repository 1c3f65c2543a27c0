"""Micro-batches from topic to topic: where the time of a record and of a batch goes.

    python -m bench.spark_latency [--rounds 2] [--seconds 10]

Our connector exactly once and at least once and Spark's own, at least once, take turns in one
server with one broker; Spark's own once more with files of checkpoints written as Spark does by
default, as it runs on a server that is not ours. After them the same copy as a pipeline, exactly
once: it needs nothing of Spark's, so it runs as a task without micro-batches. Latency is from a
record's timestamp until a reader of committed records has it from the output topic; the phases are
those of Spark's own progress, medians; CPU is that of the server and its Python workers for each
batch, of a task that of its processes for each record. The load is printed, as all of this depends
on it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench import servers, spark
from bench.deployments import Costs
from moldau.pipelines import Pipeline, Pipelines, Topic, daemon
from moldau.spark import ConnectServer

FILES = "spark.sql.streaming.checkpointFileManagerClass"
DEFAULT_FILES = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
)
TASK = "pipeline as a task"
WARM_RECORDS = 100
WARM_SECONDS_MAX = 60.0
PHASES = ("latestOffset", "walCommit", "queryPlanning", "addBatch", "commitOffsets")


def _told(name: str, found: list[spark.Latency]) -> str:
    p50 = statistics.median(each.p50_ms for each in found)
    p99 = statistics.median(each.p99_ms for each in found)
    phases = {
        phase: statistics.median(each.phases_ms.get(phase, 0.0) for each in found)
        for phase in (*PHASES, "triggerExecution")
    }
    cpu = statistics.median(each.cpu_ms for each in found)
    shown = "  ".join(f"{phases[phase]:8,.0f}" for phase in phases)
    return f"{name:24}  {p50:6,.0f} {p99:6,.0f}  {shown}  {cpu:8,.0f}"


def _print(name: str, found: spark.Latency) -> None:
    print(_told(name, [found]), f"  load {os.getloadavg()[0]:.1f}", flush=True)


@contextmanager
def deployment(server: servers.Server) -> Iterator[tuple[Pipelines, Costs]]:
    """Of pipelines beside Spark's server, which keeps a process for tasks."""
    with tempfile.TemporaryDirectory(prefix="bench-tasks-") as name:
        folder = Path(name)
        spark_server = ConnectServer(folder)
        spark_server.remember()
        try:
            with Pipelines(server.bootstrap, folder=folder, timeout=300) as pipelines:
                yield pipelines, Costs(folder)
        finally:
            daemon.stop(folder, timeout=300)
            spark_server.stop()


def of_task(
    pipelines: Pipelines, costs: Costs, server: servers.Server, *, seconds: float, name: str
) -> spark.Latency:
    """The same copy without micro-batches; CPU is that of all its processes for each record."""
    for topic in (name, f"{name}-out"):
        server.create_topic(topic)
    pipelines.start(
        Pipeline(
            name,
            source=Topic(name, schema="at BIGINT", startingOffsets="earliest"),
            steps=["SELECT at FROM input"],
            sink=Topic(f"{name}-out"),
            engine="task",
        )
    )
    found: list[float] = []
    warm: list[float] = []
    try:
        with spark.traffic(server, name) as poll:
            poll(warm, WARM_SECONDS_MAX, until=lambda: len(warm) >= WARM_RECORDS)
            before = costs.cpu_seconds()
            poll(found, seconds)
            used = costs.cpu_seconds() - before
        if len(found) < 2:
            raise RuntimeError(f"{name}-out stood still for {seconds} s")
    finally:
        pipelines.stop(name)
    cuts = statistics.quantiles(found, n=100)
    return spark.Latency(statistics.median(found), cuts[98], {}, 1000 * used / len(found))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.spark_latency")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only-ours", action="store_true", help="without Spark's own connector")
    given = parser.parse_args()
    kinds: Mapping[str, tuple[str, bool, bool]] = {
        "moldau, exactly once": (spark.OURS, True, False),
        "moldau, at least once": (spark.OURS, False, False),
        "official, at least once": (spark.OFFICIAL, False, False),
        "official, default files": (spark.OFFICIAL, False, True),
    }
    found: dict[str, list[spark.Latency]] = {name: [] for name in (*kinds, TASK)}
    with (
        spark.running() as running,
        servers.moldau() as server,
        deployment(server) as (pipelines, costs),
    ):
        own_files = running.session.conf.get(FILES)
        for number in range(given.rounds):
            # Each is the first in its turn: Java gets faster for minutes.
            order = deque(kinds.items())
            order.rotate(-number)
            for name, (kind, exactly_once, default_files) in order:
                if kind not in running.formats or (given.only_ours and kind == spark.OFFICIAL):
                    continue
                running.session.conf.set(FILES, DEFAULT_FILES if default_files else own_files)
                found[name].append(
                    spark.latency(
                        running,
                        server,
                        kind,
                        seconds=given.seconds,
                        exactly_once=exactly_once,
                        name=f"round-{number}-{default_files}",
                    )
                )
                _print(name, found[name][-1])
            found[TASK].append(
                of_task(pipelines, costs, server, seconds=given.seconds, name=f"task-{number}")
            )
            _print(TASK, found[TASK][-1])
    print(f"\n{'ms, medians':24}  {'p50':>6} {'p99':>6}  ", end="")
    print("  ".join(f"{phase[:8]:>8}" for phase in (*PHASES, "all")), f"{'CPU':>9}")
    for name, each in found.items():
        if each:
            print(_told(name, each))
    return 0


if __name__ == "__main__":
    sys.exit(main())
