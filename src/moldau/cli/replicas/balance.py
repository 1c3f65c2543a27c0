"""`moldau balance`: plan which replicas should move between brokers, and move them."""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import add_common, add_json
from moldau.cli.support.connecting import open_admin
from moldau.cli.support.failures import Failure
from moldau.cli.support.output import print_now
from moldau.cli.support.reporting import reporting_as
from moldau.cli.support.signals import Signals
from moldau.cli.support.tables import Table, aligned, print_json

if TYPE_CHECKING:
    from moldau.balance.machine.model import Plan
    from moldau.client.admin import Admin

__all__ = ["add_arguments", "run"]

_EXAMPLES = """\
examples:
  moldau balance plan --throttle 50000000
  moldau balance execute --throttle 50000000
  moldau balance add-broker 4 --execute
  moldau balance drain-broker 2 --execute --throttle 50000000
  moldau balance run --interval 600 --max-moves 10 --throttle 50000000
  moldau balance run --drain 2 --max-bytes 10000000000
  moldau balance status
  moldau balance stop
"""
_ROWS_MAX = 40
_BATCH = 50
_HOURS_MAX = 24.0


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    commands = parser.add_commands()
    plan = commands.add("plan", "print what would move and why; moves nothing")
    execute = commands.add("execute", "make a plan and carry it out")
    add = commands.add("add-broker", "plan to fill new brokers, and nothing else")
    drain = commands.add("drain-broker", "plan to move all replicas away from brokers")
    keep = commands.add("run", "balance again and again, a little at a time, until stopped")
    status = commands.add("status", "show the reassignments in progress")
    stop = commands.add("stop", "cancel all reassignments in progress and remove throttles")
    for command in (add, drain):
        command.add_argument("brokers", nargs="+", type=int, metavar="ID", help="ids of brokers")
        command.add_argument("--execute", action="store_true", help="carry the plan out")
    for command in (plan, execute, add, drain, keep):
        _add_planning(command)
    for command in (execute, add, drain, keep):
        _add_executing(command, hours=None if command is keep else _HOURS_MAX)
    _add_running(keep)
    for command in (plan, execute, add, drain, keep, status, stop):
        add_common(command)
    for command in (plan, add, drain, status):
        add_json(command)


def _add_planning(command: Parser) -> None:
    command.add_argument(
        "--throttle",
        type=int,
        metavar="BYTES/S",
        help="limit for what each broker sends and receives for copies (default: no limit)",
    )
    command.add_argument(
        "--tolerance",
        type=float,
        default=0.10,
        metavar="PART",
        help="how far from an even load a broker may be (default: %(default)s)",
    )
    command.add_argument(
        "--metrics",
        metavar="ID=HOST:PORT,...",
        help="metrics pages of all brokers, to balance network traffic and CPU too",
    )
    command.add_argument(
        "--sample",
        type=float,
        default=5.0,
        metavar="S",
        help="seconds between two readings of the metrics (default: %(default)s)",
    )


def _add_executing(command: Parser, hours: float | None) -> None:
    command.add_argument(
        "--batch",
        type=int,
        default=_BATCH,
        metavar="N",
        help="partitions that move at a time (default: %(default)s)",
    )
    command.add_argument(
        "--hours",
        type=float,
        default=hours,
        metavar="H",
        help=f"stop after this time (default: {'never' if hours is None else hours})",
    )


def _add_running(command: Parser) -> None:
    command.add_argument(
        "--interval",
        type=float,
        default=300.0,
        metavar="S",
        help="seconds from the beginning of a round to the next (default: %(default)s)",
    )
    command.add_argument(
        "--max-moves",
        type=int,
        default=20,
        metavar="N",
        help="partitions that change in one round (default: %(default)s)",
    )
    command.add_argument(
        "--max-bytes",
        type=int,
        metavar="BYTES",
        help="bytes that one round copies at most (default: no limit)",
    )
    command.add_argument(
        "--cool-down",
        type=float,
        default=3600.0,
        metavar="S",
        help="seconds that a partition stays where it was moved to (default: %(default)s)",
    )
    command.add_argument(
        "--drain",
        nargs="+",
        type=int,
        default=[],
        metavar="ID",
        help="brokers that are emptied and kept empty; the others are balanced (default: none)",
    )
    command.add_argument(
        "--rounds", type=int, metavar="N", help="end after this number of rounds (default: never)"
    )


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    with (
        _explaining(),
        reporting_as("Error: "),
        open_admin(arguments, client_id="balance-tool") as admin,
    ):
        if arguments.command == "status":
            return _status(admin, arguments)
        if arguments.command == "stop":
            return _stop(admin)
        if arguments.command == "run":
            return _run(admin, arguments)
        return _plan(admin, arguments)


def _check(arguments: argparse.Namespace) -> None:
    names = ("throttle", "batch", "hours", "sample", "interval", "max_moves", "max_bytes", "rounds")
    for name in names:
        value = getattr(arguments, name, None)
        if value is not None and value <= 0:
            raise Failure(f"--{name.replace('_', '-')} must be greater than 0, not {value}")


@contextmanager
def _explaining() -> Iterator[None]:
    from moldau.balance.machine.model import Impossible

    try:
        yield
    except Impossible as error:
        raise Failure(str(error)) from None


# Plans.


def _plan(admin: Admin, arguments: argparse.Namespace) -> int:
    from moldau.balance.machine.model import Constraints
    from moldau.balance.machine.planner import plan
    from moldau.balance.machine.report import as_document
    from moldau.balance.reading import read_cluster, read_load

    executes = arguments.command == "execute" or getattr(arguments, "execute", False)
    wants_json = getattr(arguments, "json", False)
    if executes and wants_json:
        raise Failure("--json prints a plan and cannot be used with --execute")
    named = frozenset(getattr(arguments, "brokers", ()))
    constraints = Constraints(
        drained=named if arguments.command == "drain-broker" else frozenset(),
        added=named if arguments.command == "add-broker" else frozenset(),
    )
    measured = None
    if arguments.metrics:
        measured = read_load(arguments.metrics.split(","), arguments.sample, threading.Event())
    cluster = read_cluster(admin, measured)
    planned = plan(cluster, constraints, arguments.tolerance)
    if wants_json:
        print_json(as_document(planned, arguments.throttle))
        return 0
    _show(planned, arguments)
    fixed = sum(each.fixed for each in cluster.partitions)
    if fixed:
        print(f"{fixed} partitions have no leader and stay where they are.")
    if executes and planned.reassignments:
        return _execute(admin, planned, arguments)
    return 0


def _show(planned: Plan, arguments: argparse.Namespace) -> None:
    from moldau.balance.machine.report import bars, bytes_text, load_rows, summary

    headers, *rows = load_rows(planned)
    table = Table(*headers, plain=aligned)
    for row in rows:
        table.add(*row)
    table.show()
    print()
    for line in bars(planned):
        print(line)
    print()
    if planned.reassignments:
        listed = Table("PARTITION", "FROM", "TO", "BYTES", "REASON", plain=aligned)
        for each in planned.reassignments[:_ROWS_MAX]:
            before, after = (",".join(map(str, side)) for side in (each.before, each.after))
            name = f"{each.topic}-{each.partition}"
            listed.add(name, before, after, bytes_text(each.bytes_moved), each.reason)
        listed.show()
        if len(planned.reassignments) > _ROWS_MAX:
            print(f"... and {len(planned.reassignments) - _ROWS_MAX} more; --json prints all")
        print()
    for line in summary(planned, arguments.throttle):
        print(line)
    if not arguments.metrics:
        print("Traffic was not measured (--metrics): disk, replicas and leaders are balanced.")
    for line in planned.unmet[:_ROWS_MAX]:
        print(f"Not reached: {line}.")


# Moves.


def _execute(admin: Admin, planned: Plan, arguments: argparse.Namespace) -> int:
    from moldau.balance.executing import Progress, carry_out

    def report(progress: Progress) -> None:
        print_now(
            f"{progress.done} of {progress.total} partitions are done, "
            f"{progress.moving} in progress"
        )

    stop = threading.Event()
    with Signals(stop.set) as signals:
        outcome = carry_out(
            admin,
            planned.reassignments,
            throttle=arguments.throttle,
            batch=arguments.batch,
            seconds_max=arguments.hours * 3600,
            stop=stop,
            report=report,
        )
    for line in outcome.skipped:
        print(f"Skipped: {line}")
    left = outcome.cancelled + outcome.not_started
    if left:
        print(
            f"Stopped: {outcome.done} partitions are done, {outcome.cancelled} were cancelled, "
            f"{outcome.not_started} were not started. Throttles are removed."
        )
        return signals.exit_code or 1
    print(f"Done: {outcome.done} partitions. Preferred leaders are elected.")
    return 1 if outcome.skipped else 0


def _run(admin: Admin, arguments: argparse.Namespace) -> int:
    from moldau.balance.continuing import RunSettings, Stopped, balance_on
    from moldau.balance.machine.continuous import Bounds

    hours = arguments.hours
    settings = RunSettings(
        interval_s=arguments.interval,
        bounds=Bounds(arguments.max_moves, arguments.max_bytes, max(0.0, arguments.cool_down)),
        throttle=arguments.throttle,
        batch=arguments.batch,
        tolerance=arguments.tolerance,
        drained=frozenset(arguments.drain),
        pages=arguments.metrics.split(",") if arguments.metrics else (),
        sample_s=arguments.sample,
        rounds_max=arguments.rounds,
        seconds_max=float("inf") if hours is None else hours * 3600,
    )
    stop = threading.Event()
    with Signals(stop.set) as signals:
        try:
            moved = balance_on(
                admin, settings, stop=stop, say=lambda text: print_now(f"{_clock()} {text}")
            )
        except Stopped as error:
            raise Failure(str(error)) from None
    print(f"Ended: {moved} rounds moved something. Throttles are removed.")
    return signals.exit_code


def _clock() -> str:
    return time.strftime("%H:%M:%S")


def _status(admin: Admin, arguments: argparse.Namespace) -> int:
    from moldau.balance.executing import copied

    found = copied(admin)
    if arguments.json:
        print_json([each._asdict() for each in found])
        return 0
    if not found:
        print("No partition is being reassigned.")
        return 0
    from moldau.balance.machine.report import bytes_text

    table = Table("PARTITION", "FROM", "TO", "COPIED", "OF", plain=aligned)
    for each in found:
        sides = (",".join(map(str, side)) for side in (each.removing, each.adding))
        name = f"{each.topic}-{each.partition}"
        table.add(name, *sides, bytes_text(each.copied), bytes_text(each.size))
    table.show()
    return 0


def _stop(admin: Admin) -> int:
    from moldau.balance.executing import stop_all

    count = stop_all(admin)
    print(f"{count} reassignments were cancelled, and throttles are removed.")
    return 0
