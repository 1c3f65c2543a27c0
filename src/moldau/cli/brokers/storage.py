"""`moldau storage`: its options, those of kafka-storage. `cli/nodes/storage.py` does the work."""

from __future__ import annotations

import argparse

from moldau.cli.support.arguments import Commands, Parser

__all__ = ["add_arguments", "run"]

_FORMAT_EXAMPLES = """\
examples:
  moldau storage format -c server.properties -t $(moldau storage random-uuid) --standalone
  moldau storage format -c server.properties -t ID --release-version 4.0 --ignore-formatted
"""


def add_arguments(parser: Parser) -> None:
    parser.description = "format and inspect storage as kafka-storage.sh does"
    commands = parser.add_commands()
    info = commands.add("info", "tell about the log directories of this node")
    _add_config(info)
    _add_format(commands)
    mapping = commands.add(
        "version-mapping", "look up the feature levels of a release; by default of the latest"
    )
    mapping.add_argument("--release-version", "-r", help="release, 3.3-IV3 to 4.3-IV0")
    dependencies = commands.add("feature-dependencies", "look up what a level of a feature needs")
    dependencies.add_argument(
        "--feature",
        "-f",
        action="append",
        required=True,
        metavar="NAME=LEVEL",
        help="feature and level, e.g. metadata.version=25; may be given several times",
    )
    commands.add("random-uuid", "print a random id, as for a new cluster")


def _add_config(parser: Parser) -> None:
    parser.add_argument(
        "--config", "-c", required=True, metavar="FILE", help="the Kafka configuration file"
    )


def _add_format(commands: Commands) -> None:
    parser = commands.add(
        "format", "format the log directories of this node", epilog=_FORMAT_EXAMPLES
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
    _add_quorum(parser)


def _add_quorum(parser: Parser) -> None:
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
