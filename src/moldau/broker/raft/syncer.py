"""LogSyncer: one fsync at a time; what is appended meanwhile shares the next one.

Invariant: an offset is reported as synced only if the log was not truncated while the fsync ran.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from moldau.broker.raft.log import RaftLog
from moldau.clock import Clock
from moldau.wire.errors import ApiError


class LogSyncer:
    def __init__(
        self,
        log: RaftLog,
        clock: Clock,
        *,
        on_synced: Callable[[int], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._log = log
        self._clock = clock
        self._on_synced = on_synced
        self._on_failure = on_failure
        self._task: asyncio.Task[None] | None = None
        self._truncations = 0
        self._stopped = False

    def sync(self) -> None:
        """Sync what has been appended, now or after the fsync that is running."""
        if self._task is None and not self._stopped:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def note_truncation(self) -> None:
        """The log was truncated or replaced."""
        self._truncations += 1

    def stop(self) -> None:
        """Sync no more; an fsync that is running is not cancelled."""
        self._stopped = True

    async def wait(self) -> None:
        """Return when no fsync is running."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        synced = -1
        try:
            while not self._stopped and synced < self._log.end_offset:
                end_offset, truncations = self._log.end_offset, self._truncations
                if await self._sync_up_to(end_offset, truncations):
                    synced = end_offset
                    self._on_synced(end_offset)
                if truncations != self._truncations:
                    synced = -1
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self._on_failure(error)
        finally:
            self._task = None

    async def _sync_up_to(self, end_offset: int, truncations: int) -> bool:
        """False if the log was truncated meanwhile: then it is not known what is on disk."""
        try:
            await self._log.sync(end_offset, now_ms=self._clock.now_ms())
        except ApiError:
            if truncations == self._truncations:
                raise
        return truncations == self._truncations
