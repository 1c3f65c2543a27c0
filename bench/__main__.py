"""Run the benchmarks: `python -m bench [suite ...] [--quick] [--without-kafka]`.

Every suite measures Moldau, Apache Kafka (where its jars are at hand, see `make kafka`) and the
limit of this machine with the same client in the same run; ratios are what counts, as absolute
figures move with the neighbours. Results go to the terminal and to bench/results/*.json.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from rich.console import Console

from bench import servers
from bench.report import table_of, write_json
from bench.run import Run
from bench.suites.broker import fetch, latency, start, throughput
from bench.suites.clients import clients
from bench.suites.cluster import cluster, failover
from bench.suites.coordination import groups, share, transactions
from bench.suites.partitions import partitions
from bench.suites.security import acls, audit, tls
from bench.suites.spark import spark

RESULTS = Path(__file__).parent / "results"
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
