"""This checkout beside another one: `python -m bench.against PYTHON [--rounds N]`.

PYTHON is the interpreter of the other checkout's environment. Both brokers run at once and take
turns with the same work, so that what else the machine does meets both alike; a figure is the
median over the rounds, the ratio that of each round's pair. The broker's CPU says more than seconds
where neighbours share the cores.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

from bench import groups, servers, sharing, transactions, workloads
from bench.servers import Server
from bench.suites.broker import SHAPES

#: What is compared: a worse ratio than this is to be explained.
WORSE = 1.05


class Work(NamedTuple):
    what: str
    #: Does it once; how many units were done, for the CPU of each.
    run: Callable[[Server], int]
    unit: str


def _produce(size: int, batch: int, total: int) -> Callable[[Server], int]:
    def run(server: Server) -> int:
        done = workloads.produce(
            server, f"p-{size}", message_size=size, batch_size=batch, total_bytes=total
        )
        return done.messages

    return run


def _round_trips(server: Server) -> int:
    workloads.round_trips(server, workloads.produce_frame("latency"), count=2000)
    return 2000


def _fetch(server: Server) -> int:
    return workloads.raw_fetch(server, "fetch", total_bytes=300_000_000).bytes // 1_000_000


def _commits(server: Server) -> int:
    groups.offset_commits_per_second(server, "commits", groups=1000, count=3000)
    return 3000


def _transactions(records: int, rounds: int) -> Callable[[Server], int]:
    def run(server: Server) -> int:
        transactions.transaction_ms(server, "records", records=records, rounds=rounds)
        return rounds + 1

    return run


def _share(server: Server) -> int:
    topic = f"share-{time.monotonic_ns()}"
    server.create_topic(topic)
    sharing.fill(server, topic, count=10_000, batch_records=100)
    sharing.acknowledgements_per_second(server, topic, count=10_000, batch_records=100)
    return 10_000


WORKS = (
    *(
        Work(f"produce {shape}", _produce(size, batch, 30_000_000 * size // 300), "record")
        for shape, size, batch in SHAPES
    ),
    Work("synchronous produce of 100 B", _round_trips, "request"),
    Work("raw fetch, 1 MB answers", _fetch, "MB"),
    Work("offset commits, 1,000 groups", _commits, "commit"),
    Work("transactions of 1 record", _transactions(1, 100), "transaction"),
    Work("transactions of 100 records", _transactions(100, 60), "transaction"),
    Work("share acknowledgements, 100 at a time", _share, "record"),
)


class Cost(NamedTuple):
    seconds: float
    cpu_us: float


def _measure(server: Server, work: Work) -> Cost:
    cpu, started = server.main_thread_seconds(), time.perf_counter()
    units = work.run(server)
    seconds = time.perf_counter() - started
    return Cost(seconds, 1e6 * (server.main_thread_seconds() - cpu) / units)


def _prepare(server: Server) -> None:
    for topic in ("p-100", "p-1000", "latency", "fetch", "commits", "records"):
        server.create_topic(topic)
    workloads.produce(server, "fetch", message_size=1000, batch_size=131_072, total_bytes=8_000_000)


def compare(python: str, rounds: int, only: str) -> None:
    setting = "group.initial.rebalance.delay.ms=0"
    with (
        servers.moldau(setting, name="here") as here,
        servers.moldau(setting, python=python, name="there") as there,
    ):
        for server in (here, there):
            _prepare(server)
        for work in WORKS:
            if only not in work.what:
                continue
            pairs = []
            for number in range(rounds + 1):
                order = (here, there) if number % 2 else (there, here)
                found = {server.name: _measure(server, work) for server in order}
                # The first round warms both up.
                if number:
                    pairs.append((found["here"], found["there"]))
            _report(work, pairs)


def _report(work: Work, pairs: list[tuple[Cost, Cost]]) -> None:
    cpu = statistics.median(a.cpu_us / b.cpu_us for a, b in pairs)
    wall = statistics.median(a.seconds / b.seconds for a, b in pairs)
    ours = statistics.median(a.cpu_us for a, _ in pairs)
    theirs = statistics.median(b.cpu_us for _, b in pairs)
    mark = "  worse" if cpu > WORSE else ""
    print(
        f"{work.what:40} CPU per {work.unit} {ours:9.2f} us here, {theirs:9.2f} there:"
        f" {cpu:.2f}; seconds {wall:.2f}{mark}",
        flush=True,
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.against", description=__doc__)
    parser.add_argument("python", help="the interpreter of the other checkout")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="works with this in their names")
    options = parser.parse_args(arguments)
    compare(options.python, options.rounds, options.only)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
