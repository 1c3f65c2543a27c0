"""What waits to be sent to a node that leads partitions of a share group."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from moldau.client.deadline import Deadline
from moldau.client.errors import KafkaError, error_for
from moldau.client.share.machine.acknowledgements import Acknowledgements, TopicIdPartition
from moldau.client.share.machine.session import ShareSession
from moldau.clock import Alarm
from moldau.wire.errors import ErrorCode

__all__ = ["Commit", "NodeState", "Outcome", "PartitionAcks", "answers", "merge"]

PartitionAcks = dict[TopicIdPartition, Acknowledgements]


class Outcome(NamedTuple):
    """What a node, or nobody, answered to the acknowledgements of a partition."""

    partition: TopicIdPartition
    acknowledgements: Acknowledgements
    error: KafkaError | None
    lock_timeout_ms: int | None


class Commit:
    """Acknowledgements of one call, for one node."""

    def __init__(self, acks: PartitionAcks, deadline: Deadline) -> None:
        self.acks = acks
        self.deadline = deadline
        self.results: dict[TopicIdPartition, KafkaError | None] = {}
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def finish(self) -> None:
        """Everything has its outcome."""
        if not self.done.done():
            self.done.set_result(None)


class NodeState:
    """One node: its session, and what waits to be sent to it."""

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.session = ShareSession()
        self.task: asyncio.Task[None] | None = None
        #: For the next ShareFetch.
        self.waiting: PartitionAcks = {}
        self.commits: deque[Commit] = deque()
        self.failures = 0
        self.not_before_ms = 0
        self.alarm: Alarm | None = None


async def answers(
    taken: Iterable[TopicIdPartition], commits: list[Commit], deadline: Deadline
) -> dict[TopicIdPartition, KafkaError | None]:
    """What became of each partition's acknowledgements."""
    results: dict[TopicIdPartition, KafkaError | None] = {
        partition: error_for(ErrorCode.REQUEST_TIMED_OUT, "acknowledgements were not answered")
        for partition in taken
    }
    if commits:
        limit_s = max(0.001, deadline.left_ms() / 1000)
        await asyncio.wait([commit.done for commit in commits], timeout=limit_s)
    for commit in commits:
        results.update(commit.results)
    return results


def merge(acks: PartitionAcks, more: PartitionAcks) -> None:
    """Add acknowledgements to those that are there."""
    for partition, acknowledgements in more.items():
        if partition in acks:
            acks[partition].merge(acknowledgements)
        else:
            acks[partition] = acknowledgements
