"""Writes readings of this node's metrics to the compacted topic `__moldau_metrics`.

One reading at a time, in slots that are used again (`moldau.metrics.history`). One that cannot be
written is left out: the next one follows, and totals lose nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from moldau.broker.machine.topics import METRICS_TOPIC
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.topic_writer import TopicWriter
from moldau.clock import Clock, pause
from moldau.metrics import Registry
from moldau.metrics.history import encode, key_of
from moldau.metrics.parsing import parse
from moldau.metrics.prometheus import Page
from moldau.metrics.turns import collected
from moldau.peers.channel import ChannelError
from moldau.wire.errors import ApiError

__all__ = ["MetricsHistory"]

logger = logging.getLogger(__name__)


class MetricsHistory:
    def __init__(
        self,
        registry: Registry,
        writer: TopicWriter,
        clock: Clock,
        *,
        node_id: int,
        interval_ms: int,
        slots: int,
    ) -> None:
        self._registry = registry
        self._writer = writer
        self._clock = clock
        self._node = f"node {node_id}"
        self._interval_ms = interval_ms
        self._slots = slots
        self._task: asyncio.Task[None] | None = None

    def start(
        self, image: Callable[[], MetadataImage], create: Callable[[], Awaitable[None]]
    ) -> None:
        """`create` creates the topic, or raises ApiError."""
        self._task = asyncio.get_running_loop().create_task(self._run(image, create))

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self._writer.close()

    async def _run(
        self, image: Callable[[], MetadataImage], create: Callable[[], Awaitable[None]]
    ) -> None:
        broken = False
        while True:
            await pause(self._clock, self._interval_ms)
            try:
                if image().topic(METRICS_TOPIC) is None:
                    await create()
                await self._writer.write([await self._reading()])
            except (ApiError, ChannelError) as error:
                if not broken:
                    logger.warning("%s cannot be written: %s", METRICS_TOPIC, error)
                broken = True
            except Exception:
                logger.exception("writing the history of metrics failed; it goes on")
            else:
                broken = False

    async def _reading(self) -> tuple[bytes, bytes]:
        page = Page()
        async for sample in collected(self._registry):
            page.add(sample)
        now_s = self._clock.now_ms() / 1000
        key = key_of(self._node, now_s, interval_s=self._interval_ms / 1000, slots=self._slots)
        text = "".join(page.pieces())
        # Much text: not on the loop.
        return key, await asyncio.to_thread(lambda: encode(self._node, now_s, parse(text)))
