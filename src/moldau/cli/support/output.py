"""Standard output that may be closed by its reader, as in `moldau start | head -3`.

A tool then ends quietly, as other Unix tools do. A node continues without output: it must serve
clients whether or not its output is read.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TextIO

__all__ = ["CLOSED_PIPE_STATUS", "discard", "flushed", "print_now"]

#: The exit code that shells give to a program that SIGPIPE ended.
CLOSED_PIPE_STATUS = 128 + signal.SIGPIPE


def print_now(text: str, *, to: TextIO | None = None, end: str = "\n") -> None:
    """Print and flush; once the reader has closed the stream, print nothing any more."""
    stream = sys.stdout if to is None else to
    try:
        print(text, end=end, file=stream, flush=True)
    except BrokenPipeError:
        discard(stream)


def flushed(stream: TextIO) -> bool:
    """Write out what is buffered; False if its reader has closed it."""
    try:
        stream.flush()
    except BrokenPipeError:
        discard(stream)
        return False
    return True


def discard(stream: TextIO) -> None:
    """Send all output to /dev/null from now on, also when the interpreter exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, stream.fileno())
    finally:
        os.close(nowhere)
