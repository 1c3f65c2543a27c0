"""Kill a broker with SIGKILL, again and again, under a producer, a reader and a consumer group.

    python -m kills --count 1000 --seed 7

An idempotent producer writes numbered records, a reader reads them all, and two members of a group
read and commit. The broker is killed after a number of acknowledgements that the seed decides, and
started again. What is acknowledged must be read, once and in order, and what is committed must stay
so; the first broken promise ends the run with exit code 1 and keeps the data directory.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from kills.clients import (
    PARTITIONS,
    TOPIC,
    WAIT_SECONDS_MAX,
    Broken,
    Client,
    Group,
    Member,
    Reader,
    Writer,
)
from support.processes import BrokerProcess, free_port, moldau

# Small segments and frequent flushes, so that kills also meet rolls, index writes and checkpoints.
TOPIC_CONFIG = {"segment.bytes": "1048576", "flush.messages": "500"}
OVERRIDES = ["log.flush.offset.checkpoint.interval.ms=200", "group.initial.rebalance.delay.ms=0"]
ACKNOWLEDGEMENTS_MAX = 1_500
#: After so many kills everybody has to have caught up with the producer.
CATCH_UP_EVERY = 10


class Run:
    def __init__(self, broker: BrokerProcess, seed: int) -> None:
        self._broker = broker
        self._chance = random.Random(seed)
        self._writer = Writer(broker.bootstrap)
        self._reader = Reader(broker.bootstrap)
        self._group = Group()
        self._members = [Member(broker.bootstrap, self._group) for _ in range(2)]
        self.starts_s: list[float] = []
        self.silences_s: list[float] = []

    @property
    def _clients(self) -> list[Client]:
        return [self._writer, self._reader, *self._members]

    def start(self) -> None:
        for client in self._clients:
            client.start()

    def kill(self) -> None:
        """At a moment that differs from kill to kill, and after everybody was seen to go on."""
        target = self._writer.count + self._chance.randrange(1, ACKNOWLEDGEMENTS_MAX)
        self._writer.wait(lambda: self._writer.count >= target, "further acknowledgements")
        self._writer.longest_silence_s()
        self._broker.kill()
        started = time.monotonic()
        self._broker.start()
        self.starts_s.append(time.monotonic() - started)
        resumed = self._writer.count + 1
        self._writer.wait(lambda: self._writer.count >= resumed, "the producer goes on")
        self.silences_s.append(self._writer.longest_silence_s())
        for client in self._clients:
            client.check()

    def catch_up(self) -> None:
        acknowledged = list(self._writer.acknowledged)
        self._reader.wait(
            lambda: _reached(self._reader.next, acknowledged), "the reader has read all"
        )
        for member in self._members:
            member.wait(
                lambda: _reached(self._group.committed.offsets(), acknowledged),
                "the group has committed all",
            )

    def finish(self) -> int:
        """How many records were acknowledged, read and committed."""
        self._writer.stop()
        self.catch_up()
        for client in (self._reader, *self._members):
            client.stop()
        if self._reader.next != self._writer.sent:
            raise Broken(f"{self._writer.sent} were sent, {self._reader.next} were read")
        return self._writer.count


def _reached(offsets: Sequence[int], wanted: Sequence[int]) -> bool:
    return all(offset >= each for offset, each in zip(offsets, wanted, strict=True))


def _run(folder: Path, *, count: int, seed: int, console: Console) -> None:
    broker = moldau(folder, OVERRIDES, free_port()).start()
    columns = (
        TextColumn("kills"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    try:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        topic = NewTopic(TOPIC, PARTITIONS, 1, config=TOPIC_CONFIG)
        admin.create_topics([topic])[TOPIC].result(WAIT_SECONDS_MAX)
        run = Run(broker, seed)
        run.start()
        with Progress(*columns, console=console) as progress:
            task = progress.add_task("kills", total=count, note="")
            for number in range(1, count + 1):
                run.kill()
                if number % CATCH_UP_EVERY == 0:
                    run.catch_up()
                note = f"back after {run.starts_s[-1]:.1f} s"
                progress.update(task, advance=1, note=note)
        records = run.finish()
    finally:
        broker.kill()
    console.print(
        f"{count} kills, seed {seed}: {records:,} records acknowledged, read once and in order, "
        "and committed by the group"
    )
    for what, times in (("broker back", run.starts_s), ("producer silent", run.silences_s)):
        console.print(f"{what}: median {statistics.median(times):.2f} s, worst {max(times):.2f} s")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m kills", description=__doc__)
    parser.add_argument("--count", type=int, default=1_000, help="how many kills (%(default)s)")
    parser.add_argument("--seed", type=int, help="which moments; another one each time if not set")
    options = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    console = Console()
    console.print(f"seed {seed}")
    folder = Path(tempfile.mkdtemp(prefix="moldau-kills-"))
    try:
        _run(folder, count=options.count, seed=seed, console=console)
    except (Broken, RuntimeError) as error:
        console.print(f"[red]broken with seed {seed}:[/red] {error}\nkept: {folder}")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
