"""Finds the names of topics that the coordinator speaks of by id.

One request is under way at a time; ids that nobody knows are asked for again after a pause, as a
topic may be so new that the node that was asked does not know it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from uuid import UUID

from moldau.client.cluster import ClusterClient
from moldau.client.errors import KafkaError
from moldau.clock import pause
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import MetadataRequest, MetadataResponse

__all__ = ["TopicNames"]


class TopicNames:
    """`found` are those that were looked up."""

    def __init__(self, cluster: ClusterClient, on_found: Callable[[], None]) -> None:
        self._cluster = cluster
        self._on_found = on_found
        self.found: dict[UUID, str] = {}
        self._wanted: frozenset[UUID] = frozenset()
        self._task: asyncio.Task[None] | None = None

    def look_up(self, topic_ids: Collection[UUID]) -> None:
        """Replaces what was looked for before; `on_found` is called after each answer."""
        self._wanted = frozenset(topic_ids)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
            self._task.add_done_callback(self._on_ended)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _on_ended(self, task: asyncio.Task[None]) -> None:
        self._task = None

    async def _run(self) -> None:
        failures = 0
        while self._wanted:
            asked = self._wanted
            try:
                await self._ask(asked)
            except KafkaError as error:
                if not error.retriable:
                    return
            failures += 1
            self._wanted = frozenset()
            # Asks again for those that are still missing.
            self._on_found()
            if self._wanted:
                delay_ms = self._cluster.backoff.delay_ms(failures, self._cluster.random)
                await pause(self._cluster.clock, delay_ms)

    async def _ask(self, topic_ids: frozenset[UUID]) -> None:
        topics = [
            MetadataRequest.MetadataRequestTopic(topic_id=each, name=None)
            for each in sorted(topic_ids)
        ]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        response: MetadataResponse = await self._cluster.call_any(request)
        for each in response.topics:
            if each.error_code == ErrorCode.NONE and each.name is not None:
                self.found[each.topic_id] = each.name
