"""`moldau doctor`: checks this installation and suggests how to fix problems.

Every check prints one line: OK, warn or fail, what was found, and what to do. A check changes
nothing; one of them writes a small file, which it removes. Exit code 1 if a check fails.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from moldau.cli.setup.doctor_checks import Check, Status, broker_checks, local_checks
from moldau.cli.setup.doctor_spark import spark_checks
from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import add_common, add_json
from moldau.cli.support.tables import on_terminal, print_json

__all__ = ["add_arguments", "run"]

_EXAMPLES = """\
examples:
  moldau doctor                                  before the first `moldau start`
  moldau doctor --port 19092 --data /var/moldau  for a broker with these
  moldau doctor --bootstrap-server HOST:PORT     also check this broker
"""

_COLOURS = {Status.OK: "green", Status.WARN: "yellow", Status.FAIL: "bold red"}


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    add_common(parser, required=False)
    parser.add_argument(
        "--port",
        type=int,
        default=9092,
        metavar="P",
        help="port that the broker will use (default: 9092)",
    )
    parser.add_argument(
        "--data",
        default="moldau-data",
        metavar="DIR",
        help="its data directory (default: ./moldau-data)",
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    checks: list[Check] = []
    for check in local_checks(port=arguments.port, data=arguments.data):
        _show(check, arguments, checks)
    for check in spark_checks():
        _show(check, arguments, checks)
    if arguments.bootstrap_server is not None:
        for check in broker_checks(arguments):
            _show(check, arguments, checks)
    if arguments.json:
        print_json(
            [
                {
                    "check": check.name,
                    "status": check.status.value,
                    "found": check.found,
                    "fix": check.fix,
                }
                for check in checks
            ]
        )
    else:
        _summarize(checks)
    return 1 if any(check.status is Status.FAIL for check in checks) else 0


def _show(check: Check, arguments: argparse.Namespace, checks: list[Check]) -> None:
    """At once, because some checks take a while."""
    checks.append(check)
    if arguments.json:
        return
    if not on_terminal():
        print(f"{check.status.value:<6}{check.name:<18}{check.found}")
        if check.fix:
            print(f"{'':<24}{check.fix}")
        sys.stdout.flush()
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    line = Table.grid(padding=(0, 1))
    line.add_column(width=5)
    line.add_column(width=17)
    line.add_column()
    status = Text(check.status.value, style=_COLOURS[check.status])
    line.add_row(status, Text(check.name, style="bold"), Text(check.found))
    if check.fix:
        line.add_row("", "", Text(f"→ {check.fix}", style="cyan"))
    Console().print(line)


def _summarize(checks: Sequence[Check]) -> None:
    counts = {status: sum(check.status is status for check in checks) for status in Status}
    if counts[Status.FAIL]:
        print(f"\n{counts[Status.FAIL]} of {len(checks)} checks failed.")
    elif counts[Status.WARN]:
        print(f"\nNo check failed; {counts[Status.WARN]} of {len(checks)} have a warning.")
    else:
        print(f"\nAll {len(checks)} checks passed.")
