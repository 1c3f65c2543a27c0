"""The `moldau` command: which words it knows, and what each calls.

Commands are imported when they run, so that `moldau --help` and a broker's start pay for nothing
they do not use. Exit codes: 0 done, 1 refused or failed, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from moldau import __version__
from moldau.cli.arguments import Parser

__all__ = ["main"]

_DESCRIPTION = """\
Moldau, the Kafka platform in one pip install.

Any Kafka client can talk to what `moldau start` starts."""

_EXAMPLES = """\
examples:
  moldau start                                  a broker on 127.0.0.1:9092, data in ./moldau-data
  moldau start --port 19092 --data /var/moldau  the same elsewhere
  moldau start server.properties                with a Kafka configuration file
  moldau start --override num.partitions=3      with single settings changed
  moldau cluster                                three nodes on 127.0.0.1:9092 to 9094
  moldau storage random-uuid                    an id for a new cluster

`moldau COMMAND --help` tells more about a command."""

_START_EXAMPLES = """\
examples:
  moldau start
  moldau start --port 19092 --data /var/moldau
  moldau start config/server.properties --override log.retention.hours=1
"""

_CLUSTER_DESCRIPTION = """\
run several nodes on this machine as one cluster, for development

Nodes 1 to 3 are brokers and controllers, further ones brokers. Clients connect to the ports
P, P+1, ...; controllers use the ports behind them. Every node has in DIR its data (node-N), its
configuration (node-N.properties) and its log (node-N.log). The first start formats the folders,
later ones continue with them. Ctrl-C stops all nodes, a second one kills them.

Beyond Kafka's defaults every topic, internal ones too, gets R replicas (default.replication.factor
and others), and with three or more, min.insync.replicas=2: acks=all survives the loss of a node."""

_CLUSTER_EXAMPLES = """\
examples:
  moldau cluster
  moldau cluster --brokers 5 --port 19092 --data /var/moldau
  moldau cluster --override num.partitions=6 --override log.retention.hours=1
  moldau cluster --brokers 1 --data /tmp/one --logs
"""

_FORMAT_EXAMPLES = """\
examples:
  moldau storage format -c server.properties -t $(moldau storage random-uuid) --standalone
  moldau storage format -c server.properties -t ID --release-version 4.0 --ignore-formatted
"""


def main(argv: Sequence[str] | None = None) -> int:
    parser = _build_parser()
    arguments = parser.parse(sys.argv[1:] if argv is None else argv)
    # Imported late: usage errors and --version need none of it.
    from moldau.cli.failures import Failure

    try:
        return _run(arguments)
    except Failure as failure:
        # The storage tool's lines are Kafka's, and scripts compare them.
        prefix = "moldau: " if arguments.action in ("start", "server-start", "cluster") else ""
        print(f"{prefix}{failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output went away, e.g. `| head`. Not an error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run(arguments: argparse.Namespace) -> int:
    match arguments.action:
        case "start":
            from moldau.cli.start import run_start

            return run_start(arguments)
        case "server-start":
            from moldau.cli.start import run_server_start

            return run_server_start(arguments)
        case "cluster":
            from moldau.cli.cluster import run_cluster

            return run_cluster(arguments)
        case "server-stop":
            from moldau.cli.stop import run_server_stop

            return run_server_stop(arguments)
        case action:
            from moldau.cli import storage

            commands = {
                "format": storage.run_format,
                "info": storage.run_info,
                "random-uuid": storage.run_random_uuid,
                "version-mapping": storage.run_version_mapping,
                "feature-dependencies": storage.run_feature_dependencies,
            }
            return commands[action](arguments)


def _build_parser() -> Parser:
    parser = Parser(prog="moldau", description=_DESCRIPTION, epilog=_EXAMPLES)
    parser.add_argument("--version", action="version", version=f"moldau {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_start(commands)
    _add_cluster(commands)
    _add_server_start(commands)
    _add_server_stop(commands)
    _add_storage(commands)
    return parser


def _add(commands: Any, name: str, action: str, help_text: str, **options: Any) -> Parser:
    parser: Parser = commands.add_parser(
        name, help=help_text, description=options.pop("description", help_text), **options
    )
    parser.set_defaults(action=action, parser=parser)
    return parser


def _add_override(parser: Parser) -> None:
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set one configuration key; may be given several times",
    )


def _add_start(commands: Any) -> None:
    parser = _add(
        commands,
        "start",
        "start",
        "start a broker, making ready whatever is missing",
        epilog=_START_EXAMPLES,
    )
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="a Kafka configuration file; without one, a single node for this machine",
    )
    parser.add_argument(
        "--port", type=int, metavar="P", help="port on 127.0.0.1 (default 9092; 0 picks a free one)"
    )
    parser.add_argument("--data", metavar="DIR", help="data folder (default ./moldau-data)")
    _add_override(parser)


def _add_cluster(commands: Any) -> None:
    parser = _add(
        commands,
        "cluster",
        "cluster",
        "run several nodes on this machine as one cluster, for development",
        description=_CLUSTER_DESCRIPTION,
        epilog=_CLUSTER_EXAMPLES,
    )
    parser.add_argument(
        "--brokers", type=int, metavar="N", help="how many (default 3, or as many as DIR has)"
    )
    parser.add_argument(
        "--port", type=int, metavar="P", help="port of the first (default 9092; 0 picks free ones)"
    )
    parser.add_argument("--data", metavar="DIR", help="data folder (default ./moldau-cluster)")
    parser.add_argument(
        "--replication", type=int, metavar="R", help="replicas of a topic (default min(3, N))"
    )
    parser.add_argument(
        "--logs", action="store_true", help="also show the nodes' logs here, by name"
    )
    _add_override(parser)


def _add_server_start(commands: Any) -> None:
    parser = _add(
        commands,
        "server-start",
        "server-start",
        "start a broker as kafka-server-start.sh does: the storage must be formatted",
        **_script_name(),
    )
    parser.add_argument("file", metavar="FILE", help="a Kafka configuration file")
    parser.add_argument("--version", action="version", version=__version__)
    _add_override(parser)


def _add_server_stop(commands: Any) -> None:
    parser = _add(
        commands,
        "server-stop",
        "server-stop",
        "stop the brokers of this machine as kafka-server-stop.sh does",
        **_script_name(),
    )
    parser.add_argument(
        "--process-role", choices=("broker", "controller"), help="only nodes with just this role"
    )
    parser.add_argument("--node-id", type=int, metavar="N", help="only the node with this id")


def _script_name() -> dict[str, str]:
    """The name the user called: the scripts in bin/ pass theirs on for usage texts."""
    name = os.environ.get("MOLDAU_SCRIPT")
    return {"prog": name} if name else {}


def _add_storage(commands: Any) -> None:
    storage = _add(
        commands,
        "storage",
        "storage",
        "format and inspect storage as kafka-storage.sh does",
        **_script_name(),
    )
    tools = storage.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    info = _add(tools, "info", "info", "tell about the log directories of this node")
    _add_config(info)
    _add_format(tools)
    mapping = _add(
        tools,
        "version-mapping",
        "version-mapping",
        "look up the feature levels of a release; by default of the latest",
    )
    mapping.add_argument("--release-version", "-r", help="release, 3.3-IV3 to 4.3-IV0")
    dependencies = _add(
        tools,
        "feature-dependencies",
        "feature-dependencies",
        "look up what a level of a feature needs",
    )
    dependencies.add_argument(
        "--feature",
        "-f",
        action="append",
        required=True,
        metavar="NAME=LEVEL",
        help="feature and level, e.g. metadata.version=25; may be given several times",
    )
    _add(tools, "random-uuid", "random-uuid", "print a random id, as for a new cluster")


def _add_config(parser: Parser) -> None:
    parser.add_argument(
        "--config", "-c", required=True, metavar="FILE", help="the Kafka configuration file"
    )


def _add_format(tools: Any) -> None:
    parser = _add(
        tools,
        "format",
        "format",
        "format the log directories of this node",
        epilog=_FORMAT_EXAMPLES,
    )
    _add_config(parser)
    parser.add_argument("--cluster-id", "-t", required=True, metavar="ID", help="the cluster's id")
    parser.add_argument(
        "--add-scram",
        "-S",
        action="append",
        default=[],
        metavar="CREDENTIAL",
        help="a SCRAM user to start with, e.g. 'SCRAM-SHA-256=[name=alice,password=secret]'",
    )
    parser.add_argument(
        "--ignore-formatted",
        "-g",
        action="store_true",
        help="pass over directories that are formatted already",
    )
    parser.add_argument(
        "--release-version", "-r", help="release to start with, 3.3-IV3 to 4.3-IV0 (the default)"
    )
    parser.add_argument(
        "--feature",
        "-f",
        action="append",
        default=[],
        metavar="NAME=LEVEL",
        help="level of one feature, e.g. kraft.version=1; may be given several times",
    )
    quorum = parser.add_mutually_exclusive_group()
    quorum.add_argument(
        "--standalone",
        "-s",
        action="store_true",
        help="this controller alone forms the quorum; others may join later",
    )
    quorum.add_argument(
        "--no-initial-controllers",
        "-N",
        action="store_true",
        help="this node joins a quorum that is formatted elsewhere",
    )
    quorum.add_argument(
        "--initial-controllers",
        "-I",
        metavar="VOTERS",
        help="the first voters, id@host:port:directory,...; the same on all nodes",
    )
