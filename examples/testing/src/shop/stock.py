"""Takes what was ordered from stock: any number of keepers share the work as a consumer group."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import CommitFailedError


class StockKeeper(ConsumerRebalanceListener):
    """Handles each order once in an orderly rebalance: what it has done is committed before its
    partitions go to another keeper."""

    def __init__(
        self,
        bootstrap_servers: str,
        handled: Callable[[int], None],
        *,
        topic: str = "orders",
        group: str = "stock",
        **settings: Any,
    ) -> None:
        """`handled` is called with the number of each order that is done."""
        self._handled = handled
        self._topic = topic
        self._done: dict[TopicPartition, int] = {}
        self._busy = asyncio.Lock()
        self.events: Counter[str] = Counter()
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap_servers,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=200,
            **settings,
        )

    async def run(self) -> None:
        """Until it is cancelled."""
        await self._consumer.start()
        try:
            self._consumer.subscribe([self._topic], listener=self)
            while True:
                batches = await self._consumer.getmany(timeout_ms=200, max_records=10)
                async with self._busy:
                    for partition, records in batches.items():
                        for record in records:
                            if partition not in self._consumer.assignment():
                                break
                            self._handled(json.loads(record.value)["number"])
                            self._done[partition] = record.offset + 1
                await self._commit()
        finally:
            await self._consumer.stop()

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self.events["revoked"] += 1
        async with self._busy:
            await self._commit()
            self._done.clear()

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self.events["assigned"] += 1

    async def _commit(self) -> None:
        if self._done:
            try:
                await self._consumer.commit(dict(self._done))
            except CommitFailedError:
                # The group has gone on without this keeper; others do its orders again.
                self.events["commits lost"] += 1
                self._done.clear()
