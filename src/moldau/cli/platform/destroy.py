"""`moldau destroy`: stops the platform and deletes all its data."""

from __future__ import annotations

import argparse
import os

from moldau.cli.support.arguments import Parser

__all__ = ["add_arguments", "run"]

_EXAMPLES = """\
examples:
  moldau destroy
  moldau destroy --yes --data /var/moldau
"""


def add_arguments(parser: Parser) -> None:
    from moldau.cli.platform.options import add_data

    parser.epilog = _EXAMPLES
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask")
    add_data(parser)


def run(arguments: argparse.Namespace) -> int:
    import sys

    from moldau.cli.platform.folder import find_platform
    from moldau.cli.platform.options import require_platform
    from moldau.cli.platform.stop import stop_platform
    from moldau.cli.support.failures import Failure

    folder = find_platform(arguments.data, os.environ)
    require_platform(folder)
    if not arguments.yes:
        if not sys.stdin.isatty():
            raise Failure(f"this deletes {folder.path} with all topics in it: add --yes")
        answer = input(f"Delete {folder.path} with all topics, schemas and pipelines? (y/n) ")
        if answer.strip().lower() not in ("y", "yes"):
            print("Nothing is deleted.")
            return 1
    stop_platform(folder)
    folder.destroy()
    print(f"{folder.path} is deleted.")
    return 0
