"""Which tasks of a flow this process runs.

The processes of a flow are a consumer group in the target, over a topic with one partition per
task: who has the partition runs the task. So processes may come and go, and a task runs in one
process at a time; with exactly once its transactional id makes sure of that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from moldau.client import AsyncConsumer, KafkaError
from moldau.mirror.machine.settings import FlowSettings

__all__ = ["TaskShare"]

logger = logging.getLogger(__name__)

_POLL_S = 0.5
_RETRY_S = 2.0


class TaskShare:
    """Calls `on_change` with the tasks of this process whenever they change."""

    def __init__(self, settings: FlowSettings, on_change: Callable[[frozenset[int]], None]) -> None:
        self._settings = settings
        self._on_change = on_change
        self._mine: frozenset[int] = frozenset()

    async def run(self) -> None:
        """Until cancelled; then the tasks are left to others at once."""
        while True:
            try:
                await self._take_part()
            except KafkaError as error:
                self._set(frozenset())
                logger.warning(
                    "%s: the group %s cannot be joined and is tried again (does another mirror "
                    "use it?): %s",
                    self._settings.name, self._settings.group_id, error,
                )  # fmt: skip
                await asyncio.sleep(_RETRY_S)

    async def _take_part(self) -> None:
        consumer: AsyncConsumer[bytes, bytes] = AsyncConsumer(
            {
                **self._settings.client("target", "consumer"),
                "group.id": self._settings.group_id,
                "enable.auto.commit": "false",
                "session.timeout.ms": "10000",
                "heartbeat.interval.ms": "1000",
                "max.poll.interval.ms": "60000",
                "partition.assignment.strategy": "cooperative-sticky",
                "group.protocol": "classic",
            }
        )
        try:
            consumer.subscribe([self._settings.tasks_topic])
            while True:
                await consumer.poll(_POLL_S)
                self._set(frozenset(each.partition for each in consumer.assignment()))
        finally:
            # An error here would take the place of a cancellation, and the group be joined again.
            with suppress(KafkaError):
                await asyncio.shield(consumer.close(timeout=2.0))

    def _set(self, mine: frozenset[int]) -> None:
        if mine != self._mine:
            self._mine = mine
            self._on_change(mine)
