"""How long a group is without its work when it moves to a mirror's target, and where it continues.

A producer writes numbered records to a source, a group works there behind it, and a mirror copies
exactly once, with checkpoints every second. Then the group moves:

- `planned`: producer and group stop; the command moves the group; it starts in the target.
- `lost`: the source is killed; the command, which can only use checkpoints, moves the group.
- `lost, synced`: the source is killed; nothing is done, for the mirror has committed the group's
  offsets in the target all along (`sync.group.offsets.enabled`).

The command is `moldau mirror failover`; with MirrorMaker 2, a Java program (compiled before) that
calls `RemoteClusterUtils.translateOffsets`, and a commit of what it returns. The time runs from the
end of the group's work in the source to its first record in the target that it has not had; records
it reads again before that, and records it leaves out, are counted.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench.mirror import (
    JARS,
    MIRRORS,
    PARTITIONS,
    SERVER,
    copied,
    mirror,
    remote_topic,
    sending,
)
from moldau.client import (
    Admin,
    Consumer,
    NewTopic,
    OffsetAndMetadata,
    Producer,
    TopicPartition,
)
from moldau.testing import Broker

__all__ = ["Failover", "failovers"]

WAYS = ("planned", "lost", "lost, synced")
GROUP = "workers"
SENT_PER_S = 500.0
WORKED_PER_S = 375.0
BEHIND_MIN = 75
"""Copied records of each partition that the group has not had before it polls for up to 50: in the
target there is always something new, also if the mirror or the producer is slow."""
WORK_S = 5.0
WAIT_S_MAX = 120.0
PROGRAM = Path(__file__).parents[1] / "tests" / "java" / "MirrorRecords.java"
QUICK = {
    "emit_checkpoints_interval_seconds": "1",
    "sync_group_offsets_interval_seconds": "1",
    "refresh_groups_interval_seconds": "1",
    "refresh_topics_interval_seconds": "1",
    "offset.flush.interval.ms": "1000",
    "groups": GROUP,
}


@dataclass(frozen=True)
class Failover:
    who: str
    way: str
    seconds: list[float]
    again: list[int]
    """Records that the group read a second time."""
    left_out: list[int]
    """Copied records that the group has not had and would never have."""


@dataclass
class _Work:
    """The highest number of each partition that the group has had, and that was copied."""

    done: dict[int, int] = field(default_factory=dict)
    copied: dict[int, int] = field(default_factory=dict)
    count: int = 0

    def note(self, partition: int, number: int) -> None:
        self.done[partition] = max(number, self.done.get(partition, -1))
        self.count += 1

    @property
    def behind(self) -> int:
        """How many copied records the group has not had, in the partition with the fewest."""
        places = range(PARTITIONS)
        ahead = (self.copied.get(each, -1) - self.done.get(each, -1) for each in places)
        return min(ahead) // PARTITIONS


def _settings(bootstrap: str) -> dict[str, str]:
    return {
        "bootstrap.servers": bootstrap,
        "group.id": GROUP,
        "enable.auto.commit": "false",
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "max.poll.records": "50",
        "session.timeout.ms": "45000",
        "max.poll.interval.ms": "600000",
    }


def _has_checkpoints(target: str, alias: str) -> bool:
    topic = f"{alias}.checkpoints.internal"
    with Admin({"bootstrap.servers": target}) as admin:
        if topic not in admin.list_topics(list_internal=True):
            return False
    with Consumer({"bootstrap.servers": target}) as consumer:
        place = TopicPartition(topic, 0)
        return consumer.end_offsets([place])[place] >= PARTITIONS


def _await_mirror(source: str, target: str, alias: str) -> None:
    """Until the mirror copies: one that starts slowly would be behind the group."""
    with Producer({"bootstrap.servers": source}) as producer:
        producer.send(f"load-{alias}-first", b"0").result(30)
    limit = time.monotonic() + WAIT_S_MAX
    with Admin({"bootstrap.servers": target}) as admin:
        while copied(admin, remote_topic(alias, "-first")) == 0:
            if time.monotonic() > limit:
                raise TimeoutError(f"{alias}: nothing was copied within {WAIT_S_MAX} s")
            time.sleep(0.2)


def _work(source: str, target: str, alias: str) -> _Work:
    """Work in the source until the group has been followed for a while."""
    work = _Work()
    limit = time.monotonic() + WAIT_S_MAX
    reading = {"bootstrap.servers": target, "isolation.level": "read_committed",
               "auto.offset.reset": "earliest"}  # fmt: skip
    with Consumer(_settings(source)) as consumer, Consumer(reading) as copies:
        consumer.subscribe([f"load-{alias}"])
        copies.assign([TopicPartition(remote_topic(alias), each) for each in range(PARTITIONS)])
        began, until, looked = time.monotonic(), None, 0.0
        while until is None or time.monotonic() < until:
            if time.monotonic() > limit:
                raise TimeoutError(f"{alias}: no checkpoints within {WAIT_S_MAX} s")
            for record in copies.poll(0):
                work.copied[record.partition] = int(record.value)
            is_due = work.count < (time.monotonic() - began) * WORKED_PER_S
            if is_due and work.behind >= BEHIND_MIN:
                for record in consumer.poll(0.05):
                    work.note(record.partition, int(record.value))
                consumer.commit_sync()
            else:
                time.sleep(0.01)
            if until is None and time.monotonic() - looked > 1.0:
                looked = time.monotonic()
                if _has_checkpoints(target, alias):
                    until = time.monotonic() + WORK_S
    return work


def _move(who: str, folder: Path, alias: str, target: str, *, is_lost: bool) -> None:
    """By the command."""
    if who == "Moldau":
        words = ["--from", alias, "--to", "T", *(["--without-source"] if is_lost else [])]
        command = [sys.executable, "-m", "moldau.cli", "mirror", "failover",
                   str(folder / f"{alias}.properties"), *words]  # fmt: skip
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=WAIT_S_MAX)
        return
    command = ["java", "-cp", f"{folder}:{JARS}/*", "MirrorRecords", "translate",
               target, alias, GROUP]  # fmt: skip
    ended = subprocess.run(command, check=True, capture_output=True, text=True, timeout=WAIT_S_MAX)
    offsets = {}
    for line in ended.stdout.splitlines():
        place, offset = line.split()[:2]
        topic, _, partition = place.rpartition("-")
        offsets[TopicPartition(topic, int(partition))] = OffsetAndMetadata(int(offset))
    with Admin({"bootstrap.servers": target}) as admin:
        admin.alter_consumer_group_offsets(GROUP, offsets)


def _continue(target: str, alias: str, work: _Work) -> tuple[float, int, int]:
    """When the group had its first new record, what it read again before, and what it left out."""
    first: dict[int, int] = {}
    again, at = 0, 0.0
    limit = time.monotonic() + WAIT_S_MAX
    with Consumer(_settings(target)) as consumer:
        consumer.subscribe([remote_topic(alias)])
        while len(first) < PARTITIONS or not at:
            if time.monotonic() > limit:
                raise TimeoutError(f"{alias}: the group found nothing new in the target")
            for record in consumer.poll(0.05):
                number = int(record.value)
                first.setdefault(record.partition, number)
                if number <= work.done[record.partition]:
                    again += 1
                elif not at:
                    at = time.monotonic()
    left_out = sum(
        max(0, (number - work.done[partition]) // PARTITIONS - 1)
        for partition, number in first.items()
    )
    return at, again, left_out


def _trial(who: str, way: str, number: int, folder: Path, target: str) -> tuple[float, int, int]:
    alias = f"{who[:1]}{WAYS.index(way)}{number}"
    is_lost = way != "planned"
    synced = {"sync_group_offsets_enabled": str(way == WAYS[2]).lower()}
    with Broker(config=SERVER) as broker:
        source = broker.bootstrap_servers
        with Admin({"bootstrap.servers": source}) as admin:
            topics = (f"load-{alias}", f"load-{alias}-first")
            admin.create_topics([NewTopic(each, PARTITIONS, 1) for each in topics])
        with ExitStack() as stack:
            settings = {**QUICK, **synced}
            process = stack.enter_context(
                mirror(who, folder, source, target, alias, once=True, **settings)
            )
            _await_mirror(source, target, alias)
            end = stack.enter_context(sending(source, f"load-{alias}", SENT_PER_S, numbered=True))
            work = _work(source, target, alias)
            if is_lost:
                began = time.monotonic()
                broker.nodes[1].kill()
            else:
                end()
                began = time.monotonic()
            if way != WAYS[2]:
                _move(who, folder, alias, target, is_lost=is_lost)
            at, again, left_out = _continue(target, alias, work)
            if is_lost:
                # It would wait for its source before it ends.
                process.kill()
            with Admin({"bootstrap.servers": target}) as admin:
                admin.delete_consumer_groups([GROUP], check=False)
    return at - began, again, left_out


def failovers(folder: Path, repeats: int) -> Iterator[Failover]:
    has_java = any(JARS.glob("connect-mirror-4*.jar")) and shutil.which("javac") is not None
    if has_java:
        classes = ["javac", "-d", str(folder), "-cp", f"{JARS}/*", str(PROGRAM)]
        subprocess.run(classes, check=True)
    with Broker(config=SERVER) as target:
        for way in WAYS:
            for who in MIRRORS if has_java else MIRRORS[:1]:
                tried = [
                    _trial(who, way, number, folder, target.bootstrap_servers)
                    for number in range(repeats)
                ]
                seconds, again, left_out = (list(each) for each in zip(*tried, strict=True))
                found = Failover(who, way, seconds, again, left_out)
                print(
                    f"{who:9} {way:13} {statistics.median(seconds):6.2f} s "
                    f"({min(seconds):.2f} to {max(seconds):.2f}), "
                    f"{statistics.median(again):.0f} records again, {max(left_out)} left out",
                    flush=True,
                )
                yield found
