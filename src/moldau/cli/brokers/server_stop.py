"""`moldau server-stop`: its options, those of kafka-server-stop."""

from __future__ import annotations

import argparse

from moldau.cli.support.arguments import Parser

__all__ = ["add_arguments", "run"]


def add_arguments(parser: Parser) -> None:
    parser.description = "stop the brokers of this machine as kafka-server-stop.sh does"
    parser.add_argument(
        "--process-role", choices=("broker", "controller"), help="only nodes with just this role"
    )
    parser.add_argument("--node-id", type=int, metavar="N", help="only the node with this id")


def run(arguments: argparse.Namespace) -> int:
    from moldau.cli.nodes.stop import run_server_stop

    return run_server_stop(arguments)
