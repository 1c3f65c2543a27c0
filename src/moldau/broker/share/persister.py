"""Calls to the share coordinator that are retried while it moves.

`cluster_persister.py` finds the coordinator. Invariant: a call ends with the stored result or with
an `ApiError` whose code Kafka's persister would return, after at most `_ATTEMPT_COUNT_MAX`
attempts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from moldau.broker.calls.retries import Pause, Retries
from moldau.broker.coordinator.share.interface import Persister
from moldau.broker.coordinator.share.machine.values import (
    SharePartitionKey,
    ShareState,
    ShareStateSummary,
    StateBatch,
)
from moldau.wire.constants import NO_EPOCH
from moldau.wire.errors import ApiError, ErrorCode

R = TypeVar("R")


_RETRIED = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        # The metadata of a new topic reaches brokers one by one.
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        # No response from another broker.
        ErrorCode.NETWORK_EXCEPTION,
    }
)

# Kafka waits 1, 2, 4 and 8 seconds between its five attempts. Shorter pauses save the first
# consumer of a new cluster a second, and other consumers some time when a coordinator's broker has
# died; the last attempt is made after about the same time as Kafka's.
_BACKOFF_MS_FIRST = 100
_BACKOFF_MS_MAX = 1_000
_ATTEMPT_COUNT_MAX = 18


class RetryingPersister:
    """Implements `Persister` over another one, which makes one attempt of each call.

    `create_topic` ensures that the coordinator's topic exists, as Kafka's FindCoordinator does.
    """

    def __init__(
        self,
        coordinator: Persister,
        create_topic: Callable[[], Awaitable[None]],
        wait: Pause,
    ) -> None:
        self._coordinator = coordinator
        self._create_topic = create_topic
        self._retries = Retries(
            wait,
            retried=_RETRIED,
            attempt_count_max=_ATTEMPT_COUNT_MAX,
            delay_ms_first=_BACKOFF_MS_FIRST,
            delay_ms_max=_BACKOFF_MS_MAX,
        )

    async def initialize_state(
        self, key: SharePartitionKey, *, state_epoch: int, start_offset: int
    ) -> None:
        await self._attempt(
            lambda: self._coordinator.initialize_state(
                key, state_epoch=state_epoch, start_offset=start_offset
            )
        )

    async def read_state(self, key: SharePartitionKey, *, leader_epoch: int) -> ShareState:
        return await self._attempt(
            lambda: self._coordinator.read_state(key, leader_epoch=leader_epoch)
        )

    async def write_state(
        self,
        key: SharePartitionKey,
        *,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> None:
        await self._attempt(
            lambda: self._coordinator.write_state(
                key,
                state_epoch=state_epoch,
                leader_epoch=leader_epoch,
                start_offset=start_offset,
                delivery_complete_count=delivery_complete_count,
                batches=batches,
            )
        )

    async def delete_state(self, key: SharePartitionKey) -> None:
        await self._attempt(lambda: self._coordinator.delete_state(key))

    async def read_summary(
        self, key: SharePartitionKey, *, leader_epoch: int = NO_EPOCH
    ) -> ShareStateSummary:
        return await self._attempt(
            lambda: self._coordinator.read_summary(key, leader_epoch=leader_epoch)
        )

    async def _attempt(self, call: Callable[[], Awaitable[R]]) -> R:
        return await self._retries.run(call, self._create_missing_topic)

    async def _create_missing_topic(self, code: ErrorCode) -> None:
        if code is not ErrorCode.NOT_COORDINATOR:
            return
        try:
            await self._create_topic()
        except ApiError as error:
            if not self._retries.covers(error.code):
                raise
