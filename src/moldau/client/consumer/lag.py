"""How far a consumer is behind: the records between its positions and the ends of partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from moldau.client.consumer.list_offsets import OffsetFinder
from moldau.client.consumer.machine.fetch_buffer import CompletedFetch
from moldau.client.consumer.machine.positions import LATEST_TIMESTAMP, PositionState
from moldau.client.consumer.machine.subscription import SubscriptionState
from moldau.client.metrics import ConsumerMetrics
from moldau.client.topics import TopicPartition

__all__ = ["Lag"]


class Lag:
    """See the module. `soon` calls something on the loop, from whatever thread."""

    def __init__(
        self,
        subscription: SubscriptionState,
        finder: OffsetFinder,
        metrics: ConsumerMetrics,
        soon: Callable[..., None],
        *,
        read_committed: bool,
    ) -> None:
        self._subscription = subscription
        self._finder = finder
        self._metrics = metrics
        self._soon = soon
        self._read_committed = read_committed
        self._questions: set[asyncio.Task[None]] = set()

    def current(self, key: TopicPartition) -> int | None:
        """Records between the position and the end, if that is known without asking."""
        with self._subscription.lock:
            state = self._subscription.assigned(key)
            lag = self._of(state)
        if lag is None:
            self._soon(self._ask, key)
        return lag

    def _of(self, state: PositionState) -> int | None:
        end = state.last_stable_offset if self._read_committed else state.high_watermark
        if end is None or state.position is None:
            return None
        return max(0, end - state.position.offset)

    def _ask(self, key: TopicPartition) -> None:
        task = asyncio.get_running_loop().create_task(self._learn_end(key))
        self._questions.add(task)
        task.add_done_callback(self._questions.discard)

    async def _learn_end(self, key: TopicPartition) -> None:
        found, _ = await self._finder.find_once({key: LATEST_TIMESTAMP})
        end = found.get(key)
        with self._subscription.lock:
            state = self._subscription.assignment.get(key)
            if state is None or end is None:
                return
            if self._read_committed:
                state.last_stable_offset = state.last_stable_offset or end.offset
            else:
                state.high_watermark = state.high_watermark or end.offset

    def on_drained(self, completed: CompletedFetch) -> None:
        """A part of a response is all handed out: once for many records, the figures."""
        key, reader, state = completed.key, completed.reader, completed.state
        if reader is not None:
            self._metrics.consumed({key.topic: (reader.record_count, completed.size)})
        lag = self._of(state)
        if lag is not None and state.position is not None and state.log_start_offset is not None:
            lead = state.position.offset - state.log_start_offset
            self._metrics.positioned(key.topic, key.partition, lag=lag, lead=lead)

    def close(self) -> None:
        for task in self._questions:
            task.cancel()
