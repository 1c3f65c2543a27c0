"""A mirror beside MirrorMaker 2: `python -m bench.mirror [--records 1000000] [--size 100]`.

Two clusters of one broker; the same filled topic is copied by Moldau's mirror and, where its jars
are (`make kafka`), by MirrorMaker 2, one after the other, each in a process of its own: at least
once and exactly once. Printed: MB and records a second from the first copied record to the last,
records per second of the mirror's CPU in that time (what counts on a machine with neighbours; the
start of the JVM is not in it, its warm-up is), and the age of records when they arrive while a
producer sends 8,000 a second, about half of what MirrorMaker 2 can do here.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from moldau.client import Admin, Consumer, NewTopic, OffsetSpec, Producer, TopicPartition
from moldau.testing import Broker

JARS = Path(__file__).parents[1] / ".cache" / "kafka"
RESULTS = Path(__file__).parent / "results"
PARTITIONS = 4
# About half of what MirrorMaker 2 copies here.
LOAD = 8_000
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
    lag_ms: float = 0.0
    """Median age on arrival under a steady load."""


@contextmanager
def mirror(
    who: str, folder: Path, source: str, target: str, alias: str, *, once: bool
) -> Iterator[psutil.Process]:
    settings = {
        "clusters": f"{alias},T",
        f"{alias}.bootstrap.servers": source,
        "T.bootstrap.servers": target,
        f"{alias}->T.enabled": "true",
        "topics": f"load-{alias}",
        "emit.heartbeats.enabled": "false",
        "heartbeats.replication.enabled": "false",
        "refresh.topics.interval.seconds": "5",
        "tasks.max": "1",
        **ONE,
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
    process = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except psutil.TimeoutExpired:
            process.kill()


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


def measure(
    who: str,
    how: str,
    folder: Path,
    source: str,
    target: str,
    records: int,
    size: int,
    compression: str,
) -> Run:
    alias = f"{who[:1]}{how[:2]}".replace(" ", "")
    topic = f"{alias}.load-{alias}"
    fill(source, f"load-{alias}", records, size, compression)
    with (
        Admin({"bootstrap.servers": target}) as admin,
        mirror(who, folder, source, target, alias, once=how == "exactly once") as process,
    ):
        limit = time.monotonic() + 600
        while (first := copied(admin, topic)) == 0 and time.monotonic() < limit:
            time.sleep(0.05)
        began, cpu = time.monotonic(), cpu_s(process)
        while (last := copied(admin, topic)) < records and time.monotonic() < limit:
            time.sleep(0.05)
        took, cpu = time.monotonic() - began, cpu_s(process) - cpu
        count = min(last, records) - first
        rate = count / took
        time.sleep(3)
        lag_ms = steady(source, target, topic, size)
        return Run(who, how, rate, rate * size / 1e6, count / max(cpu, 0.01), lag_ms)


def steady(source: str, target: str, topic: str, size: int) -> float:
    """The median age of records on arrival, under a load that both mirrors can follow."""
    ended = threading.Event()

    def send() -> None:
        value = os.urandom(size)
        with Producer({"bootstrap.servers": source, "linger.ms": "5"}) as producer:
            began, sent = time.monotonic(), 0
            while not ended.is_set():
                while sent < (time.monotonic() - began) * LOAD:
                    producer.send(topic.split(".")[1], value)
                    sent += 1
                time.sleep(0.005)

    ages: list[float] = []
    settings = {"bootstrap.servers": target, "isolation.level": "read_committed"}
    with Consumer(settings) as consumer:
        places = [TopicPartition(topic, each) for each in range(PARTITIONS)]
        consumer.assign(places)
        consumer.seek_to_end(places)
        for each in places:
            consumer.position(each)
        sender = threading.Thread(target=send)
        sender.start()
        until = time.monotonic() + 8
        while time.monotonic() < until:
            found = list(consumer.poll(0.2))
            now_ms = time.time() * 1000
            ages += [now_ms - each.timestamp for each in found[::50]]
        ended.set()
        sender.join()
    return sorted(ages)[len(ages) // 2] if ages else -1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--compression", default="none")
    given = parser.parse_args()
    runs: list[Run] = []
    with tempfile.TemporaryDirectory() as name, Broker() as source, Broker() as target:
        folder = Path(name)
        has_java = any(JARS.glob("connect-mirror-4*.jar"))
        for how in ("at least once", "exactly once"):
            for who in ("Moldau", *(("Java MM2",) if has_java else ())):
                runs.append(
                    measure(
                        who,
                        how,
                        folder,
                        source.bootstrap_servers,
                        target.bootstrap_servers,
                        given.records,
                        given.size,
                        given.compression,
                    )
                )
                run = runs[-1]
                print(
                    f"{run.who:9} {run.how:14} {run.records_per_s:10,.0f} records/s "
                    f"{run.mb_per_s:7.1f} MB/s {run.records_per_cpu_s:12,.0f} records/CPU s "
                    f"lag {run.lag_ms:7.0f} ms",
                    flush=True,
                )
    stamp = time.strftime("%Y-%m-%dT%H%M%SZ", time.gmtime())
    file = RESULTS / f"{stamp}-mirror.json"
    file.write_text(json.dumps([asdict(each) for each in runs], indent=1) + "\n")


if __name__ == "__main__":
    main()
