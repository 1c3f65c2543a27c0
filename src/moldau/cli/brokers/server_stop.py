"""`moldau server-stop`: its options, those of kafka-server-stop."""

from __future__ import annotations

import argparse

from moldau.cli.support.arguments import Parser

__all__ = ["add_arguments", "run"]

_EXAMPLES = """\
examples:
  moldau server-stop
  moldau server-stop --node-id 1
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    parser.description = "stop the brokers and controllers that run on this machine"
    parser.add_argument(
        "--process-role",
        choices=("broker", "controller"),
        help="stop only nodes whose only role is this one",
    )
    parser.add_argument("--node-id", type=int, metavar="N", help="stop only the node with this ID")


def run(arguments: argparse.Namespace) -> int:
    from moldau.cli.nodes.stop import run_server_stop

    return run_server_stop(arguments)
