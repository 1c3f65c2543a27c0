"""How share-partition leaders and the group coordinator reach the stored state of share partitions.

The state lives with the share coordinator, keyed by group, topic and partition. `Persister` is what
its users see, wherever the coordinator runs; `cluster_persister.py` finds it, and
`RetryingPersister` tries again while it moves. What always holds: a call ends with the stored
result or with an `ApiError` whose code Kafka's persister would hand on, after at most
`_ATTEMPT_COUNT_MAX` attempts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar
from uuid import UUID

from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.uuids import uuid_to_text

UNINITIALIZED_START_OFFSET = -1
UNINITIALIZED_DELIVERY_COMPLETE_COUNT = -1
NO_EPOCH = -1
"""As a leader or state epoch of a write: this check is not asked for."""

R = TypeVar("R")


class SharePartitionKey(NamedTuple):
    """One partition as one share group consumes it."""

    group_id: str
    topic_id: UUID
    partition: int

    def __str__(self) -> str:
        """Kafka's coordinator key: its hash names the partition of `__share_group_state`."""
        return f"{self.group_id}:{uuid_to_text(self.topic_id)}:{self.partition}"


class StateBatch(NamedTuple):
    """Records `first_offset` to `last_offset`, which share a state: 0 available, 2 acknowledged,
    4 archived."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


class ShareState(NamedTuple):
    state_epoch: int
    start_offset: int
    """`UNINITIALIZED_START_OFFSET`: the group's share.auto.offset.reset decides."""
    batches: tuple[StateBatch, ...] = ()


class ShareStateSummary(NamedTuple):
    """Where a share partition stands, without its records' states.

    A partition nobody has initialised has the defaults.
    """

    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = UNINITIALIZED_START_OFFSET
    delivery_complete_count: int = UNINITIALIZED_DELIVERY_COMPLETE_COUNT


class Persister(Protocol):
    """Each call is one share partition; all raise ApiError.

    FENCED_STATE_EPOCH: the group was reset or recreated since; FENCED_LEADER_EPOCH: a newer leader
    has read the state; INVALID_REQUEST: never initialised, or deleted; UNKNOWN_TOPIC_OR_PARTITION:
    the topic is gone; coordinator errors: after retries.
    """

    async def initialize_state(
        self, key: SharePartitionKey, *, state_epoch: int, start_offset: int
    ) -> None:
        """Begin anew from `start_offset`, with no batches."""
        ...

    async def read_state(self, key: SharePartitionKey, *, leader_epoch: int) -> ShareState:
        """The whole state; leaders with a lower epoch are fenced from now on."""
        ...

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
        """Merge the batches into the state; a start offset of -1 leaves the stored one."""
        ...

    async def delete_state(self, key: SharePartitionKey) -> None:
        """Forget the partition; that there is nothing to forget is no error."""
        ...

    async def read_summary(
        self, key: SharePartitionKey, *, leader_epoch: int = NO_EPOCH
    ) -> ShareStateSummary: ...


_RETRIED = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        # The metadata of a new topic reaches brokers one by one.
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        # No answer of another broker.
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
