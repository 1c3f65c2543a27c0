"""`moldau status`: the services of the platform that `moldau up` runs."""

from __future__ import annotations

import argparse
import os

from moldau.cli.support.arguments import Parser

__all__ = ["add_arguments", "run"]

_EXAMPLES = """\
examples:
  moldau status
  moldau status --json
"""


def add_arguments(parser: Parser) -> None:
    from moldau.cli.platform.options import add_data

    parser.epilog = _EXAMPLES
    add_data(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """The exit code is 0 if every service is up, 3 if nothing runs, as that of init scripts."""
    from moldau.cli.platform.folder import find_platform
    from moldau.cli.platform.view import status_lines
    from moldau.cli.support.tables import print_json

    folder = find_platform(arguments.data, os.environ)
    status = folder.status()
    if status is None:
        if arguments.json:
            print_json({"running": False, "data": str(folder.path)})
        elif folder.exists():
            print(f"The platform in {folder.path} is not running. `moldau up` starts it.")
        else:
            print(f"{folder.path} has no platform. `moldau up` starts one.")
        return 3
    if arguments.json:
        print_json({"running": True, **status})
    else:
        print("\n".join(status_lines(status)))
    return 0 if status["allUp"] else 1
