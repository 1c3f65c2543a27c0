"""`moldau learn`: a guided course in the terminal, with exercises on the reader's own broker."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from moldau.cli.support.addresses import (
    DEFAULT_SERVERS,
    cluster_settings,
    named_cluster,
    running_cluster,
)
from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import add_json
from moldau.cli.support.failures import Failure
from moldau.cli.support.tables import Table, aligned, print_json

if TYPE_CHECKING:
    from moldau.learning.machine.progress import Progress

__all__ = ["add_arguments", "run"]

_DESCRIPTION = """\
a guided course: exercises on your own broker, set and checked

Without a command it is a tour in this terminal: it shows an exercise, runs the lines that you type
in a shell, and understands check, hint, solve, next, list and quit. Exercises use the broker that
other commands would use; if none answers, one is started, as are the services that an exercise
needs. They go on running until `moldau learn stop`. Progress, data and files are in
~/.local/state/moldau/learn (XDG_STATE_HOME replaces ~/.local/state)."""

_EXAMPLES = """\
examples:
  moldau learn                 the tour
  moldau learn list
  moldau learn start 1         by number or name
  moldau learn check
  moldau learn hint
  moldau learn solve           run the solution
  moldau learn reset 1         delete its topics and begin again
  moldau learn stop            stop what the course has started
"""


def add_arguments(parser: Parser) -> None:
    parser.description = _DESCRIPTION
    parser.epilog = _EXAMPLES
    commands = parser.add_commands(required=False)
    add_json(commands.add("list", "list the exercises and your progress"))
    start = commands.add("start", "start what an exercise needs and show it")
    start.add_argument(
        "exercise", nargs="?", metavar="N", help="number or name (default: the next)"
    )
    commands.add("check", "check the current exercise; exit status 1 if something is missing")
    commands.add("hint", "show a hint for the current exercise")
    commands.add("solve", "run the solution of the current exercise")
    reset = commands.add("reset", "begin an exercise again, or the whole course")
    reset.add_argument(
        "exercise", nargs="?", metavar="N", help="number or name (default: the whole course)"
    )
    commands.add("stop", "stop the services that the course has started")
    pid = commands.add("pid", "print the process id of a node of the course's cluster")
    pid.add_argument("node", type=int, metavar="NODE", help="number of the node: 1, 2 or 3")


def run(arguments: argparse.Namespace) -> int:
    # Imported late: --help needs none of it.
    from moldau.cli.learning.lesson import Lesson
    from moldau.learning.services import StartError

    lesson = Lesson(os.environ, _own_broker())
    try:
        match arguments.command:
            case None:
                from moldau.cli.learning.tour import tour

                return tour(lesson)
            case "list":
                _list(lesson.progress, as_json=arguments.json)
            case "start":
                lesson.start(arguments.exercise)
            case "check":
                return 0 if lesson.check() else 1
            case "hint":
                lesson.hint()
            case "solve":
                return lesson.solve()
            case "reset":
                lesson.reset(arguments.exercise)
            case "stop":
                lesson.services.stop()
            case _:
                return _pid(lesson.services.node_pid(arguments.node), arguments.node)
    except StartError as error:
        raise Failure(str(error)) from None
    return 0


def _own_broker() -> str | None:
    """The address of the reader's broker if one answers there."""
    protocol = cluster_settings(os.environ).get("security.protocol", "PLAINTEXT")
    if protocol != "PLAINTEXT":
        raise Failure(
            f"the profile in use has security.protocol={protocol}, and the exercises' clients have "
            "no security settings: set MOLDAU_BOOTSTRAP_SERVERS to another broker, or choose "
            "another profile"
        )
    found = named_cluster(os.environ) or running_cluster(os.environ)
    address = DEFAULT_SERVERS if found is None else found.bootstrap_servers
    return address if found is not None or _answers(address) else None


def _answers(address: str) -> bool:
    import socket

    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True


def _list(progress: Progress, *, as_json: bool) -> None:
    from moldau.learning.machine.course import COURSE

    if as_json:
        print_json(
            [
                {"number": number, "name": each.name, "state": progress.state_of(each.name)}
                for number, each in enumerate(COURSE, 1)
            ]
        )
        return
    table = Table("N", "NAME", "EXERCISE", "MINUTES", "STATE", plain=aligned)
    for number, each in enumerate(COURSE, 1):
        state = progress.state_of(each.name)
        style = {"done": "green", "current": "bold"}.get(state)
        table.add(number, each.name, each.title, each.minutes, state, style=style)
    table.show()


def _pid(pid: int | None, node: int) -> int:
    if pid is None:
        raise Failure(f"node {node} is not running: moldau learn start faults starts the cluster")
    print(pid)
    return 0
