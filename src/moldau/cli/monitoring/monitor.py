"""`moldau monitor`: watches a cluster from outside."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
import urllib.request
from dataclasses import replace
from typing import Any

from moldau.cli.support.addresses import DEFAULT_SERVERS, cluster_settings
from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import add_json
from moldau.cli.support.failures import Failure
from moldau.cli.support.output import print_now
from moldau.cli.support.tables import Table, aligned, print_json
from moldau.installation import pip_install

__all__ = ["add_arguments", "run"]

DEFAULT_PORT = 9645

_EXAMPLES = """\
examples:
  moldau monitor start
  moldau monitor start monitor.yml --bootstrap-server kafka1:9092
  moldau monitor status
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    commands = parser.add_commands()
    start = commands.add("start", "watch the cluster until Ctrl-C")
    start.add_argument("file", nargs="?", metavar="FILE", help="YAML file (docs/metrics.md)")
    start.add_argument(
        "--bootstrap-server", metavar="HOST:PORT,...", help="addresses of brokers of the cluster"
    )
    start.add_argument(
        "--port",
        type=int,
        default=DEFAULT_PORT,
        metavar="P",
        help=f"port of 127.0.0.1 for its metrics and status (default: {DEFAULT_PORT})",
    )
    status = commands.add("status", "print what a running monitor knows")
    status.add_argument(
        "--url", default=f"http://127.0.0.1:{DEFAULT_PORT}", metavar="URL", help="where it serves"
    )
    add_json(status)


def run(arguments: argparse.Namespace) -> int:
    return _start(arguments) if arguments.command == "start" else _status(arguments)


def _start(arguments: argparse.Namespace) -> int:
    from moldau.monitoring.machine.config import MonitorConfigError, read_config
    from moldau.monitoring.monitor import Monitor
    from moldau.monitoring.pipelines import pipeline_states

    try:
        config = read_config(_content(arguments.file))
    except MonitorConfigError as error:
        raise Failure(f"{arguments.file or 'monitor'}: {error}") from None
    if arguments.bootstrap_server is not None:
        cluster = {**config.cluster, "bootstrap.servers": arguments.bootstrap_server}
        config = replace(config, cluster=cluster)
    elif not config.cluster.get("bootstrap.servers"):
        settings = cluster_settings(os.environ) or {"bootstrap.servers": DEFAULT_SERVERS}
        config = replace(config, cluster={**settings, **config.cluster})
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    monitor = Monitor(config, pipelines=pipeline_states(config.cluster))

    async def serve() -> None:
        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stopping.set)
        print_now(
            f"Watching {config.cluster['bootstrap.servers']}.\n"
            f"  metrics  http://127.0.0.1:{arguments.port}/metrics\n"
            "  status   moldau monitor status\n\nCtrl-C stops it."
        )
        await monitor.run(stopping, host="127.0.0.1", port=arguments.port)

    try:
        asyncio.run(serve())
    except OSError as error:
        raise Failure(f"port {arguments.port}: {error.strerror or error}") from None
    return 0


def _content(path: str | None) -> Any:
    if path is None:
        return {}
    try:
        import yaml
    except ImportError:
        raise Failure(f"a monitor's file needs YAML: {pip_install('monitoring')}") from None
    try:
        with open(path, encoding="utf-8") as file:
            return yaml.safe_load(file)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise Failure(f"{path} is not YAML: {error}") from None


def _status(arguments: argparse.Namespace) -> int:
    url = arguments.url.rstrip("/") + "/clients"
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            status = json.load(answer)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise Failure(
            f"no monitor answers at {arguments.url}: {reason}. Start one: moldau monitor start"
        ) from None
    if arguments.json:
        print_json(status)
        return 0
    _print(status)
    return 1 if status["alerts"] or status["problem"] else 0


def _print(status: dict[str, Any]) -> None:
    if status["problem"]:
        print(f"the cluster cannot be reached: {status['problem']}")
    for alert in status["alerts"]:
        print(f"{alert['severity'].upper()} {alert['name']}: {alert['summary']}")
    table = Table(
        "GROUP", "KIND", "TOPIC", "PARTITION", "LAG", "SECONDS", "TREND/S", "CLEARS IN", "STUCK",
        plain=aligned,
    )  # fmt: skip
    for lag in status["lags"]:
        clears = "-" if lag["clears_in"] is None else f"{lag['clears_in']:.0f} s"
        topic, partition = lag["place"]
        table.add(
            lag["group_id"], lag["kind"], topic, str(partition), str(lag["records"]),
            f"{lag['seconds']:.0f}", f"{lag['trend']:+.1f}", clears, "yes" if lag["stuck"] else "",
        )  # fmt: skip
    table.show()
    canary = status["canary"]
    if canary["probes"]:
        print(
            f"canary: {canary['probes']} probes, {canary['failures']} failed, "
            f"p50 {canary['p50_ms']:.1f} ms, p99 {canary['p99_ms']:.1f} ms"
        )
    for each in status["objectives"]:
        print(
            f"objective {each['name']}: {each['good']} of {each['total']} good "
            f"(target {each['target']:.2%}), {each['budget']:.0%} of the error budget left, "
            f"burn rate {each['burn_rate']:.1f}"
        )
