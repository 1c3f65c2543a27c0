"""Micro-batches from topic to topic: where the time of a record and of a batch goes.

    python -m bench.spark_latency [--rounds 2] [--seconds 10]

Our connector exactly once and at least once and Spark's own, at least once, take turns in one
server with one broker; Spark's own once more with files of checkpoints written as Spark does by
default, as it runs on a server that is not ours. Latency is from a record's timestamp until a
reader of committed records has it from the output topic; the phases are those of Spark's own
progress, medians; CPU is that of the server and its Python workers for each batch. The load is
printed, as all of this depends on it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections import deque
from collections.abc import Mapping

from bench import servers, spark

FILES = "spark.sql.streaming.checkpointFileManagerClass"
DEFAULT_FILES = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
)
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
    found: dict[str, list[spark.Latency]] = {name: [] for name in kinds}
    with spark.running() as running, servers.moldau() as server:
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
                print(_told(name, found[name][-1:]), f"  load {os.getloadavg()[0]:.1f}", flush=True)
    print(f"\n{'ms, medians':24}  {'p50':>6} {'p99':>6}  ", end="")
    print("  ".join(f"{phase[:8]:>8}" for phase in (*PHASES, "all")), f"{'CPU':>9}")
    for name, each in found.items():
        if each:
            print(_told(name, each))
    return 0


if __name__ == "__main__":
    sys.exit(main())
