"""Writes audit events to the topic `__moldau_audit`, through whichever broker leads the partition.

Decided here: a node writes to one partition, so its events stay in order; a batch is tried until it
is committed, however often the leader changes, so it may be there twice. Meanwhile events wait in a
bounded backlog, and what does not fit is dropped, counted and reported by an event of its own.

Nothing here is audited: a broker appends to its own partition without asking the authorizer, and
what brokers write to one another's is left out (`AuditLog.operation`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from moldau.broker.machine.topics import AUDIT_TOPIC
from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.security.audit.machine.backlog import Backlog, Batch
from moldau.broker.security.audit.machine.events import dropped_line
from moldau.broker.topic_writer import TopicWriter
from moldau.clock import Clock, pause
from moldau.peers.channel import ChannelError
from moldau.wire.errors import ApiError, ErrorCode

__all__ = ["AuditTopic"]

BACKLOG_BYTES_MAX: Final = 16 * 1024 * 1024
BATCH_BYTES_MAX: Final = 256 * 1024
#: The pause after a failure, doubled with each one up to the second.
RETRY_MS: Final = 250
RETRY_MS_MAX: Final = 4_000
#: How long a node that stops tries to write what is left.
STOP_MS_MAX: Final = 2_000
#: With these the batch would be rejected again and again.
_HOPELESS: Final = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
    }
)

logger = logging.getLogger(__name__)


class AuditTopic:
    """See the module."""

    def __init__(
        self,
        image: Callable[[], MetadataImage],
        writer: TopicWriter,
        clock: Clock,
        *,
        node_id: int,
    ) -> None:
        self._image = image
        self._writer = writer
        self._clock = clock
        self._node_id = node_id
        self._backlog = Backlog(BACKLOG_BYTES_MAX)
        self._added = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._broken = False
        self._full = False

    def add(self, lines: Sequence[str]) -> None:
        """Have these lines written, each as one record."""
        if self._backlog.add(lines) and not self._full:
            self._full = True
            logger.error("audit events are dropped: %s cannot be written", AUDIT_TOPIC)
        self._added.set()

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self._writer.apply(delta, image)

    def start(self, create: Callable[[], Awaitable[None]]) -> None:
        """`create` creates the topic, or raises ApiError."""
        self._task = asyncio.get_running_loop().create_task(self._run(create))

    async def stop(self) -> None:
        """Write what is left, as far as that is possible in a moment."""
        if self._task is not None:
            over = asyncio.get_running_loop().create_task(pause(self._clock, STOP_MS_MAX))
            while not self._backlog.empty and not over.done():
                await pause(self._clock, 10)
            over.cancel()
            self._task.cancel()
            self._task = None
        self._writer.close()
        if not self._backlog.empty:
            logger.warning("%d audit events were not written to the topic", len(self._backlog))

    async def _run(self, create: Callable[[], Awaitable[None]]) -> None:
        while True:
            self._added.clear()
            while not self._backlog.empty:
                batch = self._backlog.next_batch(BATCH_BYTES_MAX)
                delay_ms = RETRY_MS
                while not await self._is_done_with(batch, create):
                    await pause(self._clock, delay_ms)
                    delay_ms = min(2 * delay_ms, RETRY_MS_MAX)
            self._full = False
            await self._added.wait()

    async def _is_done_with(self, batch: Batch, create: Callable[[], Awaitable[None]]) -> bool:
        """Whether it is written, or can never be."""
        try:
            if self._image().topic(AUDIT_TOPIC) is None:
                await create()
            await self._writer.write([(None, line) for line in self._records(batch)])
        except (ApiError, ChannelError) as error:
            if not self._broken:
                self._broken = True
                logger.warning("%s cannot be written yet: %s", AUDIT_TOPIC, error)
            if not isinstance(error, ApiError) or error.code not in _HOPELESS:
                return False
            self._backlog.give_up(batch)
            return True
        except Exception as error:
            logger.error("writing audit events failed, they are dropped", exc_info=error)
            self._backlog.give_up(batch)
            return True
        if self._broken:
            self._broken = False
            logger.info("%s is written again", AUDIT_TOPIC)
        self._backlog.written(batch)
        return True

    def _records(self, batch: Batch) -> list[bytes]:
        records = list(batch.lines)
        if batch.dropped:
            line = dropped_line(self._clock.now_ms(), self._node_id, batch.dropped)
            records.append(line.encode())
        return records
