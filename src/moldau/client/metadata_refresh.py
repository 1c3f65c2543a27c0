"""When a client asks its cluster for metadata.

Invariants: there is one refresh at a time, and no two within `retry.backoff.ms` unless somebody
waits for one; after a failure the next one waits for the backoff; when no known node was reachable
for `metadata.recovery.rebootstrap.trigger.ms`, the client is sent back to the addresses it was
given.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from moldau.client.errors import ClosedError, KafkaError
from moldau.client.machine.metadata import ClusterMetadata
from moldau.client.network_settings import NetworkSettings
from moldau.client.task_sharing import shared
from moldau.clock import Alarm, Clock, pause
from moldau.peers.machine.backoff import ExponentialBackoff, RandomSource

__all__ = ["MetadataRefresher"]


class MetadataRefresher:
    """See the module. `ask` asks once; the functions given are called on the loop."""

    def __init__(
        self,
        settings: NetworkSettings,
        *,
        clock: Clock,
        random: RandomSource,
        backoff: ExponentialBackoff,
        ask: Callable[[], Awaitable[ClusterMetadata]],
        on_refreshed: Callable[[ClusterMetadata], None],
        on_failed: Callable[[KafkaError, int], None],
        rebootstrap: Callable[[], None],
    ) -> None:
        """`on_failed` is called with the error and the number of failures in a row."""
        self._settings = settings
        self._clock = clock
        self._random = random
        self._backoff = backoff
        self._ask = ask
        self._on_refreshed = on_refreshed
        self._on_failed = on_failed
        self._rebootstrap = rebootstrap
        self._task: asyncio.Task[ClusterMetadata] | None = None
        self._refreshed_ms: int | None = None
        self._alarm: Alarm | None = None
        self._failures = 0
        self._unreachable_since_ms: int | None = None
        self._closed = False

    @property
    def age_ms(self) -> int | None:
        """Since the last good refresh; None before the first."""
        if self._refreshed_ms is None:
            return None
        return self._clock.elapsed_ms() - self._refreshed_ms

    async def refresh(self) -> ClusterMetadata:
        """Metadata that was asked for after this call."""
        # A refresh that is under way may not have asked for what is wanted now.
        if self._task is not None:
            with suppress(KafkaError):
                await shared(self._task, self._is_closed)
        return await shared(self._task or self._start(), self._is_closed)

    def request(self, *, at_once: bool = False) -> None:
        """Refresh soon: not within `retry.backoff.ms` of the last time, unless `at_once`."""
        if self._closed or self._task is not None:
            return
        age_ms = self.age_ms
        if not at_once and age_ms is not None and age_ms < self._settings.retry_backoff_ms:
            if self._alarm is None:
                delay_ms = self._settings.retry_backoff_ms - age_ms
                self._alarm = self._clock.call_later(delay_ms, self._on_alarm)
            return
        task = self._start()
        # Nobody waits for it; its failure is counted in _run.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    def forget_outage(self) -> None:
        """The client went back to its bootstrap addresses: the time begins again."""
        self._unreachable_since_ms = None

    def _is_closed(self) -> bool:
        return self._closed

    def _on_alarm(self) -> None:
        self._alarm = None
        self.request(at_once=True)

    def _start(self) -> asyncio.Task[ClusterMetadata]:
        if self._closed:
            raise ClosedError("the client is closed")
        task = asyncio.get_running_loop().create_task(self._run())
        self._task = task
        task.add_done_callback(self._on_ended)
        return task

    def _on_ended(self, task: asyncio.Task[ClusterMetadata]) -> None:
        self._task = None

    async def _run(self) -> ClusterMetadata:
        if self._failures:
            await pause(self._clock, self._backoff.delay_ms(self._failures, self._random))
        try:
            picture = await self._ask()
        except KafkaError as error:
            self._failures += 1
            self._on_failed(error, self._failures)
            self._note_unreachable()
            raise
        self._failures = 0
        self._unreachable_since_ms = None
        self._refreshed_ms = self._clock.elapsed_ms()
        self._on_refreshed(picture)
        return picture

    def _note_unreachable(self) -> None:
        now_ms = self._clock.elapsed_ms()
        if self._unreachable_since_ms is None:
            self._unreachable_since_ms = now_ms
        waited_ms = now_ms - self._unreachable_since_ms
        if waited_ms >= self._settings.metadata_recovery_rebootstrap_trigger_ms:
            self._rebootstrap()

    async def close(self) -> None:
        self._closed = True
        if self._alarm is not None:
            self._alarm.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
