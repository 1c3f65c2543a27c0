"""`moldau metrics`: what a broker or service measures, in the terminal."""

from __future__ import annotations

import argparse
import json
import time
import urllib.error
import urllib.request
from collections import deque
from typing import Any

from moldau.cli.monitoring import views
from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import add_json
from moldau.cli.support.failures import Failure
from moldau.cli.support.tables import Table, aligned, on_terminal, print_json
from moldau.metrics.parsing import Line, parse

__all__ = ["add_arguments", "run"]

DEFAULT_URL = "http://127.0.0.1:9644"
SECONDS_MAX = 10.0

_EXAMPLES = """\
examples:
  moldau start --metrics-port 9644
  moldau metrics list bytesin
  moldau metrics watch
  moldau metrics chart 'messagesin_total topic="orders"'
  moldau metrics read kafka.server:type=ReplicaManager,name=LeaderCount
  moldau metrics clients
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    commands = parser.add_commands()
    listed = commands.add("list", "print metrics, all or those with all given words")
    watch = commands.add("watch", "show a broker on one screen, again and again")
    chart = commands.add("chart", "draw one metric over time; a count is drawn per second")
    read = commands.add("read", "print the attributes of MBeans; * stands for anything")
    clients = commands.add("clients", "print the metrics that clients have pushed (KIP-714)")
    history = commands.add("history", "print what brokers wrote to the topic __moldau_metrics")
    for command in (listed, watch, chart, read, clients):
        command.add_argument(
            "--url",
            default=DEFAULT_URL,
            metavar="URL",
            help=f"where metrics are served (default: {DEFAULT_URL})",
        )
    listed.add_argument("words", nargs="*", metavar="WORD", help="parts of names and labels")
    watch.add_argument("words", nargs="*", metavar="WORD", help="metrics to watch instead")
    chart.add_argument("words", nargs="+", metavar="WORD", help="parts of one metric's name")
    read.add_argument("mbean", metavar="MBEAN", help="such as kafka.server:type=ReplicaManager,*")
    history.add_argument("words", nargs="*", metavar="WORD", help="parts of names and labels")
    from moldau.cli.support.client_options import add_common

    add_common(history, required=False)
    for command in (watch, chart):
        command.add_argument(
            "--interval", type=float, default=2.0, metavar="S", help="seconds between two readings"
        )
        command.add_argument("--count", type=int, metavar="N", help="end after N readings")
    for command in (listed, read, clients, history):
        add_json(command)


def run(arguments: argparse.Namespace) -> int:
    command = {
        "list": _list, "watch": _watch, "chart": _chart, "read": _read, "clients": _clients,
        "history": _history,
    }[arguments.command]  # fmt: skip
    try:
        return command(arguments)
    except KeyboardInterrupt:
        return 130


def _get(url: str, path: str) -> str:
    base = url.rstrip("/").removesuffix("/metrics")
    if not base.startswith(("http://", "https://")):
        base = f"http://{base}"
    try:
        with urllib.request.urlopen(base + path, timeout=SECONDS_MAX) as answer:
            text: str = answer.read().decode()
            return text
    except urllib.error.HTTPError as error:
        raise Failure(f"{base}{path}: {error.code} {error.reason}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise Failure(
            f"{base}{path}: {reason}. Start the broker with --metrics-port, or name another --url"
        ) from None


def _lines(url: str) -> dict[str, Line]:
    return {line.text: line for line in parse(_get(url, "/metrics"))}


def _list(arguments: argparse.Namespace) -> int:
    found = views.select(_lines(arguments.url).values(), " ".join(arguments.words))
    if arguments.json:
        print_json(
            [
                {"name": each.name, "labels": dict(each.labels), "value": each.value}
                for each in found
            ]
        )
        return 0
    for each in found:
        print(f"{each.text} {each.value:g}")
    return 0 if found or not arguments.words else 1


def _watch(arguments: argparse.Namespace) -> int:
    before, then = _lines(arguments.url), time.monotonic()
    readings = 0
    while arguments.count is None or readings < arguments.count:
        time.sleep(arguments.interval)
        now, at = _lines(arguments.url), time.monotonic()
        per_second = views.rates(before, now, at - then)
        if arguments.words:
            rows = [
                views.Row(
                    line.text,
                    f"{views.shortened(per_second[line.text])}/s"
                    if line.text in per_second
                    else views.shortened(line.value),
                )
                for line in views.select(now.values(), " ".join(arguments.words))
            ]
        else:
            rows = views.overview(now, per_second)
        if on_terminal():
            # The screen is drawn over itself.
            print("\x1b[H\x1b[2J", end="")
        table = Table("METRIC", "VALUE", plain=aligned, title=f"{arguments.url}")
        for row in rows:
            table.add(*row)
        table.show()
        before, then = now, at
        readings += 1
    return 0


def _chart(arguments: argparse.Namespace) -> int:
    words = " ".join(arguments.words)
    found = views.select(_lines(arguments.url).values(), words)
    if not found:
        raise Failure(f"no metric has all of: {words}. `moldau metrics list` prints them")
    name = found[0].text
    values: deque[float] = deque(maxlen=60)
    before, then = {found[0].text: found[0]}, time.monotonic()
    readings = 0
    while arguments.count is None or readings < arguments.count:
        time.sleep(arguments.interval)
        now, at = _lines(arguments.url), time.monotonic()
        if name in now:
            per_second = views.rates(before, {name: now[name]}, at - then)
            values.append(per_second.get(name, now[name].value))
            before, then = {name: now[name]}, at
        readings += 1
        if on_terminal():
            print("\x1b[H\x1b[2J", end="")
        unit = " per second" if name.partition("{")[0].endswith(("_total", "_count")) else ""
        if on_terminal() or readings == arguments.count:
            print(f"{name}{unit}")
            print("\n".join(views.chart(values)))
    return 0


def _read(arguments: argparse.Namespace) -> int:
    from urllib.parse import quote

    path = f"/jolokia/read/{quote(arguments.mbean.replace('!', '!!').replace('/', '!/'))}"
    answer: dict[str, Any] = json.loads(_get(arguments.url, path))
    if answer["status"] != 200:
        raise Failure(str(answer["error"]))
    value = answer["value"]
    beans = value if "*" in arguments.mbean or "?" in arguments.mbean else {arguments.mbean: value}
    if arguments.json:
        print_json(beans)
        return 0
    for bean, attributes in beans.items():
        print(bean)
        for name, number in attributes.items():
            print(f"  {name}  {number}")
    return 0


def _clients(arguments: argparse.Namespace) -> int:
    clients = json.loads(_get(arguments.url, "/clients"))
    if arguments.json:
        print_json(clients)
        return 0
    if not clients:
        print("no client has pushed metrics; `moldau client-metrics` subscribes to them")
        return 0
    for client in clients:
        software = f"{client['client_software_name']} {client['client_software_version']}"
        print(f"{client['client_id']}  {software}  {client['client_instance_id']}")
        for each in client["values"]:
            tags = ",".join(f"{key}={text}" for key, text in each["tags"].items())
            print(f"  {each['name']}{{{tags}}} {each['value']:g}")
    return 0


def _history(arguments: argparse.Namespace) -> int:
    from moldau.cli.monitoring.history import print_history

    return print_history(arguments)
