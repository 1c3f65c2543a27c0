"""`moldau server-start`: its options, those of kafka-server-start."""

from __future__ import annotations

import argparse

from moldau.cli.brokers.start import add_override
from moldau.cli.support.arguments import Parser

__all__ = ["add_arguments", "run"]

_EXAMPLES = """\
examples:
  moldau server-start server.properties
  moldau server-start server.properties --override log.retention.hours=1
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    parser.description = (
        "start a broker or controller from a configuration file. Its storage must be formatted: "
        "see `moldau storage format --help`."
    )
    parser.add_argument("file", metavar="FILE", help="Kafka configuration file")
    add_override(parser)


def run(arguments: argparse.Namespace) -> int:
    from moldau.cli.nodes.start import run_server_start

    return run_server_start(arguments)
