"""Topics in Spark, by our connector and by Spark's own."""

from __future__ import annotations

from typing import Any

from bench.run import Row, Run


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
