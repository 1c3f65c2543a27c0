"""Three nodes: replication, and what clients notice when a node stops or dies."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bench import cluster as cluster_work
from bench import failover as failover_work
from bench import nodes
from bench.run import Row, Run


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


def _failover_figure(figures: ClusterFigures, *, count: int, name: str, which: int) -> float:
    values = [getattr(each, name) for each in figures.failovers[count]]
    return cluster_work.median_and_worst(values)[which]


def _controller_figure(figures: ClusterFigures, *, name: str, which: int) -> float:
    return cluster_work.median_and_worst(getattr(x, name) for x in figures.controllers)[which]


def _shutdown_figure(figures: ClusterFigures, *, which: int) -> float:
    return cluster_work.median_and_worst(figures.shutdowns.gaps_ms)[which]


def failover(run: Run) -> None:
    """Three nodes at default settings, one of them killed under load; restarts; 2,000 clients."""
    rounds = max(3, int(20 * run.scale))
    found = {name: failover_work.measure(name, rounds=rounds) for name in run.names}
    for number, (what, unit, value, aim) in enumerate(found["moldau"]):
        kafka = found["kafka"][number].value if run.with_kafka else None
        run.rows.append(Row(what, unit, value, kafka, aim=aim))
