"""Kill driver, executors, Python workers, broker and control loop while pipelines copy a topic.

One of the kinds of kills is aimed: the process that commits, right after it decided about a batch.

    python -m spark.chaos --rounds 50 --seed 1 [--sinks topic,delta,postgresql,s3]

There is a pipeline for each sink: a topic, a Delta table in a folder, a table of PostgreSQL, and a
Delta table in S3 (MinIO). What cannot run here is left out, with a line.

Each round produces numbered records for some seconds, kills one or two processes with SIGKILL at
moments that the seed decides, brings back what has nobody to bring it back (broker and control
loop), and waits until every number is in every sink. After every round, and once more from the
beginning at the end, each number must be there exactly once, in topics under read_committed. One
line per round; the exit code is 0 if all of them were good.
"""

from __future__ import annotations

import argparse
import logging
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from moldau.client import Admin
from moldau.client.admin import NewTopic
from moldau.pipelines import daemon
from moldau.pipelines.api import Pipelines
from moldau.pipelines.definition import Definition
from moldau.spark import ConnectServer
from moldau.spark.sink.machine.log import PARTITION_COUNT, TOPIC
from spark.chaos.counting import Counts, Numbers, await_record
from spark.chaos.targets import KINDS as TARGETS
from spark.chaos.targets import Targets
from spark.chaos.victims import KINDS, Deployment, kill
from support.minio import minio_missing
from support.postgres import postgres_missing
from support.processes import BrokerProcess, free_port, moldau

PARTITIONS = 3
INPUT, NAME = "chaos-in", "chaos"
SETTLE_SECONDS_MAX = 600.0

STEPS = {"topic": "SELECT string(_key) AS id, value FROM input"}
STEP = "SELECT bigint(value) AS number FROM input"
# Executors are processes of their own, two of them with one core each.
MASTER = "local-cluster[2,1,512]"
CONF = {
    "spark.driver.memory": "1g",
    "spark.executor.memory": "512m",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def definition(kind: str, sink: Mapping[str, Any], *, exactly_once: bool) -> Definition:
    if kind == "topic":
        sink = {**sink, "exactlyOnce": exactly_once}
    return Definition.from_json(
        {
            "name": f"{NAME}-{kind}",
            "source": {"topic": INPUT, "format": "string", "startingOffsets": "earliest"},
            "steps": [{"sql": STEPS.get(kind, STEP)}],
            "sink": sink,
            "trigger": "300 milliseconds" if kind == "topic" else "1 second",
            "connector": "moldau",
            "engine": "spark",
        }
    )


class Chaos:
    def __init__(self, folder: Path, *, seed: int, rate: float, kinds: Sequence[str]) -> None:
        self.choose = random.Random(seed)
        self.folder = folder
        self.broker: BrokerProcess = moldau(folder / "broker", port=free_port())
        self.broker.start()
        self.bootstrap = self.broker.bootstrap
        self.deployment = Deployment(folder / "spark")
        self.targets = Targets(folder, self.bootstrap, PARTITIONS)
        self.output = self.targets.topic()
        with Admin({"bootstrap.servers": self.bootstrap}) as admin:
            admin.create_topics([NewTopic(each, PARTITIONS, 1) for each in (INPUT, self.output)])
        self.numbers = Numbers(self.bootstrap, INPUT, rate=rate)
        self.counts = {kind: Counts(kind, self.targets.reader(kind)) for kind in kinds}

    def start(self, *, exactly_once: bool) -> None:
        self.exactly_once = exactly_once
        ConnectServer(self.deployment.folder, master=MASTER, conf=CONF, connector="moldau").start()
        with Pipelines(self.bootstrap, folder=self.deployment.folder) as pipelines:
            for kind, counts in self.counts.items():
                made = definition(kind, counts.target.sink, exactly_once=exactly_once)
                pipelines.start(made, wait=False)
        # A machine that is busy may need several attempts, which are the loop's to make.
        self.numbers.produce_for(0.1)
        self._wait()

    def _wait(self) -> float:
        """Until all that was produced is in every sink; how long that took."""
        begun = time.monotonic()
        for counts in self.counts.values():
            counts.wait_for(self.numbers.count, seconds_max=SETTLE_SECONDS_MAX)
        return time.monotonic() - begun

    def run_round(self, kinds: list[str]) -> str:
        """What was done; raises RuntimeError for a round that is not good."""
        first = self.numbers.count
        seconds = self.choose.uniform(4.0, 8.0)
        producing = self.numbers.start(seconds)
        moments = sorted(self.choose.uniform(0.5, seconds) for _ in kinds)
        begun = time.monotonic()
        told, coming_back = [], []
        for moment, kind in zip(moments, kinds, strict=True):
            time.sleep(max(0.0, begun + moment - time.monotonic()))
            done, thread = self._strike(kind)
            told.append(f"{done} at {moment:.1f} s")
            coming_back += [thread] if thread is not None else []
        for each in (*coming_back, producing):
            each.join(300.0)
        try:
            taken = self._wait()
            problems = [each.problem(self.numbers.count) for each in self.counts.values()]
        except RuntimeError as error:
            problems = [str(error)]
        if found := [each for each in problems if each is not None]:
            raise RuntimeError(f"{', '.join(told)}: {'; '.join(found)}")
        count = self.numbers.count - first
        return f"{', '.join(told)}; {count} records, all once {taken:.1f} s after the last"

    def _strike(self, kind: str) -> tuple[str, threading.Thread | None]:
        if kind == "broker":
            self.broker.kill()
            pause = self.choose.uniform(0.0, 3.0)
            return f"broker (for {pause:.1f} s)", _later(pause, self.broker.start)
        if kind == "commit":
            return self._strike_commit(), None
        pid = self.deployment.pick(kind, self.choose)
        if pid is None or not kill(pid):
            return f"{kind} (none was running)", None
        if kind == "loop":
            pause = self.choose.uniform(0.0, 3.0)
            return f"loop (for {pause:.1f} s)", _later(pause, self._start_loop)
        return kind, None

    def _strike_commit(self) -> str:
        """Between the decision about a batch and the commit of its transactions, or just after;
        without transactions, when the first rows of a batch are written."""
        targets = self.deployment.committers()
        awaited = (TOPIC, PARTITION_COUNT, b"decision:")
        if not self.exactly_once:
            awaited = (self.output, PARTITIONS, b"")
        if not await_record(self.bootstrap, *awaited):
            return "commit (none came)"
        # A new one may have been started meanwhile.
        struck = [pid for pid in targets if kill(pid)] or [
            pid for pid in self.deployment.committers() if kill(pid)
        ]
        return "commit" if struck else "commit (it was over)"

    def _start_loop(self) -> None:
        daemon.ensure_running(self.deployment.folder, self.bootstrap, timeout=120.0)

    def final_check(self) -> str | None:
        """Everything once more, by readers that have seen nothing yet."""
        found = []
        for kind in self.counts:
            counts = Counts(kind, self.targets.reader(kind))
            found.append(counts.problem(self.numbers.count))
            counts.close()
        return "; ".join(each for each in found if each is not None) or None

    def close(self) -> None:
        readers = [each.close for each in self.counts.values()]
        ends = (self.numbers.close, *readers, self._stop_spark, self.broker.kill)
        for each in (*ends, self.targets.close):
            try:
                each()
            except Exception as error:
                print(f"while ending: {error}", file=sys.stderr)

    def _stop_spark(self) -> None:
        daemon.stop(self.deployment.folder)
        ConnectServer(self.deployment.folder).stop()


def _later(seconds: float, act: object) -> threading.Thread:
    def run() -> None:
        time.sleep(seconds)
        act()  # type: ignore[operator]

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def plan_of(number: int, choose: random.Random, kinds: tuple[str, ...]) -> list[str]:
    """Every kind in turn, and half of the time another one soon before or after it."""
    chosen = [kinds[number % len(kinds)]]
    others = [each for each in kinds if each not in chosen]
    if others and choose.random() < 0.5:
        chosen.append(choose.choice(others))
    choose.shuffle(chosen)
    return chosen


def can_run(kind: str) -> bool:
    reason = {"s3": minio_missing, "postgresql": postgres_missing}.get(kind, lambda: None)()
    if reason is not None:
        print(f"without {kind}: {reason}", flush=True)
    return reason is None


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m spark.chaos", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=None, help="default: another one every time")
    parser.add_argument("--sinks", default=",".join(TARGETS), help="of topic, delta, ...")
    parser.add_argument("--rate", type=float, default=200.0, help="records per second")
    parser.add_argument("--only", choices=KINDS, action="append", help="kill only these")
    parser.add_argument(
        "--at-least-once",
        action="store_true",
        help="without transactions, with kills of commits, to see that the count notices",
    )
    parser.add_argument("--keep", action="store_true", help="keep the folder with all logs")
    options = parser.parse_args(argv)
    # Ends all of it, also where a shell has let background jobs ignore Ctrl-C.
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.default_int_handler)
    seed = random.randrange(2**32) if options.seed is None else options.seed
    # That a broker cannot be reached while it is dead is no news.
    logging.getLogger("moldau").setLevel(logging.ERROR)
    folder = Path(tempfile.mkdtemp(prefix="moldau-chaos-"))
    print(f"seed {seed}, folder {folder}", flush=True)
    good = 0
    kinds = [each for each in options.sinks.split(",") if can_run(each)]
    chaos = Chaos(folder, seed=seed, rate=options.rate, kinds=kinds)
    begun = time.monotonic()
    try:
        chaos.start(exactly_once=not options.at_least_once)
        print(f"running after {time.monotonic() - begun:.0f} s", flush=True)
        for number in range(options.rounds):
            struck = plan_of(number, chaos.choose, tuple(options.only or KINDS))
            since = time.monotonic()
            try:
                told = chaos.run_round(struck)
            except RuntimeError as error:
                print(f"round {number + 1}: FAILED: killed {error}", flush=True)
                break
            good += 1
            spent = time.monotonic() - since
            print(f"round {number + 1}: killed {told}; {spent:.0f} s", flush=True)
        problem = chaos.final_check()
        each_once = f"each exactly once in {', '.join(kinds)}"
        print(f"{chaos.numbers.count} records in all: {problem or each_once}")
    finally:
        chaos.close()
    is_good = good == options.rounds and problem is None
    print(f"{good} of {options.rounds} rounds good")
    if is_good and not options.keep:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        print(f"logs are in {folder}")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
