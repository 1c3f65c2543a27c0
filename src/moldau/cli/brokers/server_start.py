"""`moldau server-start`: its options, those of kafka-server-start."""

from __future__ import annotations

import argparse

from moldau.cli.brokers.start import add_override
from moldau.cli.support.arguments import Parser

__all__ = ["add_arguments", "run"]


def add_arguments(parser: Parser) -> None:
    parser.description = (
        "start a broker as kafka-server-start.sh does: the storage must be formatted"
    )
    parser.add_argument("file", metavar="FILE", help="a Kafka configuration file")
    add_override(parser)


def run(arguments: argparse.Namespace) -> int:
    from moldau.cli.nodes.start import run_server_start

    return run_server_start(arguments)
