"""Closing the logs of a directory so that the next start needs no recovery.

Decides how they are made durable. Invariant: when `close` has returned, every file of every log is
complete and durable, indexes included.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Final

from moldau.broker.log.background import Background
from moldau.broker.log.context import LogDirFailure, LogDirState
from moldau.broker.log.disk import Disk
from moldau.broker.log.flusher import flush_together
from moldau.broker.log.log import Log
from moldau.times import WallMs

#: With more unsynced logs than this the file system is synced as a whole: each log would take
#: several fsyncs, each a commit of the file system's journal. With fewer it is not, because that
#: also waits for what other processes have written.
SYNCED_SINGLY_MAX: Final = 32
#: How many logs are settled in one turn of the loop.
SETTLED_PER_TURN: Final = 100


class Closing:
    def __init__(self, disk: Disk, background: Background) -> None:
        self._disk = disk
        self._background = background
        self.synced_singly_max = SYNCED_SINGLY_MAX

    async def begin(self, directory: LogDirState, logs: Collection[Log]) -> None:
        """Where there is much to sync, write and sync most of it while the broker still leaves the
        cluster: the disk works meanwhile, and little is left for `close`."""
        if not self._is_as_one(directory, logs):
            return
        try:
            for number, log in enumerate(logs):
                if log.needs_sync:
                    log.settle()
                if number % SETTLED_PER_TURN == 0:
                    await asyncio.sleep(0)
            await self._background.run(self._disk.sync_all, directory.path)
        except OSError as error:
            # The system reports it once: a later sync would succeed.
            directory.fail("syncing its logs", error)
        except LogDirFailure:
            return

    async def prepare(self, directory: LogDirState, logs: Collection[Log], now_ms: WallMs) -> None:
        """Do off the loop what `close` would otherwise do in place."""
        if not self._is_as_one(directory, logs):
            await flush_together([log for log in logs if log.needs_sync], now_ms)

    def close(self, directory: LogDirState, logs: Collection[Log], now_ms: WallMs) -> None:
        """Flush and close; raises OSError or LogDirFailure if not all is durable."""
        if not self._is_as_one(directory, logs):
            for log in logs:
                if log.needs_sync:
                    log.flush(now_ms=now_ms)
                log.close()
            return
        for log in logs:
            log.close(sync=False)
        self._disk.sync_all(directory.path)
        for log in logs:
            log.flusher.closed_cleanly(log.log_end_offset)

    def _is_as_one(self, directory: LogDirState, logs: Collection[Log]) -> bool:
        unsynced = sum(log.needs_sync for log in logs)
        return unsynced > self.synced_singly_max and self._disk.can_sync_all(directory.path)
