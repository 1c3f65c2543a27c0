"""Where slow system calls run: never on the loop that serves clients.

`Background` is what the log needs of its host. Work runs elsewhere (only system calls
that give up the interpreter lock: fsync, unlink, copying), and its outcome comes back on
the loop, so that no log state is ever touched by two threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

Done = Callable[[BaseException | None], None]


class Background(Protocol):
    async def run(self, work: Callable[..., T], *args: Any) -> T:
        """Run `work(*args)` off the loop and give its result or raise its exception."""

    def submit(self, work: Callable[[], object], done: Done) -> None:
        """Run `work()` off the loop, then call `done(error or None)` on the loop."""


class InlineBackground:
    """Runs everything at once, in place: for tests, tools and simulated time."""

    async def run(self, work: Callable[..., T], *args: Any) -> T:
        return work(*args)

    def submit(self, work: Callable[[], object], done: Done) -> None:
        try:
            work()
        except Exception as error:
            done(error)
        else:
            done(None)


class ThreadBackground:
    """A few threads beside one asyncio loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, threads: int = 4) -> None:
        self._loop = loop
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="background")

    async def run(self, work: Callable[..., T], *args: Any) -> T:
        return await self._loop.run_in_executor(self._pool, work, *args)

    def submit(self, work: Callable[[], object], done: Done) -> None:
        def finished(future: Future[object]) -> None:
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(done, future.exception())

        self._pool.submit(work).add_done_callback(finished)

    def close(self) -> None:
        """Wait for what has been submitted; nothing more may be submitted."""
        self._pool.shutdown(wait=True)
