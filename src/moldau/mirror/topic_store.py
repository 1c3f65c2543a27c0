"""Internal topics: creating them, and reading them from their beginning.

Invariant: after `catch_up` everything is applied that was committed in the topic when it was
called; a record that cannot be read is logged and skipped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from moldau.client import (
    AsyncAdmin,
    AsyncConsumer,
    KafkaError,
    KafkaTimeoutError,
    NewTopic,
    OffsetSpec,
    TopicExistsError,
    TopicPartition,
    UnknownTopicOrPartitionError,
)
from moldau.mirror.machine.records import BadRecord

__all__ = ["TopicReader", "ensure_compacted"]

logger = logging.getLogger(__name__)

Apply = Callable[[bytes | None, bytes | None], None]
_READ_S = 60.0
_POLL_S = 0.2
# For a topic that does not exist.
_LOOK_AGAIN_S = 2.0


async def ensure_compacted(
    admin: AsyncAdmin, topic: str, *, partitions: int = 1, replication_factor: int
) -> None:
    """Create a compacted topic, unless it exists."""
    if topic in await admin.list_topics(list_internal=True):
        return
    factor = None if replication_factor < 0 else replication_factor
    try:
        await admin.create_topics(
            [NewTopic(topic, partitions, factor, configs={"cleanup.policy": "compact"})]
        )
        logger.info("created the topic %s", topic)
    except TopicExistsError:
        pass


class TopicReader:
    """Applies the committed records of a topic, in order."""

    def __init__(
        self,
        topic: str,
        apply: Apply,
        consumer: Mapping[str, Any],
        admin: AsyncAdmin,
        *,
        must_exist: bool = False,
        last: int | None = None,
    ) -> None:
        """`must_exist`: a topic that a broker does not know is an error. One that has just started
        may not know any, and what is in the topic must not be taken for nothing. `last`: read only
        about so many offsets at the end of each partition."""
        self._topic = topic
        self._must_exist = must_exist
        self._last = last
        self._apply = apply
        self._admin = admin
        self._consumer: AsyncConsumer[bytes, bytes] = AsyncConsumer(
            {
                **consumer,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": "false",
                "allow.auto.create.topics": "false",
            }
        )
        self._partitions: list[TopicPartition] = []
        self._look_again_s = 0.0

    async def _assign(self) -> bool:
        """Whether the topic exists."""
        now_s = asyncio.get_running_loop().time()
        if not self._partitions and (self._must_exist or now_s >= self._look_again_s):
            self._look_again_s = now_s + _LOOK_AGAIN_S
            found = await self._consumer.partitions_for(self._topic)
            if not found and self._must_exist:
                raise UnknownTopicOrPartitionError(f"there is no topic {self._topic}")
            self._partitions = [TopicPartition(self._topic, each.partition) for each in found]
            if self._partitions:
                self._consumer.assign(self._partitions)
                self._consumer.seek_to_beginning(self._partitions)
                if self._last is not None:
                    await self._skip(self._last)
        return bool(self._partitions)

    async def _skip(self, last: int) -> None:
        begins = await self._consumer.beginning_offsets(self._partitions)
        ends = await self._consumer.end_offsets(self._partitions)
        for key in self._partitions:
            self._consumer.seek(key, max(begins[key], ends[key] - last))

    async def catch_up(self, *, include_open: bool = False, timeout_s: float = _READ_S) -> None:
        """Apply what is in the topic now. With `include_open`, what open transactions have written
        is waited for too. Raises KafkaTimeoutError."""
        if not await self._assign():
            return
        isolation = "read_uncommitted" if include_open else "read_committed"
        latest = await self._admin.list_offsets(
            dict.fromkeys(self._partitions, OffsetSpec.latest()), isolation_level=isolation
        )
        ends = {key: latest[key].offset for key in self._partitions}
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while True:
            behind = [key for key, end in ends.items() if await self._consumer.position(key) < end]
            if not behind:
                return
            if loop.time() > deadline:
                raise KafkaTimeoutError(
                    f"{self._topic} was not read to its end within {timeout_s} s"
                )
            for record in await self._consumer.poll(_POLL_S):
                try:
                    self._apply(record.key, record.value)
                except BadRecord as error:
                    logger.warning("%s offset %d is skipped: %s", self._topic, record.offset, error)

    async def close(self) -> None:
        try:
            await self._consumer.close()
        except KafkaError as error:
            logger.debug("closing the reader of %s: %s", self._topic, error)
