"""A consumer that returns whole batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from moldau.client.batches.machine.fetched import FetchedBatch, FetchedBatchReader
from moldau.client.consumer.asynchronous import AsyncConsumer
from moldau.client.topics import TopicPartition

__all__ = ["BatchConsumer", "Polled"]


class Polled(NamedTuple):
    """Batches of a partition, and the position after them."""

    batches: list[FetchedBatch]
    position: int


class BatchConsumer(AsyncConsumer[Any, Any]):
    """As `AsyncConsumer`, with batches in place of records; `max.poll.records` counts batches."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._core.fetcher.reader = FetchedBatchReader

    async def poll_batches(self, timeout: float) -> dict[TopicPartition, Polled]:
        """Batches as soon as there are any, or none after `timeout` seconds. A partition whose
        position moved past records that are not visible is there without batches.

        >>> for partition, polled in (await consumer.poll_batches(1.0)).items(): ...
        """
        found = await self.poll(timeout)
        batches = cast(dict[TopicPartition, list[FetchedBatch]], dict(found.items()))
        return {
            key: Polled(batches.get(key, []), position.offset)
            for key, position in found.next_offsets().items()
        }
