"""What the five state APIs have in common: many share partitions, each with its own result."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar
from uuid import UUID

from moldau.broker.coordinator.share.machine.values import SharePartitionKey
from moldau.wire.errors import ApiError, ErrorCode


class _Partition(Protocol):
    @property
    def partition(self) -> int: ...


P = TypeVar("P", bound=_Partition)
P_co = TypeVar("P_co", bound=_Partition, covariant=True)
R = TypeVar("R")


class _Topic(Protocol[P_co]):
    @property
    def topic_id(self) -> UUID: ...

    @property
    def partitions(self) -> Sequence[P_co]: ...


class Failure(NamedTuple):
    code: ErrorCode
    message: str


def is_incomplete(group_id: str, topics: Sequence[_Topic[P]]) -> bool:
    """Such a request gets an empty response: there is no partition to put an error on."""
    return not group_id or not topics or not all(topic.partitions for topic in topics)


async def each_partition(
    group_id: str,
    topics: Sequence[_Topic[P]],
    call: Callable[[SharePartitionKey, P], Awaitable[R]],
) -> list[tuple[UUID, list[tuple[int, R | Failure]]]]:
    """By topic and partition, what the call gave or how it failed; all run side by side."""

    async def attempt(topic_id: UUID, partition: P) -> R | Failure:
        try:
            key = SharePartitionKey(group_id, topic_id, partition.partition)
            return await call(key, partition)
        except ApiError as error:
            return Failure(error.code, error.message or error.code.name)

    results = await asyncio.gather(
        *[attempt(topic.topic_id, partition) for topic in topics for partition in topic.partitions]
    )
    remaining = iter(results)
    return [
        (
            topic.topic_id,
            [(partition.partition, next(remaining)) for partition in topic.partitions],
        )
        for topic in topics
    ]
