"""Run the benchmarks: `python -m bench [suite ...] [--quick] [--without-kafka]`.

Every suite measures Moldau, Apache Kafka (where its jars are at hand, see `make kafka`) and the
limit of this machine with the same client in the same run; ratios are what counts, as absolute
figures move with the neighbours. Results go to the terminal and to bench/results/*.json.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from bench import acls as acl_work
from bench import clients as client_work
from bench import cluster as cluster_work
from bench import failover as failover_work
from bench import groups as group_work
from bench import growth as growth_work
from bench import nodes, servers, sharing, workloads
from bench import permissions as permission_work
from bench import tls as tls_work
from bench import transactions as transaction_work
from bench.servers import Server

LATENCY_ROUNDS = 7
RESULTS = Path(__file__).parent / "results"
SHAPES = (
    ("1 KB, 128 KB batches", 1000, 131_072),
    ("1 KB, 16 KB batches", 1000, 16_384),
    ("100 B, 128 KB batches", 100, 131_072),
    ("100 B, 16 KB batches", 100, 16_384),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; `limit` is what the machine could do, `aim` what we want."""

    what: str
    unit: str
    moldau: float
    kafka: float | None = None
    limit: float | None = None
    aim: str = ""


@dataclass(slots=True)
class Run:
    """Scale and choice of servers for one run."""

    scale: float
    with_kafka: bool
    rows: list[Row] = field(default_factory=list)

    @property
    def names(self) -> tuple[str, ...]:
        return ("moldau", "kafka") if self.with_kafka else ("moldau",)

    def brokers(self, *overrides: str) -> Iterator[Callable[[], AbstractContextManager[Server]]]:
        yield partial(servers.moldau, *overrides)
        if self.with_kafka:
            yield partial(servers.apache_kafka, *overrides)

    def bytes(self, gigabytes: float) -> int:
        return int(gigabytes * self.scale * 1e9)


def throughput(run: Run) -> None:
    """Produce and consume with confluent-kafka, and what the broker's CPU pays for it."""
    produced: dict[tuple[str, str], workloads.Throughput] = {}
    consumed: dict[tuple[str, str], workloads.Throughput] = {}
    for broker in run.brokers():
        with broker() as server:
            for shape, size, batch in SHAPES:
                topic = f"bench-{size}-{batch}"
                server.create_topic(topic)
                workloads.produce(
                    server, topic, message_size=size, batch_size=batch, total_bytes=run.bytes(0.02)
                )
                result = produced[server.name, shape] = workloads.produce(
                    server,
                    topic,
                    message_size=size,
                    batch_size=batch,
                    total_bytes=run.bytes(1.0 if size == 1000 else 0.3),
                )
                consumed[server.name, shape] = workloads.consume(
                    server, topic, message_size=size, count=result.messages
                )
    with servers.produce_sink() as sink:
        for shape, size, batch in SHAPES:
            produced["sink", shape] = workloads.produce(
                sink,
                "bench",
                message_size=size,
                batch_size=batch,
                total_bytes=run.bytes(1.0 if size == 1000 else 0.3),
            )
    for shape, size, batch in SHAPES:
        kafka = produced.get(("kafka", shape))
        aim = {(1000, 131_072): ">= 0.70 of limit", (100, 131_072): ">= 0.95 of limit"}
        run.rows.append(
            Row(
                f"produce {shape}",
                "MB/s",
                produced["moldau", shape].mb_per_second,
                kafka and kafka.mb_per_second,
                produced["sink", shape].mb_per_second,
                aim.get((size, batch), ""),
            )
        )
    for shape, _, _ in SHAPES:
        kafka = consumed.get(("kafka", shape))
        run.rows.append(
            Row(
                f"consume {shape}",
                "MB/s",
                consumed["moldau", shape].mb_per_second,
                kafka and kafka.mb_per_second,
            )
        )
    big = SHAPES[0][0]
    for what, figures, aim_text in (("produce", produced, "<= 0.80"), ("consume", consumed, "")):
        kafka = figures.get(("kafka", big))
        run.rows.append(
            Row(
                f"broker CPU, {what} {big}",
                "s/GB",
                figures["moldau", big].cpu_seconds_per_gb,
                kafka and kafka.cpu_seconds_per_gb,
                None,
                aim_text,
            )
        )


def fetch(run: Run) -> None:
    """1 MB fetches over one bare socket beside a bare loopback send of as much."""
    results: dict[str, workloads.Throughput] = {}
    for broker in run.brokers():
        with broker() as server:
            server.create_topic("fetch")
            workloads.produce(
                server, "fetch", message_size=1000, batch_size=131_072, total_bytes=8_000_000
            )
            results[server.name] = workloads.raw_fetch(server, "fetch", total_bytes=run.bytes(4))
    with servers.bare_socket("send") as bare:
        results["limit"] = workloads.bare_send(bare, total_bytes=run.bytes(4))
    kafka = results.get("kafka")
    run.rows.append(
        Row(
            "raw fetch, 1 MB answers",
            "MB/s",
            results["moldau"].mb_per_second,
            kafka and kafka.mb_per_second,
            results["limit"].mb_per_second,
            ">= 0.60 of limit",
        )
    )
    run.rows.append(
        Row(
            "broker CPU, raw fetch",
            "s/GB",
            results["moldau"].cpu_seconds_per_gb,
            kafka and kafka.cpu_seconds_per_gb,
            results["limit"].cpu_seconds_per_gb,
            "<= 0.35",
        )
    )


def latency(run: Run) -> None:
    """One synchronous 100 B produce at a time, beside an echo of the same size.

    A round trip has two modes here, depending on where the system puts the two processes, so all
    servers take turns and the best round of each counts.
    """
    count = max(1000, int(4_000 * run.scale))
    frame = workloads.produce_frame("latency")
    best: dict[str, workloads.Latency] = {}
    with ExitStack() as running:
        measured = [running.enter_context(broker()) for broker in run.brokers()]
        for server in measured:
            server.create_topic("latency")
            workloads.round_trips(server, frame, count=count)
        measured.append(running.enter_context(servers.bare_socket("echo")))
        for _ in range(LATENCY_ROUNDS):
            for server in measured:
                result = workloads.round_trips(server, frame, count=count)
                if server.name not in best or result.p50_us < best[server.name].p50_us:
                    best[server.name] = result
    kafka, echo = best.get("kafka"), best["echo"]
    run.rows.append(
        Row(
            "synchronous produce p50",
            "us",
            best["moldau"].p50_us,
            kafka and kafka.p50_us,
            echo.p50_us,
            "<= 2.0 of limit",
        )
    )
    run.rows.append(
        Row(
            "synchronous produce p99",
            "us",
            best["moldau"].p99_us,
            kafka and kafka.p99_us,
            echo.p99_us,
        )
    )


def acls(run: Run) -> None:
    """Small produce and fetch without an authorizer and with 1,000 and 10,000 ACLs, in turns."""
    found: dict[str, permission_work.Ratios] = {}
    for broker, counts in zip(run.brokers(), ((0, 1_000, 10_000), (0, 10_000)), strict=False):
        with ExitStack() as running:
            measured: dict[str, Server] = {}
            for number in counts:
                server = running.enter_context(
                    partial(broker, *acl_work.SETTINGS)() if number else broker()
                )
                permission_work.prepare(server)
                if number:
                    acl_work.create(
                        server.bootstrap, number, permission_work.TOPIC, permission_work.MANY
                    )
                measured[str(number)] = server
            # Of Kafka only its round trips are shown.
            rounds = permission_work.ROUNDS if server.name == "moldau" else 9
            found[server.name] = permission_work.measure(
                measured, none="0", scale=run.scale, rounds=rounds
            )
    for number in (1_000, 10_000):
        kafkas = found.get("kafka", {}).get(str(number), {})
        for name, (what, unit) in permission_work.FIGURES.items():
            value, none = found["moldau"][str(number)][name]
            kafka = None if "cpu" in name or name not in kafkas else kafkas[name][0]
            run.rows.append(
                Row(f"{what} with {number:,} ACLs", unit, value, kafka, none, "<= 1.03 of none")
            )


def audit(run: Run) -> None:
    """Small produce and fetch with ACLs, and with an audit log of everything beside them."""
    with ExitStack() as running:
        folder = running.enter_context(servers.scratch_folder())
        measured: dict[str, Server] = {}
        for name, settings in (
            ("none", ()),
            ("audit", (f"moldau.audit.file={folder / 'audit.jsonl'}",)),
        ):
            server = running.enter_context(servers.moldau(*acl_work.SETTINGS, *settings))
            permission_work.prepare(server)
            acl_work.create(server.bootstrap, 1_000, permission_work.TOPIC, permission_work.MANY)
            measured[name] = server
        found = permission_work.measure(measured, none="none", scale=run.scale)
    for name, (what, unit) in permission_work.FIGURES.items():
        value, none = found["audit"][name]
        run.rows.append(Row(f"{what}, audited", unit, value, None, none, "<= 1.05 of none"))


def start(run: Run) -> None:
    """Process start to the first acknowledged produce, and memory when idle after it."""
    seconds: dict[str, float] = {}
    memory: dict[str, float] = {}
    for broker in run.brokers():
        with broker() as server:
            seconds[server.name] = workloads.first_acknowledged_seconds(server, server.started)
            memory[server.name] = server.memory_mb()
    run.rows.append(
        Row(
            "start to first acknowledged produce",
            "s",
            seconds["moldau"],
            seconds.get("kafka"),
            None,
            "<= 0.50",
        )
    )
    run.rows.append(Row("idle memory", "MB", memory["moldau"], memory.get("kafka"), None, "<= 80"))


def partitions(run: Run) -> None:
    """10,000 partitions on one node: create, write, stop, start, SIGKILL, start; idle CPU and
    memory. 1,000 with three replicas. 2,000: whether their number slows a request."""
    _growth(run)
    _replicated_creation(run)
    frame = workloads.produce_frame("latency")
    idle: dict[str, float] = {}
    p50: dict[str, tuple[float, float]] = {}
    for broker in run.brokers():
        with broker() as server:
            server.create_topic("latency")
            workloads.round_trips(server, frame, count=1000)
            before = workloads.round_trips(server, frame, count=3000)
            server.create_topic("many", 2000)
            growth_work.wait_until_served(server.port, "many", 2000)
            cpu, started = server.cpu_seconds(), time.monotonic()
            time.sleep(10)
            idle[server.name] = 100 * (server.cpu_seconds() - cpu) / (time.monotonic() - started)
            after = workloads.round_trips(server, frame, count=3000)
            p50[server.name] = before.p50_us, after.p50_us
    run.rows.append(
        Row("idle CPU with 2,000 partitions", "%", idle["moldau"], idle.get("kafka"), None, "< 3")
    )
    kafka = p50.get("kafka")
    run.rows.append(Row("p50 before 2,000 partitions", "us", p50["moldau"][0], kafka and kafka[0]))
    run.rows.append(
        Row(
            "p50 with 2,000 partitions",
            "us",
            p50["moldau"][1],
            kafka and kafka[1],
            p50["moldau"][0],
            "about 1.0 of limit",
        )
    )


def _growth(run: Run) -> None:
    count = max(1_000, int(10_000 * run.scale))
    found: dict[str, growth_work.Growth] = {}
    for name in run.names:
        with nodes.running(name, 1, **growth_work.SESSION) as running:
            found[name] = growth_work.measure(running, partitions=count, written=count // 2)
    ours, theirs = found["moldau"], found.get("kafka")
    for what, figure, aim in (
        ("create", "created", ""),
        ("one record to each of half of them", "written", ""),
        ("clean stop", "stopped", "<= 2"),
        ("start", "started", "<= 2"),
        ("start after SIGKILL", "killed_started", "<= 4"),
    ):
        here = getattr(ours, figure)
        there = None if theirs is None else getattr(theirs, figure)
        run.rows.append(
            Row(
                f"{count:,} partitions: {what}",
                "s",
                here.seconds,
                there and there.seconds,
                None,
                aim if run.scale >= 1 else "",
            )
        )
        run.rows.append(
            Row(
                f"{count:,} partitions: {what}, the node's CPU",
                "s",
                here.cpu_seconds,
                there and there.cpu_seconds,
            )
        )
    run.rows.append(
        Row(
            f"{count:,} partitions: idle CPU",
            "%",
            ours.idle_cpu_percent,
            theirs and theirs.idle_cpu_percent,
        )
    )
    run.rows.append(
        Row(f"{count:,} partitions: memory", "MB", ours.memory_mb, theirs and theirs.memory_mb)
    )


def _replicated_creation(run: Run) -> None:
    """A cluster of three; the second topic counts, as the first warms Java up."""
    count = max(200, int(1_000 * run.scale))
    created: dict[str, cluster_work.Creation] = {}
    written: dict[str, float] = {}
    for name in run.names:
        with nodes.running(name, **growth_work.SESSION) as running:
            for topic in ("first", "second"):
                created[name] = cluster_work.create(running, topic, partitions=count, replicas=3)
                written[name] = created[name].led_everywhere_s + growth_work.seconds_until_written(
                    running, topic, partitions=count
                )
    kafka = created.get("kafka")
    what = f"create {count:,} partitions with 3 replicas"
    run.rows.append(
        Row(f"{what}: answered", "s", created["moldau"].answered_s, kafka and kafka.answered_s)
    )
    run.rows.append(
        Row(
            f"{what}: led and in sync everywhere",
            "s",
            created["moldau"].led_everywhere_s,
            kafka and kafka.led_everywhere_s,
        )
    )
    run.rows.append(
        Row(f"{what}: a record in each, acks=all", "s", written["moldau"], written.get("kafka"))
    )


def groups(run: Run) -> None:
    """Offset commits of 1,000 groups, and a 500-member group's way to a stable assignment."""
    members = max(50, int(500 * run.scale))
    count = max(4000, int(40_000 * run.scale))
    overrides = (
        "group.initial.rebalance.delay.ms=0",
        "group.consumer.min.heartbeat.interval.ms=500",
        "group.consumer.heartbeat.interval.ms=500",
    )
    commits: dict[str, float] = {}
    cpu: dict[str, float] = {}
    assembled: dict[tuple[str, str], float] = {}
    protocols = {"classic": group_work.classic_member, "consumer": group_work.consumer_member}
    for broker in run.brokers(*overrides):
        with broker() as server:
            server.create_topic("commits")
            server.create_topic("assembly", members)
            work = partial(group_work.offset_commits_per_second, server, "commits", groups=1000)
            work(count=4000)
            before = server.cpu_seconds()
            commits[server.name] = work(count=count)
            cpu[server.name] = 1e6 * (server.cpu_seconds() - before) / count
            for protocol, member in protocols.items():
                assembled[server.name, protocol] = group_work.seconds_to_assignment(
                    server, "assembly", members=members, member=member
                )
    run.rows.append(
        Row("offset commits, 1,000 groups", "1/s", commits["moldau"], commits.get("kafka"))
    )
    run.rows.append(Row("broker CPU, one offset commit", "us", cpu["moldau"], cpu.get("kafka")))
    for protocol in protocols:
        run.rows.append(
            Row(
                f"{members} members to an assignment, {protocol}",
                "s",
                assembled["moldau", protocol],
                assembled.get(("kafka", protocol)),
            )
        )


def transactions(run: Run) -> None:
    """1, 100 and 10,000 records in a transaction; the limit is the same without one."""
    shapes = {1: 300, 100: 200, 10_000: 30}
    with_one: dict[tuple[str, int], float] = {}
    without: dict[tuple[str, int], float] = {}
    for broker in run.brokers():
        with broker() as server:
            server.create_topic("records")
            for records, rounds in shapes.items():
                shape = {"records": records, "rounds": max(10, int(rounds * run.scale))}
                without[server.name, records] = transaction_work.plain_ms(
                    server, "records", **shape
                )
                with_one[server.name, records] = transaction_work.transaction_ms(
                    server, "records", **shape
                )
    for records in shapes:
        run.rows.append(
            Row(
                f"no transaction, {records:,} records",
                "ms",
                without["moldau", records],
                without.get(("kafka", records)),
            )
        )
        run.rows.append(
            Row(
                f"transaction of {records:,} records",
                "ms",
                with_one["moldau", records],
                with_one.get(("kafka", records)),
                without["moldau", records],
            )
        )


def share(run: Run) -> None:
    """Records that a share group's members accept, one at a time and a hundred at a time."""
    figures: dict[tuple[str, int], float] = {}
    shapes = {1: max(1000, int(10_000 * run.scale)), 100: max(20_000, int(300_000 * run.scale))}
    for broker in run.brokers():
        with broker() as server:
            for batch, count in shapes.items():
                topic = f"share-{batch}"
                server.create_topic(topic)
                sharing.fill(server, topic, count=count, batch_records=batch)
                figures[server.name, batch] = sharing.acknowledgements_per_second(
                    server, topic, count=count, batch_records=batch
                )
    for batch in shapes:
        run.rows.append(
            Row(
                f"share acknowledgements, {batch} at a time",
                "records/s",
                figures["moldau", batch],
                figures.get(("kafka", batch)),
            )
        )


@dataclass(slots=True)
class ClusterFigures:
    """What one cluster of three showed, and one node of the same kind."""

    acks_all: cluster_work.Produced
    acks_one: cluster_work.Produced
    one_node: cluster_work.Produced
    creation: cluster_work.Creation
    failovers: dict[int, list[cluster_work.Failover]]
    controllers: list[cluster_work.ControllerFailover]
    shutdowns: cluster_work.Shutdowns
    rolling: cluster_work.Rolling


def _measure_cluster(run: Run, name: str) -> ClusterFigures:
    rounds = max(3, int(20 * run.scale))
    total = run.bytes(0.5)
    with nodes.running(name, 1) as single:
        cluster_work.create(single, "load", partitions=6, replicas=1)
        one_node = cluster_work.produce(single, "load", acks=1, total_bytes=total)
    with nodes.running(name) as running:
        cluster_work.create(running, "load", partitions=6, replicas=3)
        cluster_work.produce(running, "load", acks=-1, total_bytes=total // 10)
        acks_all = cluster_work.produce(running, "load", acks=-1, total_bytes=total)
        acks_one = cluster_work.produce(running, "load", acks=1, total_bytes=total)
        cluster_work.create(running, "ten", partitions=10, replicas=3)
        cluster_work.create(running, "six", partitions=6, replicas=3)
        shutdowns = cluster_work.controlled_shutdowns(
            running, "six", partitions=6, rounds=max(2, rounds // 4)
        )
        cluster_work.create(running, "rolling", partitions=6, replicas=3)
        rolling = cluster_work.rolling_restart(running, "rolling", partitions=6)
        controllers = cluster_work.controller_failovers(running, rounds=rounds)
        failovers = {10: cluster_work.leader_failovers(running, "ten", rounds=rounds)}
        creation = cluster_work.create(running, "thousand", partitions=1000, replicas=3)
        failovers[1000] = cluster_work.leader_failovers(running, "thousand", rounds=rounds)
    return ClusterFigures(
        acks_all, acks_one, one_node, creation, failovers, controllers, shutdowns, rolling
    )


def cluster(run: Run) -> None:
    """Three nodes: replication, death of leaders and controllers, shutdown, rolling restart."""
    figures = {name: _measure_cluster(run, name) for name in run.names}

    def row(
        what: str,
        unit: str,
        figure: Callable[[ClusterFigures], float],
        aim: str = "",
        limit: Callable[[ClusterFigures], float] | None = None,
    ) -> None:
        kafka = figure(figures["kafka"]) if run.with_kafka else None
        run.rows.append(
            Row(
                what,
                unit,
                figure(figures["moldau"]),
                kafka,
                limit(figures["moldau"]) if limit else None,
                aim,
            )
        )

    def one_node(each: ClusterFigures) -> float:
        return each.one_node.mb_per_second

    row("produce, one node, acks=1", "MB/s", one_node)
    row("produce, 3 replicas, acks=1", "MB/s", lambda f: f.acks_one.mb_per_second, limit=one_node)
    row("produce, 3 replicas, acks=all", "MB/s", lambda f: f.acks_all.mb_per_second, limit=one_node)
    row("CPU of all brokers, acks=all", "s/GB", lambda f: f.acks_all.cpu_seconds_per_gb)
    row("create 1,000 partitions: answered", "s", lambda f: f.creation.answered_s)
    row(
        "create 1,000 partitions: led and in sync everywhere",
        "s",
        lambda f: f.creation.led_everywhere_s,
    )
    session = nodes.TIMEOUTS["broker.session.timeout.ms"]
    for count in (10, 1000):
        for which, word in enumerate(("median", "worst")):
            for what, name, aim in (
                (f"without a leader after SIGKILL (session {session} ms)", "leaderless_ms", ""),
                ("of it since the controller knows", "after_known_ms", "<= 200"),
                ("until acknowledged again, acks=all", "acknowledged_ms", ""),
            ):
                row(
                    f"{count:,} partitions: {what}, {word}",
                    "ms",
                    partial(_failover_figure, count=count, name=name, which=which),
                    aim,
                )
    for which, word in enumerate(("median", "worst")):
        row(
            f"controller killed: another leads, {word}",
            "ms",
            partial(_controller_figure, name="elected_ms", which=which),
        )
        row(
            f"controller killed: a topic is created, {word}",
            "ms",
            partial(_controller_figure, name="created_ms", which=which),
        )
    row("longest gap of a producer, undisturbed", "ms", lambda f: f.shutdowns.undisturbed_ms)
    for which, word in enumerate(("median", "worst")):
        row(
            f"longest gap of a producer, controlled shutdown, {word}",
            "ms",
            partial(_shutdown_figure, which=which),
            "<= 100",
        )
    row("longest gap of a producer, rolling restart", "ms", lambda f: f.rolling.longest_gap_ms)
    row("rolling restart: errors seen by clients", "", lambda f: float(len(f.rolling.errors)), "0")
    row(
        "rolling restart: records lost or twice",
        "",
        lambda f: float(f.rolling.lost + f.rolling.duplicates),
        "0",
    )
    for name, each in figures.items():
        for error in (*each.shutdowns.errors, *each.rolling.errors)[:10]:
            print(f"{name}: {error}", file=sys.stderr)


def failover(run: Run) -> None:
    """Three nodes at default settings, one of them killed under load; restarts; 2,000 clients."""
    rounds = max(3, int(20 * run.scale))
    found = {name: failover_work.measure(name, rounds=rounds) for name in run.names}
    for number, (what, unit, value, aim) in enumerate(found["moldau"]):
        kafka = found["kafka"][number].value if run.with_kafka else None
        run.rows.append(Row(what, unit, value, kafka, aim=aim))


def _failover_figure(figures: ClusterFigures, *, count: int, name: str, which: int) -> float:
    values = [getattr(each, name) for each in figures.failovers[count]]
    return cluster_work.median_and_worst(values)[which]


def _controller_figure(figures: ClusterFigures, *, name: str, which: int) -> float:
    return cluster_work.median_and_worst(getattr(x, name) for x in figures.controllers)[which]


def _shutdown_figure(figures: ClusterFigures, *, which: int) -> float:
    return cluster_work.median_and_worst(figures.shutdowns.gaps_ms)[which]


def clients(run: Run) -> None:
    """Python's clients side by side against the same broker, and what ours spend where."""
    records = {
        100: max(60_000, int(200_000 * run.scale)),
        1000: max(40_000, int(100_000 * run.scale)),
    }
    # The first round also warms the broker up, Java's above all.
    rounds = 3 if run.scale >= 1 else 2
    found: dict[str, dict[int, dict[tuple[str, str], client_work.Figures]]] = {}
    for broker in run.brokers():
        with broker() as server:
            found[server.name] = {
                size: client_work.measure(server, size, count, rounds)
                for size, count in records.items()
            }
    for size in records:
        for way in ("produce", "consume"):
            for client in client_work.CLIENTS:
                _client_rows(run, found, size, way, client)
    for size in records:
        _client_parts(run, found["moldau"][size], size)


def _client_rows(
    run: Run,
    found: dict[str, dict[int, dict[tuple[str, str], client_work.Figures]]],
    size: int,
    way: str,
    client: str,
) -> None:
    ours = found["moldau"][size][client, way]
    theirs = found["kafka"][size][client, way] if "kafka" in found else None
    what = f"{way} {size} B, {client}"
    run.rows.append(
        Row(
            what,
            "1,000 records/s",
            ours.per_second / 1e3,
            None if theirs is None else theirs.per_second / 1e3,
        )
    )
    run.rows.append(
        Row(
            f"{what}: the client's CPU",
            "us/record",
            ours.cpu_us,
            None if theirs is None else theirs.cpu_us,
        )
    )
    if client in client_work.OURS:
        for other, aim in client_work.AIMS.items():
            ratios = [
                each[size][client, way].per_second / each[size][other, way].per_second
                for each in found.values()
            ]
            run.rows.append(
                Row(
                    f"{what} / {other}",
                    "x",
                    ratios[0],
                    ratios[1] if len(ratios) > 1 else None,
                    None,
                    f">= {aim}",
                )
            )


def _client_parts(run: Run, figures: dict[tuple[str, str], client_work.Figures], size: int) -> None:
    """Where a record's time goes in our blocking clients."""
    parts = client_work.parts_of(size)
    produce, consume = figures["moldau", "produce"], figures["moldau", "consume"]
    for what, microseconds in (
        ("send, all that its caller pays", produce.caller_us),
        ("of it: append to the batch", parts.append_us),
        ("build the batch", parts.build_us),
        (
            "the rest of the sender's thread, network",
            max(0.0, produce.cpu_us - produce.caller_us - parts.build_us),
        ),
        ("fetch, the network's thread", max(0.0, consume.cpu_us - consume.caller_us)),
        ("poll, all that its caller pays", consume.caller_us),
        ("of it: decode", parts.decode_us),
        ("of it: hand over and read the value", max(0.0, consume.caller_us - parts.decode_us)),
    ):
        run.rows.append(Row(f"{size} B: {what}", "us/record", microseconds))


def spark(run: Run) -> None:
    """Topics in Spark, by our connector and by Spark's own: rows, CPU, latency, start-up."""
    # Whoever runs the other suites needs no pyspark.
    from bench import spark as spark_work

    shapes = {
        100: max(400_000, int(3_000_000 * run.scale)),
        1000: max(100_000, int(600_000 * run.scale)),
    }
    rounds = 3 if run.scale >= 1 else 2
    seconds = 20.0 if run.scale >= 1 else 6.0
    with spark_work.running() as running:
        found: dict[tuple[str, int], dict[tuple[str, str], spark_work.Figures]] = {}
        latencies: dict[tuple[str, str, bool], spark_work.Latency] = {}
        first: dict[tuple[str, str], float] = {}
        for broker in run.brokers():
            with broker() as server:
                for kind in running.formats:
                    first[server.name, kind] = spark_work.first_query_seconds(running, server, kind)
                for size, count in shapes.items():
                    found[server.name, size] = spark_work.throughput(
                        running,
                        server,
                        size=size,
                        count=count,
                        rounds=rounds,
                        with_limit=server.name == "moldau",
                    )
                for kind, exactly_once in (
                    (spark_work.OURS, True),
                    (spark_work.OURS, False),
                    (spark_work.OFFICIAL, False),
                ):
                    if kind in running.formats:
                        latencies[server.name, kind, exactly_once] = spark_work.latency(
                            running, server, kind, seconds=seconds, exactly_once=exactly_once
                        )
        run.rows.append(
            Row(
                "Spark's server to its first query",
                "s",
                running.start_seconds + running.first_query_seconds,
            )
        )
        for kind in running.formats:
            run.rows.append(
                Row(
                    f"first query over a topic, {_connector(kind)}",
                    "s",
                    first["moldau", kind],
                    first.get(("kafka", kind)),
                )
            )
        for size in shapes:
            _spark_rows(run, running.formats, found, size)
        for kind, exactly_once in sorted({key[1:] for key in latencies}, reverse=True):
            ours = latencies["moldau", kind, exactly_once]
            theirs = latencies.get(("kafka", kind, exactly_once))
            how = "exactly once" if exactly_once else "at least once"
            what = f"micro-batch, {_connector(kind)}, {how}"
            run.rows.append(Row(f"{what}: p50", "ms", ours.p50_ms, theirs and theirs.p50_ms))
            run.rows.append(Row(f"{what}: p99", "ms", ours.p99_ms, theirs and theirs.p99_ms))


def _connector(kind: str) -> str:
    return {"moldau": 'format("moldau")', "kafka": "the official connector"}[kind]


def _spark_rows(run: Run, formats: tuple[str, ...], found: Any, size: int) -> None:
    """The columns are the brokers that the same connector reads and writes."""
    for workload, aim in (("noop", 0.8), ("topic", 0.5), ("parquet", 0.8)):
        ours, theirs = found["moldau", size], found.get(("kafka", size), {})
        limit = ours[workload, "limit"]
        for kind in formats:
            what = f"topic to {workload} {size} B, {_connector(kind)}"
            here, there = ours[workload, kind], theirs.get((workload, kind))
            is_ours = kind == formats[0]
            run.rows.append(
                Row(
                    what,
                    "1,000 rows/s",
                    here.rows_per_second / 1e3,
                    there and there.rows_per_second / 1e3,
                    limit.rows_per_second / 1e3 if is_ours else None,
                )
            )
            run.rows.append(
                Row(
                    f"{what}: CPU",
                    "s/million",
                    here.cpu_per_million,
                    there and there.cpu_per_million,
                    limit.cpu_per_million if is_ours else None,
                )
            )
        if len(formats) == 2:
            ratios = [
                each[workload, formats[0]].rows_per_second
                / each[workload, formats[1]].rows_per_second
                for each in (ours, theirs)
                if each
            ]
            run.rows.append(
                Row(
                    f"topic to {workload} {size} B, ours / official",
                    "x",
                    ratios[0],
                    ratios[1] if len(ratios) > 1 else None,
                    None,
                    f">= {aim}",
                )
            )


def tls(run: Run) -> None:
    """Produce, fetch, latency and handshakes over SSL, beside PLAINTEXT; all servers in turns."""
    with ExitStack() as running:
        folder = running.enter_context(servers.scratch_folder())
        certificates = tls_work.Certificates(folder)
        measured: dict[str, Server] = {}
        for broker in run.brokers():
            server = running.enter_context(broker())
            measured[f"{server.name} PLAINTEXT"] = server
        for broker in run.brokers(*certificates.overrides):
            server = running.enter_context(broker())
            measured[f"{server.name} SSL"] = replace(server, ca=str(certificates.certificate))
        found = tls_work.measure(measured, run.scale)
    for protocol in ("SSL", "PLAINTEXT"):
        ours, kafkas = found[f"moldau {protocol}"], found.get(f"kafka {protocol}", {})
        for name, (what, unit, aim) in tls_work.FIGURES.items():
            if name in ours:
                limit = found["moldau PLAINTEXT"].get(name) if protocol == "SSL" else None
                run.rows.append(
                    Row(
                        f"{what}, {protocol}",
                        unit,
                        ours[name],
                        kafkas.get(name),
                        limit,
                        aim if protocol == "SSL" else "",
                    )
                )


SUITES = {
    suite.__name__: suite
    for suite in (
        throughput,
        fetch,
        latency,
        start,
        partitions,
        groups,
        transactions,
        share,
        cluster,
        failover,
        clients,
        spark,
        acls,
        audit,
        tls,
    )
}


def table_of(rows: list[Row]) -> Table:
    table = Table(title="Moldau beside Apache Kafka and the machine's limit, one run")
    table.add_column("what")
    table.add_column("unit")
    for column in ("Moldau", "Kafka", "limit", "of Kafka", "of limit"):
        table.add_column(column, justify="right")
    table.add_column("aim")
    for row in rows:
        cells = [row.moldau, row.kafka, row.limit]
        shown = ["" if cell is None else f"{cell:,.2f}" for cell in cells]
        ratios = ["" if not cell else f"{row.moldau / cell:.2f}" for cell in cells[1:]]
        table.add_row(row.what, row.unit, *shown, *ratios, row.aim)
    return table


def write_json(run: Run, names: list[str], path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    machine = {
        "cores": psutil.cpu_count(),
        "memory_gb": psutil.virtual_memory().total / 1e9,
        "python": platform.python_version(),
        "system": platform.platform(),
    }
    rows = [{name: getattr(row, name) for name in Row.__slots__} for row in run.rows]
    path.write_text(json.dumps({"machine": machine, "scale": run.scale, "rows": rows}, indent=1))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "suite",
        nargs="*",
        metavar="suite",
        help=f"which to run: {', '.join(SUITES)} (default: all)",
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the data")
    parser.add_argument("--without-kafka", action="store_true", help="leave Apache Kafka out")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.suite if name not in SUITES]
    if unknown:
        parser.error(f"no suite {unknown[0]!r}: choose from {', '.join(SUITES)}")
    names = options.suite or list(SUITES)
    # Into a file there is no terminal's width to keep to.
    console = Console(width=None if sys.stdout.isatty() else 150)
    with_kafka = not options.without_kafka and servers.kafka_available()
    if not with_kafka:
        console.print("Apache Kafka is left out (asked for, or no jars: `make kafka`).")
    run = Run(scale=0.1 if options.quick else 1.0, with_kafka=with_kafka)
    stamp = time.strftime("%Y-%m-%dT%H%M%SZ", time.gmtime())
    path = RESULTS / f"{stamp}-{'-'.join(names)}.json"
    for name in names:
        console.print(f"[dim]{name}: {(SUITES[name].__doc__ or '').strip()}[/dim]")
        before = len(run.rows)
        SUITES[name](run)
        # After each suite: a run that is stopped has still measured what it has done.
        console.print(table_of(run.rows[before:]))
        write_json(run, names, path)
    console.print(f"written to {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
