"""`moldau mirror`: copies topics and groups between clusters, and moves groups over."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import add_json
from moldau.cli.support.config_files import read_config_file
from moldau.cli.support.failures import Failure

if TYPE_CHECKING:
    from moldau.mirror.machine.settings import FlowName, FlowSettings

__all__ = ["add_arguments", "run"]

_EXAMPLES = """\
examples:
  moldau mirror start mm2.properties
  moldau mirror status mm2.properties
  moldau mirror failover mm2.properties --from A --to B --dry-run
  moldau mirror failback mm2.properties --from B --to A
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    commands = parser.add_commands()
    start = commands.add("start", "run the flows of a file until Ctrl-C")
    _add_file(start)
    start.add_argument(
        "--clusters",
        nargs="+",
        default=[],
        metavar="CLUSTER",
        help="only flows that write to these clusters (default: all)",
    )
    start.add_argument(
        "--metrics-port",
        type=int,
        metavar="P",
        help="port on 127.0.0.1 for /metrics; 0 chooses one (default: no metrics)",
    )
    status = commands.add("status", "show how far the flows are, by topic and group")
    _add_file(status)
    add_json(status)
    for name, what in (
        ("failover", "move groups to the copy of a cluster, at the same records"),
        ("failback", "move groups back to the cluster they came from"),
    ):
        _add_moving(commands.add(name, what))


def _add_file(command: Parser) -> None:
    command.add_argument("file", metavar="FILE", help="properties file with MirrorMaker 2's keys")


def _add_moving(command: Parser) -> None:
    _add_file(command)
    for option, what in (("--from", "that the groups leave"), ("--to", "that they move to")):
        command.add_argument(
            option, dest=option[2:] + "_", required=True, metavar="CLUSTER", help=f"cluster {what}"
        )
    command.add_argument(
        "--group",
        action="append",
        default=[],
        metavar="GROUP",
        help="only this group; may be repeated (default: all that the flow follows)",
    )
    command.add_argument(
        "--dry-run", action="store_true", help="print what would be committed; change nothing"
    )
    command.add_argument(
        "--without-source",
        action="store_true",
        help="do not ask the cluster that is left: it is lost. Uses its last checkpoints",
    )
    command.add_argument(
        "--wait",
        type=float,
        default=30.0,
        metavar="SECONDS",
        help="how long to wait for records that are not copied yet (default: %(default)s)",
    )
    command.add_argument(
        "--force",
        action="store_true",
        help="also move groups whose offset is not exact; they read some records again",
    )
    add_json(command)


def run(arguments: argparse.Namespace) -> int:
    if arguments.command == "start":
        return _start(arguments)
    from moldau.cli.services import mirror_groups

    if arguments.command == "status":
        return mirror_groups.status(arguments, flows(arguments.file))
    return mirror_groups.move(arguments, flows(arguments.file))


def flows(file: str, targets: list[str] | None = None) -> dict[FlowName, FlowSettings]:
    """The flows of a file; a Failure says what is wrong with it."""
    from moldau.config.errors import ConfigError
    from moldau.mirror.runner import read_flows

    try:
        return read_flows(read_config_file(file), targets or ())
    except ConfigError as error:
        raise Failure(f"{file}: {error}") from None


def _start(arguments: argparse.Namespace) -> int:
    found = flows(arguments.file, arguments.clusters)
    # Imported late: a wrong option should be reported before anything is loaded.
    from moldau.cli.services.serving import Runnable, serve
    from moldau.mirror.runner import Mirror

    def ready_text(service: Runnable) -> str:
        lines = ["The mirror is up."]
        for name, settings in found.items():
            does = "copies" if settings["enabled"] else "only sends heartbeats"
            once = ", exactly once" if settings.is_exactly_once and settings["enabled"] else ""
            lines.append(f"  {name}  {does}{once}")
        lines += [f"  metrics  {url}" for url in service.urls]
        lines += ["", f"Try it:  moldau mirror status {arguments.file}", "", "Ctrl-C stops it."]
        return "\n".join(lines)

    return serve(lambda: Mirror(found, metrics_port=arguments.metrics_port), ready_text)
