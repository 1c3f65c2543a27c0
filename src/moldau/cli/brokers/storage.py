"""`moldau storage`: its options, those of kafka-storage. `cli/nodes/storage.py` does the work."""

from __future__ import annotations

import argparse

from moldau.cli.support.arguments import Commands, Parser

__all__ = ["add_arguments", "run"]

_FORMAT_EXAMPLES = """\
examples:
  moldau storage format --standalone -c server.properties \\
    -t $(moldau storage random-uuid)
  moldau storage format -c server.properties -t ID --release-version 4.0
"""

_EXAMPLES = """\
examples:
  moldau storage random-uuid
  moldau storage format -c server.properties -t ID --standalone
  moldau storage info -c server.properties
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    parser.description = "format the log directories of a node, or show what they contain"
    commands = parser.add_commands()
    info = commands.add("info", "show the state of the log directories of this node")
    _add_config(info)
    _add_format(commands)
    mapping = commands.add("version-mapping", "print the feature levels of a release")
    mapping.add_argument(
        "--release-version",
        "-r",
        metavar="RELEASE",
        help="release, from 3.3-IV3 to 4.3-IV0 (default: 4.3-IV0)",
    )
    dependencies = commands.add(
        "feature-dependencies", "print the features that a feature level depends on"
    )
    dependencies.add_argument(
        "--feature",
        "-f",
        action="append",
        required=True,
        metavar="NAME=LEVEL",
        help="feature and level, e.g. metadata.version=25; may be repeated",
    )
    commands.add("random-uuid", "print a random ID, for example for a new cluster")


def _add_config(parser: Parser) -> None:
    parser.add_argument(
        "--config", "-c", required=True, metavar="FILE", help="Kafka configuration file of the node"
    )


def _add_format(commands: Commands) -> None:
    parser = commands.add(
        "format", "format the log directories of this node", epilog=_FORMAT_EXAMPLES
    )
    _add_config(parser)
    parser.add_argument("--cluster-id", "-t", required=True, metavar="ID", help="ID of the cluster")
    parser.add_argument(
        "--add-scram",
        "-S",
        action="append",
        default=[],
        metavar="CREDENTIAL",
        help="add a SCRAM user, e.g. SCRAM-SHA-256=[name=alice,password=secret]; may be repeated",
    )
    parser.add_argument(
        "--ignore-formatted",
        "-g",
        action="store_true",
        help="skip directories that are already formatted",
    )
    parser.add_argument(
        "--release-version",
        "-r",
        metavar="RELEASE",
        help="release whose feature levels to use, 3.3-IV3 to 4.3-IV0 (default: 4.3-IV0)",
    )
    parser.add_argument(
        "--feature",
        "-f",
        action="append",
        default=[],
        metavar="NAME=LEVEL",
        help="level of a feature, e.g. kraft.version=1; may be repeated",
    )
    _add_quorum(parser)


def _add_quorum(parser: Parser) -> None:
    quorum = parser.add_mutually_exclusive_group()
    quorum.add_argument(
        "--standalone",
        "-s",
        action="store_true",
        help="this controller forms the quorum alone; others can join later",
    )
    quorum.add_argument(
        "--no-initial-controllers",
        "-N",
        action="store_true",
        help="this node joins a quorum that was formatted on another node",
    )
    quorum.add_argument(
        "--initial-controllers",
        "-I",
        metavar="VOTERS",
        help="the first voters, as id@host:port:directory,...; the same on all nodes",
    )


def run(arguments: argparse.Namespace) -> int:
    from moldau.cli.nodes import storage

    commands = {
        "format": storage.run_format,
        "info": storage.run_info,
        "random-uuid": storage.run_random_uuid,
        "version-mapping": storage.run_version_mapping,
        "feature-dependencies": storage.run_feature_dependencies,
    }
    return commands[arguments.command](arguments)
