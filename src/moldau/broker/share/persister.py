"""Calls to the share coordinator, retried while it moves.

`cluster_persister.py` finds the coordinator.

Invariants: a call ends with the stored result or with an `ApiError` whose code Kafka's persister
would return, after at most `_ATTEMPT_COUNT_MAX` attempts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from moldau.broker.coordinator.share.interface import Persister
from moldau.broker.coordinator.share.machine.values import (
    NO_EPOCH,
    SharePartitionKey,
    ShareState,
    ShareStateSummary,
    StateBatch,
)
from moldau.wire.errors import ApiError, ErrorCode

R = TypeVar("R")


_RETRIED = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        # The metadata of a new topic reaches brokers one by one.
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        # There was no response from another broker.
        ErrorCode.NETWORK_EXCEPTION,
    }
)

# Kafka waits 1, 2, 4 and 8 seconds between its five attempts. Beginning sooner spares the first
# consumer of a new cluster a second, and shorter pauses the others some when a coordinator's node
# has died; the last attempt is made after about as long a time.
_BACKOFF_MS_FIRST = 100
_BACKOFF_MS_MAX = 1_000
_ATTEMPT_COUNT_MAX = 18


class RetryingPersister:
    """Implements `Persister` over another one, which makes one attempt of each call.

    `create_topic` makes sure that the coordinator's topic exists, as Kafka's FindCoordinator does;
    `sleep` waits for seconds.
    """

    def __init__(
        self,
        coordinator: Persister,
        create_topic: Callable[[], Awaitable[None]],
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._coordinator = coordinator
        self._create_topic = create_topic
        self._sleep = sleep

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
        backoff_ms = _BACKOFF_MS_FIRST
        for _ in range(_ATTEMPT_COUNT_MAX - 1):
            try:
                return await call()
            except ApiError as error:
                if error.code not in _RETRIED:
                    raise
                if error.code is ErrorCode.NOT_COORDINATOR:
                    await self._create_missing_topic()
            await self._sleep(backoff_ms / 1000)
            backoff_ms = min(2 * backoff_ms, _BACKOFF_MS_MAX)
        return await call()

    async def _create_missing_topic(self) -> None:
        try:
            await self._create_topic()
        except ApiError as error:
            if error.code not in _RETRIED:
                raise
