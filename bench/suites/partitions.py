"""Very many partitions: on one node, with three replicas, and whether they slow a request."""

from __future__ import annotations

import time

from bench import cluster as cluster_work
from bench import growth as growth_work
from bench import nodes, workloads
from bench.run import Row, Run


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
