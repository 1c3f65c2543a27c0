"""`moldau logs`: what a service of the platform has printed."""

from __future__ import annotations

import argparse
import os
import time
from typing import TYPE_CHECKING, Final

from moldau.cli.support.arguments import Parser

if TYPE_CHECKING:
    from moldau.cli.platform.folder import PlatformFolder

__all__ = ["add_arguments", "run"]

_EXAMPLES = """\
examples:
  moldau logs registry
  moldau logs connect --follow
  moldau logs broker --lines 500
"""
_LINES: Final = 100
_POLL_S: Final = 0.2


def add_arguments(parser: Parser) -> None:
    from moldau.cli.platform.options import add_data

    parser.epilog = _EXAMPLES
    parser.add_argument(
        "service",
        metavar="SERVICE",
        help="broker, registry, rest, connect, sql, console, mqtt, pipelines, spark, or up for "
        "`moldau up` itself",
    )
    parser.add_argument(
        "--lines", "-n", type=int, default=_LINES, metavar="N", help=f"last lines ({_LINES})"
    )
    parser.add_argument(
        "--follow", "-f", action="store_true", help="go on with what is printed until Ctrl-C"
    )
    add_data(parser)


def run(arguments: argparse.Namespace) -> int:
    from moldau.cli.platform.folder import find_platform
    from moldau.cli.platform.options import require_platform
    from moldau.cli.support.failures import Failure

    folder = find_platform(arguments.data, os.environ)
    require_platform(folder)
    log = folder.log(arguments.service)
    if not log.exists():
        known = ", ".join(folder.log_names()) or "none yet"
        raise Failure(f"{arguments.service} has no log in {folder.path}. Logs: {known}")
    for line in folder.last_lines(arguments.service, max(0, arguments.lines)):
        print(line)
    if arguments.follow:
        _follow(folder, arguments.service)
    return 0


def _follow(folder: PlatformFolder, service: str) -> None:
    from moldau.cli.support.output import print_now

    log = folder.log(service)
    position = log.stat().st_size
    while True:
        size = log.stat().st_size
        # A log that has reached its limit starts again.
        position = 0 if size < position else position
        if size > position:
            with log.open("rb") as file:
                file.seek(position)
                chunk = file.read()
            position += len(chunk)
            print_now(chunk.decode(errors="replace"), end="")
        time.sleep(_POLL_S)
