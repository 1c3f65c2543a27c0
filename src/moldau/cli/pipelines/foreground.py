"""`moldau spark start --foreground`: for containers and services, which end with their command.

A signal stops pipelines, control loop and Spark in order. If the control loop is lost, Spark is
stopped and the command fails, so that whoever runs it starts everything again; a lost Spark is
started again by the control loop.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from moldau.cli.support.failures import ToolError

__all__ = ["stay", "until_signal"]

_LOOK_SECONDS = 1.0
_GONE_LOOKS = 10


@contextmanager
def until_signal() -> Iterator[threading.Event]:
    """The event is set by Ctrl-C, SIGTERM and SIGHUP."""
    ending = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        ending.set()

    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [(each, signal.signal(each, end)) for each in signals]
    try:
        yield ending
    finally:
        for each, handler in before:
            signal.signal(each, handler)


def stay(folder: Path, ending: threading.Event, stop: Callable[[], bool]) -> int:
    """Until a signal, `moldau spark stop`, or the end of the control loop."""
    from moldau.pipelines import daemon

    if daemon.status(folder).pid is None:
        stop()
        raise ToolError("--foreground needs a control loop: name the brokers, --bootstrap-server")
    gone = 0
    while not ending.wait(_LOOK_SECONDS):
        gone = gone + 1 if daemon.status(folder).pid is None else 0
        # `moldau spark stop` ends the loop first, then Spark.
        if gone >= _GONE_LOOKS and stop():
            raise ToolError(f"the control loop has ended unexpectedly, see {folder}/control.log")
        if gone >= _GONE_LOOKS:
            return 0
    stop()
    return 0
