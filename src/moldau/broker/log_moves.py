"""Moves replicas between this broker's log folders while they are written and read.

A move copies the log into a future log in the other folder, a piece at a time so that clients get
their turn in between, and swaps the two in one step on the loop when nothing is left to copy.
What always holds: until the swap the current log is the only one that is served, and a move that
fails leaves it as it was.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from moldau.broker.log.log import Log
from moldau.broker.log.log_dirs import LogDir
from moldau.broker.log.manager import LogManager
from moldau.broker.replication.manager import ReplicaManager
from moldau.wire.errors import ApiError, ErrorCode

logger = logging.getLogger(__name__)

PIECE_BYTES = 1 << 20


class LogMoves:
    def __init__(
        self, logs: LogManager, replicas: ReplicaManager, clock_ms: Callable[[], int]
    ) -> None:
        self._logs = logs
        self._replicas = replicas
        self._clock_ms = clock_ms
        self._tasks: dict[tuple[str, int], asyncio.Task[None]] = {}

    def start(self, topic: str, index: int, path: str) -> None:
        """Begin to move a replica to the folder `path`; ApiError if that is not possible."""
        directory = self._logs.dir_by_path(path)
        if directory is None:
            known = ", ".join(each.path for each in self._logs.dirs)
            raise ApiError(
                ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is not in log.dirs of this broker ({known})"
            )
        partition = self._replicas.get(topic, index)
        if directory.failure is not None:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{path} is offline")
        self._cancel(topic, index)
        if partition.log.dir_state is directory:
            self._logs.drop_future_log(topic, index)
            return
        future = self._logs.create_future_log(topic, index, directory)
        task = asyncio.get_running_loop().create_task(self._move(topic, index, future))
        self._tasks[topic, index] = task

    def resume(self) -> None:
        """Go on with the moves that a restart interrupted."""
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
            copying = True
            while copying:
                copying = self._copy_piece(topic, index, future)
                # Clients have their turn between two pieces.
                await asyncio.sleep(0)
            self._replicas.move_to_future_log(topic, index)
            logger.info("%s-%d now lies in %s", topic, index, future.dir_state.path)
        except ApiError as error:
            # The partition is gone, or one of the two folders.
            logger.error("%s-%d was not moved: %s", topic, index, error.message)
            if self._logs.get_future_log(topic, index) is future:
                self._logs.drop_future_log(topic, index)
        finally:
            if self._tasks.get((topic, index)) is asyncio.current_task():
                del self._tasks[topic, index]

    def _copy_piece(self, topic: str, index: int, future: Log) -> bool:
        """Copy the next batches; False when the future log has everything."""
        current = self._replicas.get(topic, index).log
        start, end = current.log_start_offset, current.log_end_offset
        if future.log_end_offset < start:
            future.truncate_fully_and_start_at(start, now_ms=self._clock_ms())
        if future.log_end_offset >= end:
            return False
        found = current.read(
            future.log_end_offset, PIECE_BYTES, upper_offset=end, min_one_batch=True
        )
        if found.size == 0:
            return False
        data = found.buffers[0] if len(found.buffers) == 1 else b"".join(found.buffers)
        future.append_as_follower(data, now_ms=self._clock_ms())
        return True
