"""Moves replicas between this broker's log directories while they are written and read.

A move copies the log into a future log in the other directory, a piece at a time so that clients
are served in between, and swaps the two in one step on the loop when nothing is left to copy.

Invariants: until the swap only the current log is served, a move that fails leaves it unchanged,
and what was durable before the swap is durable after it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from moldau.broker.log.log import Log
from moldau.broker.log.log_dirs import LogDir
from moldau.broker.log.manager import LogManager
from moldau.broker.log.moves import copy_step
from moldau.broker.replication.manager import ReplicaManager
from moldau.times import WallMs
from moldau.wire.errors import ApiError, ErrorCode

logger = logging.getLogger(__name__)

# A log that is flushed with every append stays ahead of its copy's flushes; then the last one
# happens in the swap, over the little that has come since.
FLUSH_ROUNDS_MAX = 8


class LogMoves:
    def __init__(
        self, logs: LogManager, replicas: ReplicaManager, now_ms: Callable[[], WallMs]
    ) -> None:
        self._logs = logs
        self._replicas = replicas
        self._now_ms = now_ms
        self._tasks: dict[tuple[str, int], asyncio.Task[None]] = {}

    def start(self, topic: str, index: int, path: str) -> None:
        """Begin to move a replica to the log directory `path`; ApiError if that is not possible."""
        directory = self._logs.dir_by_path(path)
        if directory is None:
            known = ", ".join(each.path for each in self._logs.dirs)
            raise ApiError(
                ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is not in log.dirs of this broker ({known})"
            )
        if directory.failure is not None:
            raise directory.failure.again()
        current = self._replicas.get(topic, index).log
        if current.dir_state.failure is not None:
            raise current.dir_state.failure.again()
        self._cancel(topic, index)
        if current.dir_state is directory:
            self._logs.drop_future_log(topic, index)
            return
        future = self._logs.create_future_log(topic, index, directory)
        task = asyncio.get_running_loop().create_task(self._move(topic, index, future))
        self._tasks[topic, index] = task

    def resume(self) -> None:
        """Continue the moves that a restart interrupted."""
        for partition in self._replicas.partitions():
            future = self._logs.get_future_log(partition.topic, partition.index)
            if future is not None and isinstance(future.dir_state, LogDir):
                self.start(partition.topic, partition.index, future.dir_state.path)

    async def stop(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _cancel(self, topic: str, index: int) -> None:
        task = self._tasks.pop((topic, index), None)
        if task is not None:
            task.cancel()

    async def _move(self, topic: str, index: int, future: Log) -> None:
        try:
            if await self._catch_up(topic, index, future):
                self._replicas.move_to_future_log(topic, index, self._now_ms())
                logger.info("%s-%d is now in %s", topic, index, future.dir_state.path)
        except ApiError as error:
            # The partition is gone, or one of the two log directories.
            logger.error("%s-%d was not moved: %s", topic, index, error.message)
            if self._logs.get_future_log(topic, index) is future:
                self._logs.drop_future_log(topic, index)
        finally:
            if self._tasks.get((topic, index)) is asyncio.current_task():
                del self._tasks[topic, index]

    async def _catch_up(self, topic: str, index: int, future: Log) -> bool:
        """Copy until the two may be swapped; False if the move was cancelled in the meantime."""
        flush_rounds = 0
        while self._logs.get_future_log(topic, index) is future:
            current = self._replicas.get(topic, index).log
            now_ms = self._now_ms()
            if not copy_step(current, future, now_ms=now_ms):
                # Clients are served between two pieces.
                await asyncio.sleep(0)
            elif flush_rounds and future.recovery_point >= current.recovery_point:
                # At least one flush has covered all but the little that has come since: the
                # swap flushes that in place.
                return True
            elif flush_rounds < FLUSH_ROUNDS_MAX:
                flush_rounds += 1
                await future.flush_async(now_ms=now_ms)
            else:
                future.flush(now_ms=now_ms)
        return False
