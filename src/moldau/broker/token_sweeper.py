"""Removes delegation tokens that have expired, every delegation.token.expiry.check.interval.ms."""

from __future__ import annotations

import asyncio
import logging

from moldau.broker.metadata.machine.delegation_tokens import remove_expired_tokens
from moldau.broker.metadata.shell import MetadataShell
from moldau.clock import Alarm, Clock
from moldau.wire.errors import ApiError

__all__ = ["TokenSweeper"]

logger = logging.getLogger(__name__)


class TokenSweeper:
    """On every controller; only the active one does anything."""

    def __init__(self, metadata: MetadataShell, clock: Clock, *, interval_ms: int) -> None:
        self._metadata = metadata
        self._clock = clock
        self._interval_ms = interval_ms
        self._alarm: Alarm | None = None
        self._sweep: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._alarm = self._clock.call_later(self._interval_ms, self._on_alarm)

    def close(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        if self._sweep is not None:
            self._sweep.cancel()

    def _on_alarm(self) -> None:
        if self._metadata.is_active and self._metadata.image.tokens:
            self._sweep = asyncio.get_running_loop().create_task(self._remove())
        self.start()

    async def _remove(self) -> None:
        try:
            await self._metadata.run(remove_expired_tokens, now_ms=self._clock.now_ms())
        except ApiError as error:
            logger.warning("expired delegation tokens are not removed yet: %s", error)
