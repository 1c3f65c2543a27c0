"""One boot of the storage of a node: the real log manager and cleaner over the simulated disk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from random import Random

from moldau.broker.config import LogConfig
from moldau.broker.log.cleaner.compaction import run as run_job
from moldau.broker.log.cleaner.job import CleanEvent, CleanJob
from moldau.broker.log.cleaner.shell import Cleaner
from moldau.broker.log.disk import Disk
from moldau.broker.log.manager import LogManager
from moldau.sim.disk import Stopped
from moldau.sim.world import World

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
PRODUCER_ID_EXPIRATION_MS = 10 * 365 * 86_400_000


class CleanerSettings:
    """What the cleaner asks of a broker's configuration."""

    log_cleaner_enable = True
    log_cleaner_threads = 1
    log_cleaner_backoff_ms = 1000
    log_cleaner_dedupe_buffer_size = 1 << 20
    log_cleaner_io_buffer_load_factor = 0.9
    log_cleaner_io_buffer_size = 1 << 16
    log_cleaner_io_max_bytes_per_second = 1.7e308


class SlowWorker:
    """Compacts in place, with pauses between segments in which anything may happen."""

    def __init__(self, disk: Disk, random: Random) -> None:
        self._disk = disk
        self._random = random

    async def clean(self, job: CleanJob) -> AsyncGenerator[CleanEvent, None]:
        for event in run_job(CleanJob.decode(job.encode()), self._disk, lambda _count: None):
            if self._random.random() < 0.5:
                await asyncio.sleep(self._random.random())
            yield event

    async def kill(self) -> None:
        """It does nothing between its events."""

    async def close(self) -> None:
        """It holds nothing."""


class Node:
    def __init__(self, world: World, paths: list[str]) -> None:
        self.world = world
        self.disk = world.platter.start()
        self.background = world.background()
        self.manager = LogManager(
            paths,
            disk=self.disk,
            background=self.background,
            now_ms=world.now_ms,
            random_bytes=world.bytes_random.randbytes,
            producer_id_expiration_ms=PRODUCER_ID_EXPIRATION_MS,
        )
        # A few logs are many here, so that runs see both ways to stop.
        self.manager.closing.synced_singly_max = 1
        self.cleaner = Cleaner(
            self.manager,
            CleanerSettings(),
            world.now_ms,
            make_worker=lambda: SlowWorker(self.disk, world.bytes_random),
        )
        self._tasks: list[asyncio.Task[object]] = []

    @property
    def alive(self) -> bool:
        return self.disk.alive

    def start(self, config_for: Callable[[str], LogConfig]) -> None:
        self.manager.open_dirs(cluster_id=CLUSTER_ID, node_id=1)
        self.manager.load(config_for)

    def clean_later(self, topic: str, index: int) -> None:
        self._tasks = [task for task in self._tasks if not task.done() or task.exception()]
        self._tasks.append(self.world.loop.create_task(self.cleaner.clean_now(topic, index)))

    def check_tasks(self) -> None:
        """Raise what a finished task has raised."""
        for task in self._tasks:
            if task.done() and not task.cancelled():
                error = task.exception()
                if error is not None and not isinstance(error, Stopped):
                    raise error

    async def end_tasks(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def stop(self) -> None:
        """A clean stop. The process ends when its queued system calls have been made."""
        await self.end_tasks()
        self.manager.close(broker_epoch=7)
        self.background.finish()
