"""The end of a program that did not close its producers: what is buffered is still sent.

Invariants: waiting at exit is bounded, by `EXIT_SECONDS_MAX` for all producers together; records
that could not be sent in that time are counted in a warning; a forked child does not send what its
parent has buffered.

Blocking producers are closed by a hook of the interpreter, while their threads still run, and in
processes of `multiprocessing`, which skip that hook, by a finalizer. One for asyncio cannot outlive
its event loop. The last thing that `asyncio.run` does before it closes the loop is to close
asynchronous generators, so such a producer keeps one, and it sends what is left there.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Protocol
from weakref import WeakSet

from moldau.client.producer.core import ProducerCore

__all__ = ["EXIT_SECONDS_MAX", "Leaver", "close_with_loop", "watch"]

_log = logging.getLogger(__name__)

EXIT_SECONDS_MAX = 10.0


class Leaver(Protocol):
    """A blocking producer, as it is seen at exit."""

    def leave(self, timeout: float) -> tuple[ProducerCore, Future[None]] | None:
        """Begin to close; None if it is closed already."""


class _Watch:
    """The producers of one process that were not closed."""

    def __init__(self) -> None:
        self.open: WeakSet[Leaver] = WeakSet()
        self.on_loops: WeakSet[ProducerCore] = WeakSet()
        self.pid = 0

    def register(self) -> None:
        if self.pid != os.getpid():
            # The first of this process; in a forked child those of the parent are not its own.
            self.pid = os.getpid()
            self.open, self.on_loops = WeakSet(), WeakSet()
            atexit.register(self.close_all)
            _before_end_of_child(self.close_all)

    def close_all(self) -> None:
        if self.pid != os.getpid():
            return
        started = time.monotonic()
        closing = [each.leave(EXIT_SECONDS_MAX) for each in list(self.open)]
        self.open = WeakSet()
        for core, closed in filter(None, closing):
            left_s = max(0.0, EXIT_SECONDS_MAX - (time.monotonic() - started))
            with suppress(Exception):
                # A second more than it takes itself, to give up in order.
                closed.result(left_s + 1)
            _warn_of(core, core.lost_at_close)
        for core in list(self.on_loops):
            if not core.path.closed:
                # Its event loop ended without a chance for it.
                _warn_of(core, core.unacknowledged_count())
        self.on_loops = WeakSet()


_watch = _Watch()


def watch(producer: Leaver) -> None:
    """Have a producer closed at the end of the process, unless it was closed before."""
    _watch.register()
    _watch.open.add(producer)


def _before_end_of_child(callback: Callable[[], None]) -> None:
    """In a process of `multiprocessing`: it ends without the hooks of `atexit`."""
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is None or multiprocessing.parent_process() is None:
        return
    from multiprocessing.util import Finalize

    Finalize(None, callback, exitpriority=0)


def _warn_of(core: ProducerCore, count: int) -> None:
    if count:
        _log.warning(
            "Producer %r was not closed: %d record%s not acknowledged within %g s and may be lost. "
            "Call flush() or close() before the program ends",
            core.settings.client_id,
            count,
            " was" if count == 1 else "s were",
            EXIT_SECONDS_MAX,
        )


async def close_with_loop(core: ProducerCore) -> AsyncGenerator[None, None]:
    """Started and kept by a producer for asyncio: closes it when the event loop is about to end."""
    _watch.register()
    _watch.on_loops.add(core)
    try:
        yield
    finally:
        if not core.path.closed:
            await core.close(EXIT_SECONDS_MAX)
            _warn_of(core, core.lost_at_close)
