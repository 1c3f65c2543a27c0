"""A mirror beside MirrorMaker 2: `python -m bench.mirror [--records 1000000] [--size 100]`.

Two clusters of one broker; the same filled topic is copied by Moldau's mirror and, where its jars
are (`make kafka`), by MirrorMaker 2, one after the other, each in a process of its own: at least
once and exactly once. Printed:

- `rates`: MB and records a second from the first copied record to the last, and records per second
  of the mirror's CPU in that time (what counts on a machine with neighbours; the start of the JVM
  is not in it, its warm-up is).
- `lag`: both mirrors, warm from that, copy half of what the slower of them could; the time from
  the append in the source (the broker's time) until a consumer of committed records has the copy.
- `failover`: see `bench/mirror_failover.py`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from multiprocessing.synchronize import Event
from pathlib import Path

import psutil

from moldau.client import Admin, Consumer, NewTopic, OffsetSpec, Producer, TopicPartition
from moldau.testing import Broker

__all__ = [
    "JARS",
    "MIRRORS",
    "PARTITIONS",
    "SERVER",
    "copied",
    "mirror",
    "remote_topic",
    "send_steadily",
    "sending",
]

JARS = Path(__file__).parents[1] / ".cache" / "kafka"
RESULTS = Path(__file__).parent / "results"
MIRRORS = ("Moldau", "Java MM2")
HOWS = ("at least once", "exactly once")
PARTS = ("rates", "lag", "failover")
PARTITIONS = 4
WARM_S = 5.0
LAG_S = 20.0
WAIT_S_MAX = 300.0
# The default delay of 3 s before a new group's first assignment says nothing about a mirror.
SERVER = {"group.initial.rebalance.delay.ms": "0"}
ONE = {
    f"{each}.replication.factor": "1"
    for each in ("offset-syncs.topic", "checkpoints.topic", "heartbeats.topic", "offset.storage",
                 "status.storage", "config.storage")
} | {"replication.factor": "1"}  # fmt: skip


@dataclass(frozen=True)
class Run:
    who: str
    how: str
    records_per_s: float
    mb_per_s: float
    records_per_cpu_s: float
    load_per_s: float = 0.0
    """Records a second while lag was measured."""
    lag_ms_p50: float = 0.0
    lag_ms_p99: float = 0.0
    lag_cpu: float = 0.0
    """Cores that the mirror used meanwhile."""


@contextmanager
def mirror(
    who: str, folder: Path, source: str, target: str, alias: str, *, once: bool, **more: str
) -> Iterator[psutil.Process]:
    """The file of the flow is `ALIAS.properties`; underscores in names of settings are dots."""
    settings = {
        "clusters": f"{alias},T",
        f"{alias}.bootstrap.servers": source,
        "T.bootstrap.servers": target,
        f"{alias}->T.enabled": "true",
        "topics": f"load-{alias}.*",
        "emit.heartbeats.enabled": "false",
        "heartbeats.replication.enabled": "false",
        "refresh.topics.interval.seconds": "5",
        "tasks.max": "1",
        **ONE,
        **{key.replace("_", "."): value for key, value in more.items()},
    }
    if once:
        settings |= {
            "T.exactly.once.source.support": "enabled",
            f"{alias}.consumer.isolation.level": "read_committed",
        }
    file = folder / f"{alias}.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    if who == "Moldau":
        command = [sys.executable, "-m", "moldau.cli", "mirror", "start", str(file)]
    else:
        command = ["java", "-Xmx1g", "-cp", f"{JARS}/*",
                   "org.apache.kafka.connect.mirror.MirrorMaker", str(file)]  # fmt: skip
    with (folder / f"{alias}.log").open("wb") as log:
        process = psutil.Popen(command, stdout=log, stderr=log)
    try:
        yield process
    finally:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except psutil.TimeoutExpired:
            process.kill()


def remote_topic(alias: str, part: str = "") -> str:
    return f"{alias}.load-{alias}{part}"


def fill(source: str, topic: str, records: int, size: int, compression: str) -> None:
    with Admin({"bootstrap.servers": source}) as admin:
        admin.create_topics([NewTopic(topic, PARTITIONS, 1)])
    settings = {"bootstrap.servers": source, "compression.type": compression}
    with Producer(settings) as producer:
        for _ in range(records):
            producer.send(topic, os.urandom(size))


def copied(admin: Admin, topic: str) -> int:
    """How many offsets the copy has."""
    if topic not in admin.list_topics():
        return 0
    places = [TopicPartition(topic, each) for each in range(PARTITIONS)]
    found = admin.list_offsets(dict.fromkeys(places, OffsetSpec.latest()), check=False)
    return sum(each.offset for each in found.values_by_key.values())


def cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def rate(
    who: str, how: str, admin: Admin, process: psutil.Process, alias: str, given: argparse.Namespace
) -> Run:
    """From the first copied record to the last."""
    topic, records = remote_topic(alias), given.records
    limit = time.monotonic() + WAIT_S_MAX
    while (first := copied(admin, topic)) == 0 and time.monotonic() < limit:
        time.sleep(0.05)
    began, cpu = time.monotonic(), cpu_s(process)
    while (last := copied(admin, topic)) < records and time.monotonic() < limit:
        time.sleep(0.05)
    took, cpu = time.monotonic() - began, cpu_s(process) - cpu
    count = min(last, records) - first
    per_s = count / took
    return Run(who, how, per_s, per_s * given.size / 1e6, count / max(cpu, 0.01))


# Steady load.


def send_steadily(
    bootstrap: str, topic: str, per_s: float, size: int, ended: Event, numbered: bool = False
) -> None:
    """Until `ended`; `numbered` records have their number, and partitions take turns."""
    padding = os.urandom(size)
    with Producer({"bootstrap.servers": bootstrap, "linger.ms": "5"}) as producer:
        began, sent = time.monotonic(), 0
        while not ended.is_set():
            while sent < (time.monotonic() - began) * per_s:
                if numbered:
                    producer.send(topic, b"%d" % sent, partition=sent % PARTITIONS)
                else:
                    producer.send(topic, padding)
                sent += 1
            time.sleep(0.002)


@contextmanager
def sending(
    bootstrap: str, topic: str, per_s: float, size: int = 100, *, numbered: bool = False
) -> Iterator[Callable[[], None]]:
    """A producer in a process of its own; what is yielded ends it cleanly."""
    context = multiprocessing.get_context("spawn")
    ended = context.Event()
    process = context.Process(
        target=send_steadily, args=(bootstrap, topic, per_s, size, ended, numbered), daemon=True
    )
    process.start()

    def end() -> None:
        ended.set()
        process.join(30)

    try:
        yield end
    finally:
        ended.set()
        process.join(5)
        if process.is_alive():
            # Its broker may be gone, and it waits for that.
            process.kill()
            process.join()


def lag(
    run: Run, source: str, target: str, process: psutil.Process, alias: str, size: int, load: float
) -> Run:
    """With the ages of records on arrival, at `load` records a second."""
    part = "-steady"
    with Admin({"bootstrap.servers": source}) as admin:
        stamped = {"message.timestamp.type": "LogAppendTime"}
        admin.create_topics([NewTopic(f"load-{alias}{part}", PARTITIONS, 1, configs=stamped)])
    topic = remote_topic(alias, part)
    limit = time.monotonic() + WAIT_S_MAX
    with Admin({"bootstrap.servers": target}) as admin:
        while topic not in admin.list_topics() and time.monotonic() < limit:
            time.sleep(0.2)
    ages: list[float] = []
    settings = {"bootstrap.servers": target, "isolation.level": "read_committed"}
    with (
        Consumer(settings) as consumer,
        sending(source, f"load-{alias}{part}", load, size),
    ):
        consumer.assign([TopicPartition(topic, each) for each in range(PARTITIONS)])
        while not consumer.poll(0.2) and time.monotonic() < limit:
            pass
        warm = time.monotonic() + WARM_S
        while time.monotonic() < warm:
            consumer.poll(0.2)
        until, cpu, began = time.monotonic() + LAG_S, cpu_s(process), time.monotonic()
        while time.monotonic() < until:
            found = list(consumer.poll(0.2))
            now_ms = time.time() * 1000
            ages += [now_ms - each.timestamp for each in found[::20]]
        used = (cpu_s(process) - cpu) / (time.monotonic() - began)
    ages.sort()
    middle, high = (ages[int(len(ages) * part)] if ages else -1.0 for part in (0.5, 0.99))
    return replace(run, load_per_s=load, lag_ms_p50=middle, lag_ms_p99=high, lag_cpu=used)


def compared(
    how: str, folder: Path, source: str, target: str, given: argparse.Namespace
) -> list[Run]:
    """Both mirrors in one way; the second is measured while the first has nothing to do."""
    whos = MIRRORS if any(JARS.glob("connect-mirror-4*.jar")) else MIRRORS[:1]
    aliases = {who: f"{who[:1]}{how[:2]}".strip() for who in whos}
    with ExitStack() as stack:
        admin = stack.enter_context(Admin({"bootstrap.servers": target}))
        processes, runs = {}, []
        for who, alias in aliases.items():
            fill(source, f"load-{alias}", given.records, given.size, given.compression)
            processes[who] = stack.enter_context(
                mirror(who, folder, source, target, alias, once=how == HOWS[1])
            )
            runs.append(rate(who, how, admin, processes[who], alias, given))
            show(runs[-1])
        if "lag" in given.parts:
            load = min(each.records_per_s for each in runs) / 2
            for number, run in enumerate(runs):
                process, alias = processes[run.who], aliases[run.who]
                runs[number] = lag(run, source, target, process, alias, given.size, load)
                show(runs[number])
        return runs


def show(run: Run) -> None:
    words = f"{run.who:9} {run.how:14}"
    if run.load_per_s:
        print(
            f"{words} at {run.load_per_s:8,.0f} records/s: lag p50 {run.lag_ms_p50:6.0f} ms, "
            f"p99 {run.lag_ms_p99:6.0f} ms, {run.lag_cpu:5.2f} cores",
            flush=True,
        )
    else:
        print(
            f"{words} {run.records_per_s:10,.0f} records/s {run.mb_per_s:7.1f} MB/s "
            f"{run.records_per_cpu_s:12,.0f} records/CPU s",
            flush=True,
        )


def main() -> None:
    from bench.mirror_failover import failovers

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--compression", default="none")
    parser.add_argument("--repeats", type=int, default=2, help="fail-overs of each kind")
    parser.add_argument("--parts", default=",".join(PARTS), help="comma-separated (default: all)")
    given = parser.parse_args()
    found: dict[str, object] = {"load_average": os.getloadavg(), "records": given.records}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.parts != "failover":
            runs: list[Run] = []
            for how in HOWS:
                with Broker(config=SERVER) as source, Broker(config=SERVER) as target:
                    addresses = source.bootstrap_servers, target.bootstrap_servers
                    runs += compared(how, folder, *addresses, given)
            found["runs"] = [asdict(each) for each in runs]
        if "failover" in given.parts:
            found["failovers"] = [asdict(each) for each in failovers(folder, given.repeats)]
    stamp = time.strftime("%Y-%m-%dT%H%M%SZ", time.gmtime())
    file = RESULTS / f"{stamp}-mirror.json"
    file.write_text(json.dumps(found, indent=1) + "\n")
    print(file)


if __name__ == "__main__":
    main()
