"""Standard output that may be closed by its reader, as in `moldau start | head -3`.

A tool then ends quietly, as other Unix tools do. What runs on, or starts something that does (a
node, a cluster, Spark), continues without output: whether it is read must not matter.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["CLOSED_PIPE_STATUS", "discard", "flushed", "print_now", "surviving_closed_output"]

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
    _to_nowhere(stream.fileno())


def _to_nowhere(descriptor: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, descriptor)
    finally:
        os.close(nowhere)


@contextmanager
def surviving_closed_output() -> Iterator[None]:
    """Meanwhile, writing to standard output or standard error never fails in this process.

    What their readers do not take any more is dropped: from any thread, by `print` or by a logging
    handler.
    """
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _surviving(sys.stdout), _surviving(sys.stderr)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = before


def _surviving(stream: TextIO) -> TextIO:
    try:
        descriptor = stream.fileno()
        stream.flush()
    except BrokenPipeError:
        discard(stream)
    except (AttributeError, OSError, ValueError):
        # Not a file: a test's buffer, or closed before the start.
        return stream
    raw = io.BufferedWriter(_Unbreakable(descriptor))
    # Whole lines at once: servers print few of them, and readers should see each.
    return io.TextIOWrapper(
        raw, encoding=stream.encoding, errors=stream.errors, line_buffering=True
    )


class _Unbreakable(io.FileIO):
    """A descriptor that is written to for as long as there is a reader."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w", closefd=False)

    def write(self, data: ReadableBuffer, /) -> int:
        with suppress(BrokenPipeError):
            return super().write(data)
        _to_nowhere(self.fileno())
        return len(memoryview(data))
