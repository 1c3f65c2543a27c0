"""`moldau stop`: ends what `moldau up` runs. All data stays."""

from __future__ import annotations

import argparse
import os
import time
from typing import TYPE_CHECKING, Final

from moldau.cli.support.arguments import Parser

if TYPE_CHECKING:
    from moldau.cli.platform.folder import PlatformFolder

__all__ = ["add_arguments", "run", "stop_platform"]

_EXAMPLES = """\
examples:
  moldau stop
  moldau stop --data /var/moldau
"""
_SECONDS_MAX: Final = 180.0
_POLL_S: Final = 0.05


def add_arguments(parser: Parser) -> None:
    from moldau.cli.platform.options import add_data

    parser.epilog = _EXAMPLES
    add_data(parser)


def run(arguments: argparse.Namespace) -> int:
    from moldau.cli.platform.folder import find_platform
    from moldau.cli.platform.options import require_platform

    folder = find_platform(arguments.data, os.environ)
    require_platform(folder)
    if stop_platform(folder):
        print("The platform has stopped; all data is on disk.")
    else:
        print(f"The platform in {folder.path} is not running.")
    return 0


def stop_platform(folder: PlatformFolder) -> bool:
    """False if it does not run. Returns when every process has ended."""
    import signal

    from moldau.cli.support.failures import Failure
    from moldau.spark.runtime.processes import is_running

    deadline = time.monotonic() + _SECONDS_MAX
    process: tuple[int, str] | None = None
    # The lock is released a moment before the process has ended.
    while folder.is_locked() or (process is not None and is_running(*process)):
        status = folder.status()
        # One that is just starting has not written its state.
        if status is not None and process is None:
            process = int(status["pid"]), str(status["mark"])
            os.kill(process[0], signal.SIGTERM)
        if time.monotonic() > deadline:
            raise Failure(
                f"the platform in {folder.path} has not stopped in {_SECONDS_MAX:.0f} s. "
                f"`kill -9 {status['pid'] if status else 'PROCESS'}` ends it and all its services"
            )
        time.sleep(_POLL_S)
    return process is not None
