"""Slow system calls in virtual time: they begin later, take a while and end in any order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

from moldau.broker.log.background import Done
from moldau.sim.disk import SimDisk, Stopped

T = TypeVar("T")

DELAY_S_MAX = 5.0


class SimBackground:
    """`moldau.broker.log.background.Background` for one boot. When its process has stopped,
    work that has not begun never does, and the outcome of the rest is dropped."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        random: Random,
        disk: SimDisk,
        slowness: Callable[[], float] = lambda: 1.0,
        *,
        straggling: float = 0.1,
        straggle_s: float = 5.0,
    ) -> None:
        """`straggling` is how often something takes as long as `straggle_s`."""
        self._loop = loop
        self._random = random
        self._disk = disk
        self._slowness = slowness
        self._straggling = straggling
        self._straggle_s = straggle_s
        self._waiting: dict[int, Callable[[], object]] = {}
        self._next_id = 0

    def _delay_s(self) -> float:
        random = self._random
        scale = self._straggle_s if random.random() < self._straggling else 0.002
        return min(random.random() * scale * self._slowness(), DELAY_S_MAX)

    def submit(self, work: Callable[[], object], done: Done) -> None:
        job = self._next_id
        self._next_id += 1
        self._waiting[job] = work
        self._loop.call_later(self._delay_s(), self._begin, job, done)

    def _begin(self, job: int, done: Done) -> None:
        work = self._waiting.pop(job, None)
        if work is None or not self._disk.alive:
            return
        error: BaseException | None = None
        try:
            work()
        except Stopped:
            return
        except Exception as raised:
            error = raised
        self._loop.call_later(self._delay_s(), self._end, done, error)

    def _end(self, done: Done, error: BaseException | None) -> None:
        if self._disk.alive:
            try:
                done(error)
            except Stopped:
                return

    async def run(self, work: Callable[..., T], *args: Any) -> T:
        if not self._disk.alive:
            raise Stopped
        future: asyncio.Future[T] = self._loop.create_future()
        results: list[T] = []

        def done(error: BaseException | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(results[0])
            else:
                future.set_exception(error)

        self.submit(lambda: results.append(work(*args)), done)
        return await future

    def finish(self) -> None:
        """What a process does when it ends in order: the queued work still runs, in its order."""
        waiting, self._waiting = self._waiting, {}
        for work in waiting.values():
            try:
                work()
            except OSError:
                continue
