"""A consumer that returns whole batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from moldau.client.batches.machine.fetched import FetchedBatch, FetchedBatchReader
from moldau.client.consumer.asynchronous import AsyncConsumer
from moldau.client.topics import TopicPartition

__all__ = ["BatchConsumer"]


class BatchConsumer(AsyncConsumer[Any, Any]):
    """As `AsyncConsumer`, with batches in place of records; `max.poll.records` counts batches."""

    if TYPE_CHECKING:
        # The keywords of settings are of no use here.
        def __init__(self, config: Mapping[str, Any]) -> None: ...

    else:

        def __init__(self, config: Mapping[str, Any]) -> None:
            super().__init__(config)
            self._core.read_with(FetchedBatchReader)

    async def poll_batches(self, timeout: float) -> dict[TopicPartition, list[FetchedBatch]]:
        """Batches as soon as there are any, or none after `timeout` seconds.

        >>> for partition, batches in (await consumer.poll_batches(1.0)).items(): ...
        """
        found = await self.poll(timeout)
        return cast(dict[TopicPartition, list[FetchedBatch]], dict(found.items()))
