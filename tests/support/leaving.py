"""A program of a user that comes to its end and leaves its clients as they are."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Left", "leave"]

#: Far more than a process needs to end, far less than any client's timeout.
SECONDS_MAX = 20.0

_BEGIN = """
import sys, threading

where = {"bootstrap_servers": sys.argv[1]}

def ready():
    print("ready", flush=True)
    sys.stdin.readline()
"""


class Left(NamedTuple):
    """What became of the program; `problem` is None if it ended in time and without complaint."""

    problem: str | None
    stderr: str


def leave(script: str, bootstrap: str, when_ready: Callable[[], None] | None = None) -> Left:
    """Run a script that knows the cluster as `where` and calls `ready()` once; then `when_ready` is
    called here, and the script goes on to its end."""
    process = subprocess.Popen(
        [sys.executable, "-X", "dev", "-c", _BEGIN + script, bootstrap],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        said = process.stdout.readline()
        if said and when_ready is not None:
            when_ready()
        try:
            _, stderr = process.communicate("\n", timeout=SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            return Left("it does not end", process.communicate()[1])
    if said != "ready\n" or process.returncode != 0:
        return Left(f"it ended with {process.returncode}", stderr)
    if "Traceback" in stderr or "Exception ignored" in stderr:
        return Left("it complained", stderr)
    return Left(None, stderr)
